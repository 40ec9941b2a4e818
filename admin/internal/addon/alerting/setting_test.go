package alerting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
)

// valuesOf are the settings of a server, with all defaults.
func valuesOf(t *testing.T, given addon.Values) addon.Values {
	t.Helper()
	v, err := addon.Complete([]addon.AddOn{{Settings: settings()}}, given)
	require.NoError(t, err)
	return v
}

func TestAddressesOfAlerts(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"ops@example.com", "b@example.com"}, addressesOf([]string{"Operators <ops@example.com>", "nobody", "b@example.com"}))
	many := strings.Split(strings.Repeat("a@example.com ", noun.MaxChannelEmails+1), " ")[:noun.MaxChannelEmails+1]
	require.Len(t, addressesOf(many), noun.MaxChannelEmails)

	without, mails := valuesOf(t, nil), valuesOf(t, addon.Values{mailHost: {"127.0.0.1"}, mailFrom: {"carillon@example.com"}})
	require.NoError(t, checkReceivers(without, nil))
	require.ErrorContains(t, checkReceivers(without, many[:1]), "--mail-host")
	require.ErrorContains(t, checkReceivers(mails, many), "17 addresses are too many")
	require.NoError(t, checkReceivers(mails, many[:1]))
	require.ErrorContains(t, checkReceivers(mails, []string{"a@other.example"}), `"a@other.example": this server sends no mails to the domain`)
}

// A server does not start with a value that alerting refuses.
func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	require.NoError(t, check(valuesOf(t, nil)))
	for want, given := range map[string]addon.Values{
		"runbook URL: must be":                         {runbookURL: {"ftp://a"}},
		"alert throttle: 1ms is less than a second":    {alertThrottle: {"1ms"}},
		"alert repeat: 2ms is less than a second":      {alertRepeat: {"2ms"}},
		`mail domains: "*.a" is no domain`:             {mailDomains: {"*.a"}},
		"--mail-per-hour: 0: use 1 or more":            {mailPerHour: {"0"}},
		`operator email: "nobody"`:                     {operatorEmail: {"nobody"}},
		`operator webhook: "ftp://a" is no http`:       {operatorWebhook: {"ftp://a"}},
		`"la"`:                                         {alertLanguage: {"la"}},
		"the password would cross the network to mail": {mailHost: {"mail"}, mailUser: {"a"}, mailTLS: {"none"}},
		"receivers of alerts (--alert-to): alerts to":  {alertTo: {"a@example.com"}},
	} {
		require.ErrorContains(t, check(valuesOf(t, given)), want)
	}
}
