package admin_test

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// mailsTo logs in at a mail server in the clear.
func mailsTo(server, password string) admin.Settings {
	at := netip.MustParseAddrPort(server)
	return admin.Settings{
		"mail-host": {at.Addr().String()}, "mail-port": {strconv.Itoa(int(at.Port()))}, "mail-tls": {"none"},
		"mail-user": {"bell"}, "mail-password-file": {password},
	}
}

// A tenant without a default channel is named.
func TestDoctorLooksForReceivers(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			config := doctorConfig(t)
			config.Database = database(t, t.TempDir())
			n := startNode(t, func(c *admin.Config) { c.DataDir, c.Database = config.DataDir, config.Database })
			require.Equal(t, map[string]string{"receivers": "warn alerts_reach_nobody"}, troubles(t, config))
			n.newDefaultChannel()
			require.Equal(t, "ok", diagnose(t, config, nil)["receivers"])
		})
	}
}

// What is wrong with the settings of alerting, or with the servers that it sends to.
func TestDoctorOfAlerting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, c *admin.Config)
		want   map[string]string
	}{
		"a mail server in the clear": {func(_ *testing.T, c *admin.Config) {
			c.AddOns = admin.Settings{"mail-host": {"mail.example.com"}, "mail-user": {"a"}, "mail-tls": {"none"}}
		}, map[string]string{"config": "fail config_refused"}},
		"a language": {func(_ *testing.T, c *admin.Config) { c.AddOns = admin.Settings{"alert-language": {"la"}} }, map[string]string{"config": "fail config_refused"}},
		"mail without a server": {func(_ *testing.T, c *admin.Config) { c.AddOns = admin.Settings{"operator-email": {"ops@example.com"}} },
			map[string]string{"mail": "warn no_mail_server"}},
		"a wrong password of mail": {func(t *testing.T, c *admin.Config) {
			c.AddOns = mailsTo(testenv.SMTP(t, testenv.SMTPAuth("bell", "tower-bell-64")).Addr(), "tower-bell-65")
		}, map[string]string{"mail": "warn mail_unreachable"}},
		"mail and webhook that hang": {func(t *testing.T, c *admin.Config) {
			c.AddOns = mailsTo(silent(t), "tower-bell-64")
			set(c, admin.Settings{"operator-webhook": {"https://" + silent(t) + "/tower-bell-64"}})
			c.Webhook.AllowPrefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		}, map[string]string{"mail": "warn mail_unreachable", "webhook": "warn webhook_unreachable"}},
		"a private network": {func(_ *testing.T, c *admin.Config) {
			c.AddOns = admin.Settings{"operator-webhook": {"https://10.1.2.3/tower-bell-64"}}
		}, map[string]string{"webhook": "warn webhook_unreachable"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := doctorConfig(t)
			c.change(t, &config)
			require.Equal(t, c.want, troubles(t, config))
		})
	}
}

// Mail and webhook that are there; nothing is sent or posted.
func TestDoctorSendsNothing(t *testing.T) {
	t.Parallel()
	smtp, sink := testenv.SMTP(t, testenv.SMTPAuth("bell", "tower-bell-64")), testenv.HTTPSink(t)
	config := doctorConfig(t)
	config.AddOns = mailsTo(smtp.Addr(), "tower-bell-64")
	set(&config, admin.Settings{"operator-webhook": {sink.URL}})
	config.Webhook.AllowPrefixes = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	got := diagnose(t, config, nil)
	require.Equal(t, "ok", got["mail"])
	require.Equal(t, "ok", got["webhook"])
	require.Empty(t, smtp.Mails())
	require.Empty(t, sink.Requests())
}
