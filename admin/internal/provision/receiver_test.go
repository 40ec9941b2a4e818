package provision

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// unheard has three tenants that no alert reaches. The last one's settings were saved.
type unheard struct {
	asked int
	made  map[domain.TenantID][]string
	fails error
}

func (u *unheard) ListUnheardTenants(context.Context, bool) (out []store.UnheardTenant, err error) {
	u.asked++
	for n, name := range []string{"shop", "web", "saved"} {
		out = append(out, store.UnheardTenant{Tenant: domain.Tenant{ID: domain.TenantID(n + 1), Name: name}, Fresh: name != "saved"})
	}
	return out, nil
}

func (u *unheard) CreateDefaultReceiver(_ context.Context, c domain.AlertChannel) (bool, error) {
	if u.fails == nil {
		u.made[c.TenantID] = c.Spec.Emails
	}
	return u.fails == nil, u.fails
}

func TestReceiversOfTenants(t *testing.T) {
	declared := []Receiver{{Tenant: "shop", Emails: []string{"shop@example.com"}}, {Tenant: "saved", Emails: []string{"late@example.com"}}}
	for name, test := range map[string]struct {
		declared  []Receiver
		otherwise []string
		want      map[domain.TenantID][]string
	}{
		"none":     {nil, nil, map[domain.TenantID][]string{}},
		"declared": {declared, nil, map[domain.TenantID][]string{1: {"shop@example.com"}}},
		"default":  {nil, []string{"ops@example.com"}, map[domain.TenantID][]string{1: {"ops@example.com"}, 2: {"ops@example.com"}}},
		"both":     {declared, []string{"ops@example.com"}, map[domain.TenantID][]string{1: {"shop@example.com"}, 2: {"ops@example.com"}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unheard{made: map[domain.TenantID][]string{}}
			r := Receivers{Store: u, NewID: func() int64 { return 7 }, Default: test.otherwise, Log: slog.New(slog.DiscardHandler)}
			require.NoError(t, r.Give(t.Context(), test.declared))
			require.Equal(t, test.want, u.made)
			require.Equal(t, name == "none", u.asked == 0)
		})
	}
}

// A start ends with the error. A request that made a tenant does not: the next start does it.
func TestAReceiverThatCannotBeMade(t *testing.T) {
	var log strings.Builder
	broken := errors.New("broken")
	r := Receivers{Store: &unheard{fails: broken}, NewID: func() int64 { return 7 }, Default: []string{"ops@example.com"}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	require.ErrorIs(t, r.Give(t.Context(), nil), broken)
	r.TenantMade(t.Context(), domain.Tenant{ID: 9, Name: "later"})
	require.Contains(t, log.String(), "tenant=later")
}

func TestAddressesOfAlerts(t *testing.T) {
	require.Equal(t, []string{"ops@example.com", "b@example.com"}, Addresses([]string{"Operators <ops@example.com>", "nobody", "b@example.com"}))
	many := strings.Split(strings.Repeat("a@example.com ", domain.MaxChannelEmails+1), " ")[:domain.MaxChannelEmails+1]
	require.Len(t, Addresses(many), domain.MaxChannelEmails)
	fine := func(string) error { return nil }
	require.NoError(t, CheckAddresses(nil, nil))
	require.ErrorContains(t, CheckAddresses(many[:1], nil), "--mail-host")
	require.ErrorContains(t, CheckAddresses(many, fine), "17 addresses are too many")
	require.NoError(t, CheckAddresses(many[:1], fine))
	require.ErrorContains(t, CheckAddresses(many[:1], func(string) error { return errors.New("not there") }), `"a@example.com": not there`)
}

// A file is held against the settings that the node has of its own.
func TestAFileFitsTheNode(t *testing.T) {
	d := &Declaration{file: "p.yaml", adminPassword: "of the file", Receivers: []Receiver{{Line: 3, Where: "tenants[0].alertTo", Emails: []string{"a@other.example"}}}}
	fine, none := func([]string) error { return nil }, errors.New("no mails go there")
	got, err := d.Fits("", fine)
	require.NoError(t, err)
	require.Equal(t, "of the file", got)
	_, err = d.Fits("of the node", func([]string) error { return none })
	var wrong *Error
	require.ErrorAs(t, err, &wrong)
	require.Len(t, wrong.Problems, 2)
	require.ErrorContains(t, err, "p.yaml:3: tenants[0].alertTo: no mails go there")
	require.ErrorContains(t, err, "administrator.password: it is given")
	got, err = (&Declaration{}).Fits("of the node", fine)
	require.NoError(t, err)
	require.Equal(t, "of the node", got)
}
