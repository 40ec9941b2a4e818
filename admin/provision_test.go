package admin_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// provisionFile writes a file with one of each, and returns it with the secrets of
// the join token and the API key.
func provisionFile(t *testing.T) (file, token, key string) {
	t.Helper()
	dir := t.TempDir()
	secrets := map[string]string{"admin": password, "anna": "a bell in the tower"}
	for name, kind := range map[string]string{"token": "join-token", "key": "api-key"} {
		secret, err := admin.NewSecret(kind)
		require.NoError(t, err)
		secrets[name] = secret
	}
	secrets["hook"] = "https://hooks.example.com/shop"
	for name, secret := range secrets {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(secret+"\n"), 0o600))
	}
	file = filepath.Join(dir, "provision.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
kind: User
name: admin
spec: {}
secrets: {password: "${{ file:admin }}"}
---
{kind: Tenant, name: default, spec: {quotas: {timers: 9}}}
---
{kind: Tenant, name: shop, spec: {quotas: {jobs: 3}, retention: {runDays: 30}}}
---
{kind: Job, name: nightly, tenant: shop, spec: {executor: {name: web}, handler: work, schedule: {kind: cron, expr: "0 2 * * *", zone: UTC, calendars: [{name: cn}]}}}
---
{kind: Calendar, name: cn, tenant: shop, spec: {holidays: [{date: 2026-10-01}]}}
---
{kind: Executor, name: web, tenant: shop, spec: {description: The shop, maxRunning: 5}}
---
{kind: JoinToken, name: web, tenant: shop, spec: {executor: web}, secrets: {token: "${{ file:token }}"}}
---
{kind: ApiKey, name: calls, tenant: shop, spec: {role: editor, executors: [web]}, secrets: {key: "${{ file:key }}"}}
---
{kind: AlertChannel, name: default, tenant: shop, spec: {kind: webhook}, secrets: {url: "${{ file:hook }}"}}
---
{kind: Member, name: admin, tenant: shop, spec: {role: viewer}}
---
kind: User
name: anna
spec: {memberships: [{tenant: shop, role: operator, executors: [web]}, {tenant: default, role: viewer}]}
secrets: {password: "${{ file:anna }}"}
`), 0o600))
	return file, secrets["token"], secrets["key"]
}

// entries are those of the audit log that provisioning has left in the session's tenant, or for
// the cluster.
func (n *node) entries(query string) (out []string) {
	n.t.Helper()
	var list struct {
		Items []struct{ Actor, Operation, Kind, ObjectName string }
	}
	n.do(http.MethodGet, "/api/v1/audit?limit=200"+query, nil, &list, 200)
	for _, e := range list.Items {
		if e.Actor == "provisioning" {
			require.Equal(n.t, "provision", e.Operation)
			out = append(out, e.Kind+" "+e.ObjectName)
		}
	}
	return out
}

// TestWhatIsDeclaredIsThere: an application, a program and a person come in after an
// unattended start, and after a second one with the same file.
func TestWhatIsDeclaredIsThere(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			file, token, key := provisionFile(t)
			var log syncBuffer
			dsn, dir := "", t.TempDir()
			for round := range 2 {
				n := startNode(t, func(c *admin.Config) {
					if dsn == "" {
						dsn = database(t, dir)
					}
					c.DataDir, c.Database, c.ProvisionFile, c.AdminPassword = dir, dsn, file, ""
					c.Logger = slog.New(slog.NewTextHandler(&log, nil))
				})
				require.Nil(t, n.admin.FirstLogin(), "its password was given")
				platform := n.token
				n.token = key
				var jobs struct{ Items []struct{ Name string } }
				n.do(http.MethodGet, "/api/v1/jobs", nil, &jobs, 200)
				require.Contains(t, jobs.Items, struct{ Name string }{"nightly"})
				n.token = ""
				var anna struct{ AccessToken string }
				n.do(http.MethodPost, "/api/v1/auth/login", map[string]string{"username": "anna", "password": "a bell in the tower", "tenant": "shop"}, &anna, 200)
				n.token = anna.AccessToken
				var me struct{ Executors []string }
				n.do(http.MethodGet, "/api/v1/me", nil, &me, 200)
				require.Equal(t, []string{"web"}, me.Executors)

				n.token = platform
				var shop struct{ AccessToken string }
				n.do(http.MethodPost, "/api/v1/auth/tenant", map[string]string{"tenant": "shop"}, &shop, 200)
				require.ElementsMatch(t, []string{"tenant default", "tenant shop", "user anna"}, n.entries("&cluster=true"))
				var first struct {
					Items []struct{ Actor, Kind, ObjectName, After string }
				}
				n.do(http.MethodGet, "/api/v1/audit?cluster=true&operation=first-start", nil, &first, 200)
				require.Len(t, first.Items, 1)
				require.Equal(t, [3]string{"first start", "user", "admin"}, [3]string{first.Items[0].Actor, first.Items[0].Kind, first.Items[0].ObjectName})
				n.do(http.MethodGet, "/api/v1/audit?cluster=true&object=anna", nil, &first, 200)
				require.JSONEq(t, `{"platformAdmin":false,"memberships":[{"tenant":"default","role":"viewer"},{"tenant":"shop","role":"operator","executors":["web"]}]}`, first.Items[0].After)
				n.token = shop.AccessToken
				n.do(http.MethodGet, "/api/v1/audit?operation=provision&object=anna", nil, &first, 200)
				require.JSONEq(t, `{"role":"operator","executors":["web"]}`, first.Items[0].After)
				require.ElementsMatch(t, []string{
					"executor web", "calendar cn", "job nightly", "join-token web", "api-key calls", "user anna", "alert-channel default", "member admin",
				}, n.entries(""))
				var settings struct{ ReachesNobody bool }
				n.do(http.MethodGet, "/api/v1/alert-settings", nil, &settings, 200)
				require.False(t, settings.ReachesNobody, "the channel default is told")

				ex, err := executor.New(executor.Config{
					Name: "web", Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(token), JournalDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
				})
				require.NoError(t, err)
				executor.HandleFunc(ex, "work", func(context.Context) error { return nil })
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- ex.Run(ctx) }()
				<-ex.Ready()
				n.token = key
				if round == 0 {
					n.until(n.runNow(n.newJob("web", "work", nil), nil), "succeeded")
					require.Contains(t, log.String(), `made=10`)
				} else {
					require.Contains(t, log.String(), `made=0`)
				}
				cancel()
				require.NoError(t, <-done)
				n.stop()
			}
			require.NotContains(t, log.String(), "left so")
			for _, secret := range []string{token, key, password, "a bell in the tower"} {
				require.NotContains(t, log.String(), secret)
			}
		})
	}
}

// Several nodes start with the same file and one database: each makes what the others have not
// made, and nothing twice.
func TestNodesThatStartAtOnceMakeItOnce(t *testing.T) {
	t.Parallel()
	file, _, _ := provisionFile(t)
	dsn, dir := databases["mysql"](t, ""), t.TempDir()
	key, err := admin.NewSecret("sealing-key")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sealing.key"), []byte(key), 0o600))
	var log syncBuffer
	var nodes sync.WaitGroup
	for i := range 4 {
		nodes.Go(func() {
			n, err := admin.New(t.Context(), admin.Config{
				DataDir: filepath.Join(dir, string(rune('a'+i))), Database: dsn, SealingKeyFile: filepath.Join(dir, "sealing.key"), ProvisionFile: file,
				HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(&log, nil)),
			})
			if err == nil {
				err = n.Close()
			}
			if err != nil {
				t.Errorf("start: %v", err)
			}
		})
	}
	nodes.Wait()
	for _, one := range []string{
		"kind=Calendar name=cn", "kind=Job name=nightly", "kind=JoinToken name=web", "kind=ApiKey name=calls", "kind=AlertChannel name=default", "kind=Member name=admin", "kind=User name=anna",
	} {
		require.Equal(t, 1, strings.Count(log.String(), "msg=made component=provisioning "+one), one)
	}
	require.Equal(t, 4, strings.Count(log.String(), "what the provision file declares is there"))
	require.NotContains(t, log.String(), "left so")
}

// People go on from what a file has made: nothing of it comes back or changes.
func TestWhatPeopleChangedStays(t *testing.T) {
	t.Parallel()
	file, _, key := provisionFile(t)
	var log syncBuffer
	dir := t.TempDir()
	dsn := databases["sqlite"](t, dir)
	start := func() *node {
		return startNode(t, func(c *admin.Config) {
			c.DataDir, c.Database, c.ProvisionFile, c.AdminPassword = dir, dsn, file, ""
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
	}
	n := start()
	var shop struct{ AccessToken string }
	n.do(http.MethodPost, "/api/v1/auth/tenant", map[string]string{"tenant": "shop"}, &shop, 200)
	n.token = shop.AccessToken
	type list struct {
		Items []struct{ ID, Name, Username, Description string }
	}
	var keys, executors, users list
	n.do(http.MethodGet, "/api/v1/api-keys", nil, &keys, 200)
	n.do(http.MethodDelete, "/api/v1/api-keys/"+keys.Items[0].ID, nil, nil, 204)
	n.do(http.MethodGet, "/api/v1/executors", nil, &executors, 200)
	n.edit(http.MethodPatch, "/api/v1/executors/"+executors.Items[0].ID, `{"description":"another"}`)
	n.do(http.MethodGet, "/api/v1/users", nil, &users, 200)
	for _, u := range users.Items {
		n.do(http.MethodDelete, "/api/v1/users/"+u.ID, nil, nil, 204)
	}
	n.stop()

	n = start()
	n.do(http.MethodPost, "/api/v1/auth/tenant", map[string]string{"tenant": "shop"}, &shop, 200)
	n.token = shop.AccessToken
	n.do(http.MethodGet, "/api/v1/executors", nil, &executors, 200)
	require.Equal(t, "another", executors.Items[0].Description)
	users.Items = nil
	n.do(http.MethodGet, "/api/v1/users", nil, &users, 200)
	require.Empty(t, users.Items)
	require.Contains(t, log.String(), `kind=ApiKey name=calls tenant=shop reason="it was revoked: make another secret"`)
	require.Contains(t, log.String(), `kind=Executor name=web tenant=shop fields=1 field=spec.description`)
	require.Contains(t, log.String(), `made=0`)
	n.token = key
	n.do(http.MethodGet, "/api/v1/jobs", nil, nil, 401)
}

// TestABadFileEndsTheStart before anything is made.
func TestABadFileEndsTheStart(t *testing.T) {
	t.Parallel()
	file, _, _ := provisionFile(t)
	config := admin.Config{DataDir: t.TempDir(), HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", ProvisionFile: file}
	summary, err := admin.CheckProvision(t.Context(), file, t.TempDir())
	require.NoError(t, err)
	require.Equal(t, "2 User, 2 Tenant, 1 Job, 1 Calendar, 1 Executor, 1 JoinToken, 1 ApiKey, 1 AlertChannel, 1 Member", summary)

	config.AdminPassword = password
	_, err = admin.New(t.Context(), config)
	require.ErrorContains(t, err, "provision.yaml:5: User admin: secrets.password: it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too")
	var wrong *admin.ProvisionError
	require.ErrorAs(t, err, &wrong)

	config.AdminPassword = ""
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(file), "token")))
	_, err = admin.New(t.Context(), config)
	require.ErrorAs(t, err, &wrong)
	left, err := os.ReadDir(config.DataDir)
	require.NoError(t, err)
	require.Empty(t, left)
	_, err = admin.CheckProvision(t.Context(), file, t.TempDir())
	require.ErrorContains(t, err, "provision.yaml:17: JoinToken web: secrets.token: open ")
}

// TestMistakesAreTold checks that a start names the mistakes of all documents with line and next step.
func TestMistakesAreTold(t *testing.T) {
	t.Parallel()
	file, token, key := provisionFile(t)
	for name, text := range map[string]string{"weak": "password1234", "lines": "a\nb", "empty": "\n", "more": key[:len(key)-1] + "x", "other": key[:len(key)-1] + "y"} {
		require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o600))
	}
	var text strings.Builder
	var want []string
	for _, test := range []struct{ document, want string }{
		{"{kind: Tenant, name: shop, spec: {}}", ""},
		{"{kind: Tenant, name: Shop, spec: {}}", `Tenant Shop: name: must be lower-case letters`},
		{"{kind: Tenant, name: web, spec: {quotas: {jobs: many}}}", "Tenant web: spec.quotas.jobs: must be a whole number, not the text \"many\""},
		{"{kind: Tenant, name: web2, spec: {quota: {jobs: 1}}}", `Tenant web2: spec.quota: there is no such field`},
		{"{kind: Tenant, name: shop, spec: {}}", "Tenant shop: name: is in the request twice: shop"},
		{"{kind: tenants, name: a, spec: {}}", `tenants a: kind: "tenants" is no kind: use`},
		{"{kind: Executor, name: a b, spec: {}}", "Executor a b: name: must be letters"},
		{"{kind: Executor, name: carillon, spec: {}}", "Executor carillon: name: is the name of the executor that belongs"},
		{"{kind: Job, name: j, spec: {executor: {name: nowhere}, handler: h, schedule: {kind: cron, expr: 0 2 * * *, zone: UTC}}}", "Job j: spec.executor"},
		{"{kind: Executor, name: web, spec: {}}", ""},
		{"{kind: Job, name: k, spec: {executor: {name: web}, handler: h, schedule: {kind: cron, expr: 0 2 * *, zone: UTC}}}", "Job k: spec.schedule.expr: "},
		{"{kind: JoinToken, name: a, spec: {executor: web}, secrets: {token: \"${{ file:key }}\"}}", `JoinToken a: secrets.token: must be "cjt_" and 43 letters, digits, - or _; make one with: carillon provision secret join-token`},
		{"{kind: JoinToken, name: b, spec: {executor: web}, secrets: {token: \"${{ file:lines }}\"}}", "JoinToken b: secrets.token: has more than one line"},
		{"{kind: JoinToken, name: c, spec: {executor: web}, secrets: {token: \"${{ file:empty }}\"}}", "JoinToken c: secrets.token: is missing or empty"},
		{"{kind: JoinToken, name: d, spec: {executor: none}, secrets: {token: \"${{ file:token }}\"}}", `JoinToken d: spec.executor: there is no executor "none": add its document, kind: Executor`},
		{"{kind: JoinToken, name: e, spec: {executor: web}, secrets: {token: \"${{ env:NONE }}\"}}", "JoinToken e: secrets.token: ${{ env:NONE }}: the variable is not set"},
		{"{kind: JoinToken, name: f, spec: {executor: web, expiresAt: tomorrow}}", "JoinToken f: spec.expiresAt: "},
		{"{kind: JoinToken, name: g, spec: {executor: web}}", "JoinToken g: secrets.token: is missing or empty: say where it is"},
		{"{kind: ApiKey, name: a, spec: {role: king}, secrets: {key: \"${{ file:other }}\"}}", `ApiKey a: spec.role: `},
		{"{kind: ApiKey, name: b, spec: {role: admin, executors: [web]}, secrets: {key: \"${{ file:more }}\"}}", "ApiKey b: spec.executors: the role admin is about the whole tenant"},
		{"{kind: User, name: Anna, spec: {platformAdmin: true}, secrets: {password: \"${{ file:anna }}\"}}", "User Anna: name: must be lower-case letters"},
		{"{kind: User, name: bert, spec: {}, secrets: {password: \"${{ file:anna }}\"}}", "User bert: spec: the account belongs to no tenant: name some as memberships"},
		{"{kind: User, name: carl, spec: {memberships: [{tenant: none, role: viewer}]}, secrets: {password: \"${{ file:anna }}\"}}", `User carl: spec.memberships[0].tenant: there is no tenant "none"`},
		{"{kind: User, name: dora, spec: {memberships: [{tenant: shop, role: caller}]}, secrets: {password: \"${{ file:anna }}\"}}", "User dora: spec.memberships[0].role: must be one of"},
		{"{kind: User, name: emma, spec: {platformAdmin: true}, secrets: {password: \"${{ file:weak }}\"}}", "User emma: secrets.password: is easily guessed"},
		{"{kind: User, name: fred, spec: {platformAdmin: yes}, secrets: {password: \"${{ file:anna }}\"}}", "User fred: spec.platformAdmin: must be true or false"},
		{"{kind: User, name: admin, spec: {platformAdmin: true}, secrets: {password: \"${{ file:anna }}\"}}", "User admin: spec: must be empty"},
		{"{kind: Member, name: anna, spec: {role: admin, executors: [web]}}", "Member anna: spec.executors: the role admin is about the whole tenant"},
		{"{kind: AlertRule, name: r, spec: {channels: [none]}}", "AlertRule r: spec: the field condition is missing"},
	} {
		fmt.Fprintf(&text, "---\n%s\n", test.document)
		if test.want != "" {
			want = append(want, fmt.Sprintf("%d: %s", strings.Count(text.String(), "\n"), test.want))
		}
	}
	require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o600))
	_, err := admin.CheckProvision(t.Context(), file, t.TempDir())
	var wrong *admin.ProvisionError
	require.ErrorAs(t, err, &wrong)
	var got []string
	for _, p := range wrong.Problems {
		require.Equal(t, file, p.File)
		got = append(got, fmt.Sprintf("%d: %s: %s", p.Line, p.Where, p.Text))
	}
	all := strings.Join(got, "\n")
	for _, one := range want {
		require.Contains(t, "\n"+all, "\n"+one)
	}
	require.Len(t, got, len(want), all)
	for _, secret := range []string{token, key, password} {
		require.NotContains(t, all, secret)
	}
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Mistakes of one document hide none of the others: each is told once, and what names a document
// that is wrong itself is not told.
func TestMistakesHideNoOthers(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "all.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`kind: Tenant
name: shop
spec: {quotas: {jobs: many}}
---
kind: Executor
name: web
tenant: shop
spec: {maxRunning: -3}
---
kind: Job
name: nightly
tenant: shop
spec: {executor: {name: web}, handler: h, schedule: {kind: cron, expr: "61 * * * *"}, timeout: 1d}
---
kind: ApiKey
name: orders
tenant: shop
spec: {role: caller, executors: [nix, web]}
secrets: {key: "${{ env:NOT_SET }}"}
---
kind: Job
name: lost
tenant: nowhere
spec: {executor: {name: webb}, handler: h, schedule: {kind: none}, color: red}
---
kind: JoinToken
name: t
spec: {executor: nix}
secrets: {token: "${{ file:nowhere.txt }}"}
---
kind: User
name: anna
spec: {memberships: [{tenant: shop, role: viewer, executors: [wep]}]}
secrets: {password: "${{ env:NOT_SET }}"}
---
kind: Calendar
name: cn
spec: {holidays: [{date: 2026-13-01}]}
---
kind: Executor
name: books
spec: {}
---
kind: Job
name: y
spec: {executor: {name: books}, handler: "${{ name }}", schedule: {kind: cron, expr: "0 2 * * *", calendars: [{name: cn}]}}
`), 0o600))
	_, err := admin.CheckProvision(t.Context(), file, t.TempDir())
	var wrong *admin.ProvisionError
	require.ErrorAs(t, err, &wrong)
	var told []string
	for _, p := range wrong.Problems {
		told = append(told, fmt.Sprintf("%d %s: %s", p.Line, p.Where, p.Text))
	}
	for i, want := range []string{
		`3 Tenant shop: spec.quotas.jobs: must be a whole number, not the text "many"`,
		`8 Executor web: spec.maxRunning: must be 0 or more`,
		`13 Job nightly: spec.timeout: is not a duration such as 30s, 5m or 1h30m: "1d"; write 24h`,
		`13 Job nightly: spec.schedule.expr: 61 is outside 0-59`,
		`18 ApiKey orders: spec.executors[0]: there is no executor "nix"`,
		`19 ApiKey orders: secrets.key: ${{ env:NOT_SET }}: the variable is not set`,
		`23 Job lost: tenant: there is no tenant "nowhere" in the file: add its document, kind: Tenant`,
		`24 Job lost: spec.color: there is no such field`,
		`28 JoinToken t: spec.executor: there is no executor "nix": add its document, kind: Executor`,
		`29 JoinToken t: secrets.token: open `,
		`33 User anna: spec.memberships[0].executors[0]: there is no executor "wep" of the tenant shop in the file: add its document, kind: Executor; did you mean "web"?`,
		`34 User anna: secrets.password: ${{ env:NOT_SET }}: the variable is not set`,
		`38 Calendar cn: spec.holidays[0]: "2026-13-01" is no date such as 2026-10-01`,
		`46 Job y: spec.handler: ${{ name }} has no value: a provision file takes ${{ env:VARIABLE }} and ${{ file:PATH }}`,
	} {
		require.Greater(t, len(told), i, "missing: %s", want)
		require.Contains(t, told[i], want, strings.Join(told, "\n"))
	}
	require.Len(t, told, 14, strings.Join(told, "\n"))
}
