package admin_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

func init() { soundness = append(soundness, (*node).newDefaultChannel) }

// newDefaultChannel gives the tenant a default channel by hand.
func (n *node) newDefaultChannel() {
	n.t.Helper()
	var channel struct{ ID string }
	n.do(http.MethodPost, "/api/v1/alert-channels", map[string]any{"name": "by hand", "spec": map[string]any{"kind": "webhook"}, "secrets": map[string]any{"url": "http://127.0.0.1:1/"}}, &channel, 201)
	n.replace("/api/v1/alert-settings", `{"defaultChannelIds":["`+channel.ID+`"]}`)
}

// toldByDefault returns the addresses of the channels that the tenant of this name has,
// and whether its failures reach no receiver.
func (n *node) toldByDefault(name string) (emails []string, nobody bool) {
	n.t.Helper()
	before := n.token
	defer func() { n.token = before }()
	var session struct{ AccessToken string }
	n.do(http.MethodPost, "/api/v1/auth/tenant", map[string]string{"tenant": name}, &session, 200)
	n.token = session.AccessToken
	var channels struct {
		Items []struct {
			Name string
			Spec struct{ Emails []string }
		}
	}
	n.do(http.MethodGet, "/api/v1/alert-channels", nil, &channels, 200)
	for _, c := range channels.Items {
		require.Equal(n.t, "default", c.Name)
		emails = append(emails, c.Spec.Emails...)
	}
	var settings struct{ ReachesNobody bool }
	n.do(http.MethodGet, "/api/v1/alert-settings", nil, &settings, 200)
	return emails, settings.ReachesNobody
}

// mailing is the document of the default channel of the tenant shop.
func mailing(address string) string {
	return "kind: AlertChannel\nname: default\ntenant: shop\nspec: {kind: email, emails: [" + address + "]}\n"
}

// toldOf counts the jobs that deliveries through a channel are about.
func (n *node) toldOf() int {
	n.t.Helper()
	var list struct {
		Items []struct{ JobID, ChannelID, Target string }
	}
	n.do(http.MethodGet, "/api/v1/deliveries", nil, &list, 200)
	jobs := map[string]bool{}
	for _, d := range list.Items {
		if d.ChannelID != "" {
			require.Equal(n.t, "ops@example.com", d.Target)
			jobs[d.JobID] = true
		}
	}
	return len(jobs)
}

// A tenant has a default channel from its first start or its creation, by the provision
// file, --alert-to or the operators' addresses. It gets a timer's failure.
func TestDefaultReceivers(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "provision.yaml")
			require.NoError(t, os.WriteFile(file, []byte("kind: Tenant\nname: shop\nspec: {}\n---\nkind: Tenant\nname: web\nspec: {}\n---\n"+mailing("shop@example.com")), 0o600))
			dsn := database(t, dir)
			mails := func(to, operators []string, file string) func(c *admin.Config) {
				return func(c *admin.Config) {
					c.DataDir, c.Database, c.ProvisionFile = dir, dsn, file
					c.AddOns = admin.Settings{
						"mail-host": {"127.0.0.1"}, "mail-port": {"1"}, "mail-tls": {"none"}, "mail-from": {"carillon@example.com"},
						"alert-to": to, "operator-email": operators,
					}
				}
			}
			n := startNode(t, func(c *admin.Config) { c.DataDir, c.Database = dir, dsn })
			emails, nobody := n.toldByDefault("default")
			require.Empty(t, emails)
			require.True(t, nobody, "no mail server, no addresses")
			n.stop()

			n = startNode(t, mails(nil, []string{"Operators <ops@example.com>"}, file))
			for tenant, want := range map[string]string{"default": "ops@example.com", "shop": "shop@example.com", "web": "ops@example.com"} {
				emails, nobody = n.toldByDefault(tenant)
				require.Equal(t, []string{want}, emails, tenant)
				require.False(t, nobody, tenant)
			}
			n.stop()

			n = startNode(t, mails([]string{"team@example.com"}, []string{"ops@example.com"}, file))
			n.do(http.MethodPost, "/api/v1/tenants", map[string]string{"name": "later"}, nil, 201)
			emails, _ = n.toldByDefault("later")
			require.Equal(t, []string{"team@example.com"}, emails)
			emails, _ = n.toldByDefault("web")
			require.Equal(t, []string{"ops@example.com"}, emails, "it stays as it is")

			n.startExecutor("calls", nil, func(e *executor.Executor) {
				executor.HandleFunc(e, "break", func(context.Context) error { return os.ErrInvalid })
			})
			for told, path := range []string{"calls", "timers"} {
				broken := map[string]any{"executor": "calls", "handler": "break"}
				if path == "timers" {
					broken["key"], broken["at"] = "a", time.Now()
				}
				n.do(http.MethodPost, "/api/v1/"+path, broken, nil, 201)
				n.eventually(func() bool { return n.toldOf() == told+1 }, func() string { return path })
			}
			n.stop()

			n = startNode(t, func(c *admin.Config) { c.DataDir, c.Database = dir, dsn })
			_, nobody = n.toldByDefault("web")
			require.True(t, nobody, "the mail server is gone")
		})
	}
}

// Addresses that no mail can reach end the start.
func TestRefusedReceivers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "provision.yaml")
	require.NoError(t, os.WriteFile(file, []byte("kind: Tenant\nname: shop\nspec: {}\n---\n"+mailing("a@other.example")), 0o600))
	many := make([]string, 17)
	for i := range many {
		many[i] = "a@example.com"
	}
	for wrong, change := range map[string]func(c *admin.Config){
		"(--alert-to): alerts to addresses need a mail server: name one with --mail-host": func(c *admin.Config) { set(c, admin.Settings{"alert-to": many[:1], "mail-host": nil}) },
		`(--alert-to): "a@other.example": this server sends no mails to the domain`:       func(c *admin.Config) { set(c, admin.Settings{"alert-to": {"a@other.example"}}) },
		`(--alert-to): "nobody": mail address`:                                            func(c *admin.Config) { set(c, admin.Settings{"alert-to": {"nobody"}}) },
		"(--alert-to): 17 addresses are too many: use at most 16":                         func(c *admin.Config) { set(c, admin.Settings{"alert-to": many}) },
		file + `:8: AlertChannel default: spec.emails[0]: this server sends no mails`:     func(c *admin.Config) { c.ProvisionFile = file },
	} {
		config := admin.Config{DataDir: t.TempDir(), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0"}
		config.AddOns = admin.Settings{"mail-host": {"127.0.0.1"}, "mail-from": {"carillon@example.com"}}
		change(&config)
		_, err := admin.New(t.Context(), config)
		require.ErrorContains(t, err, wrong)
	}
}
