package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// secrets are files and variables with what a file names.
type secrets struct {
	dir       string
	token     string
	key       string
	variables map[string]string
}

const password = "a bell in the tower"

func someSecrets(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{dir: t.TempDir()}
	var err error
	s.token, err = auth.NewJoinToken()
	require.NoError(t, err)
	s.key, err = auth.NewAPIKey()
	require.NoError(t, err)
	for name, text := range map[string]string{
		"token": s.token + "\n", "key": s.key, "password": password + "\r\n", "empty": "\n", "lines": "a\nb\n", "large": strings.Repeat("x", maxSecret+1), "weak": "password1234",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	s.variables = map[string]string{"TOKEN": s.token, "KEY": s.key, "PASSWORD": password}
	return s
}

func (s *secrets) read(t *testing.T, text string) (*Declaration, error) {
	t.Helper()
	path := filepath.Join(s.dir, "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	d, err := Read(path, func(name string) string { return s.variables[name] })
	if err != nil {
		for _, secret := range []string{s.token, s.key, password} {
			require.NotContains(t, err.Error(), secret)
		}
	}
	return d, err
}

func TestAFileIsRead(t *testing.T) {
	s := someSecrets(t)
	d, err := s.read(t, `
users: # also before the tenants that they belong to
  - username: anna
    password: {env: PASSWORD}
    mustChangePassword: true
    memberships:
      - {tenant: shop, role: editor}
      - {tenant: default, role: viewer}
  - {username: root, password: {file: password}, platformAdmin: true}
administrator:
  password: {file: password}
tenants:
  - name: shop
    quotas: {jobs: 7, timers: 0}
    executors:
      - name: web
        description: The shop
        joinTokens:
          - secret: {file: `+s.dir+`/token}
            declareJobs: false
            maxUses: 3
            expiresAt: 2030-01-02T03:04:05Z
    apiKeys:
      - name: calls
        role: timer+caller
        secret: {file: key}
        executors: [web]
        callHandlers: [web/do it]
  - name: empty
    executors:
`)
	require.NoError(t, err)
	require.Equal(t, password, d.adminPassword)
	require.Equal(t, []string{password, password}, d.passwords)
	token, err := auth.ImportJoinToken(s.token)
	require.NoError(t, err)
	key, err := auth.ImportAPIKey(s.key)
	require.NoError(t, err)
	require.Equal(t, store.ProvisionParams{
		By: "provisioning",
		Tenants: []store.ProvisionTenant{
			{
				Name: "shop", Quotas: map[domain.QuotaKind]int64{domain.QuotaJobs: 7, domain.QuotaTimers: 0},
				Executors: []store.ProvisionExecutor{{Name: "web", Description: "The shop", JoinTokens: []domain.JoinToken{
					{Name: "web", Prefix: token.Prefix, Hash: token.Hash, NoJobs: true, MaxUses: 3, ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)},
				}}},
				APIKeys: []domain.APIKey{{
					Name: "calls", Role: "caller+timer", Prefix: key.Prefix, Hash: key.Hash,
					Scope: domain.Scope{Executors: []string{"web"}, Handlers: []string{"web/do it"}},
				}},
			},
			{Name: "empty"},
		},
		Users: []store.ProvisionUser{
			{User: domain.User{Username: "anna", MustChangePassword: true, SessionVersion: 1}, Roles: map[string]domain.Role{"shop": domain.RoleEditor, "default": domain.RoleViewer}},
			{User: domain.User{Username: "root", PlatformAdmin: true, SessionVersion: 1}, Roles: map[string]domain.Role{}},
		},
	}, d.params)
	require.Equal(t, "2 tenants, 1 executor, 1 join token, 1 API key, 2 users", d.Summary())
}

// TestMistakesAreTold: each with its line and with what to do.
func TestMistakesAreTold(t *testing.T) {
	s := someSecrets(t)
	tenant := func(below string) string { return "tenants:\n- name: shop\n  " + below }
	token := func(secret string) string {
		return tenant("executors:\n  - name: web\n    joinTokens:\n    - secret: " + secret)
	}
	key := func(with string) string { return tenant("apiKeys:\n  - {name: k, " + with + "}") }
	user := func(with string) string { return "users:\n- {username: anna, password: {env: PASSWORD}, " + with + "}" }
	many := "tenants: [" + strings.Repeat("{name: a},", maxThings+1) + "]"
	for _, test := range []struct{ text, want string }{
		{"", ":1: the file declares nothing"},
		{"# nothing\n", ":1: the file declares nothing"},
		{"tenants: [\n", ": did not find expected node content"},
		{"tenants: []\n---\ntenants: []\n", ":3: the file has more than one document"},
		{"- a", ":1: must be an object with some of administrator, tenants, users"},
		{"tenant: []", `:1: tenant: there is no such field; did you mean "tenants"?`},
		{"tenants: []\ntenants: []", ":2: \"tenants\" comes twice in one object; say it once"},
		{"tenants: {}", ":1: tenants: must be a list"},
		{"tenants:\n- quotas: {}", ":2: tenants[0]: needs name"},
		{"tenants:\n- name: Shop", `:2: tenants[0].name: "Shop" must be lower-case letters`},
		{"tenants:\n- name: shop\n  alertTo: [shop]", `:3: tenants[0].alertTo[0]: "shop" is no mail address: use one such as ops@example.com`},
		{"tenants:\n- name: [a]", ":2: tenants[0].name: must be a text"},
		{"tenants:\n- name: shop\n- name: shop", `:3: tenants[1].name: the tenant "shop" stands in line 2 already`},
		{many, "tenants: the file declares more than 1000 things"},
		{tenant("quotas: {jobs: many}"), ":3: tenants[0].quotas.jobs: must be a whole number from 0 (no limit) to 100000000"},
		{tenant("quotas: {jobs: -1}"), ":3: tenants[0].quotas.jobs: must be a whole number"},
		{tenant("quotas: {job: 1}"), `:3: tenants[0].quotas.job: there is no such field; did you mean "jobs"?`},
		{tenant("executors:\n  - name: a b"), `:4: tenants[0].executors[0].name: "a b" must be letters`},
		{tenant("executors:\n  - name: carillon"), ":4: tenants[0].executors[0].name: is the name of the executor that the admin nodes"},
		{tenant("executors:\n  - name: web\n  - name: web"), `:5: tenants[0].executors[1].name: the executor "web" stands in line 4 already`},
		{token(s.token), ":6: tenants[0].executors[0].joinTokens[0].secret: a secret must not stand in this file"},
		{token("{}"), ":6: tenants[0].executors[0].joinTokens[0].secret: say where it is: either"},
		{token("{file: token, env: TOKEN}"), "secret: say where it is: either"},
		{token("{path: token}"), "secret.path: there is no such field; there are env, file"},
		{token("{file: nowhere}"), "secret: open " + s.dir + "/nowhere: no such file"},
		{token("{file: empty}"), "secret: " + s.dir + "/empty is empty or not set"},
		{token("{file: lines}"), "secret: " + s.dir + "/lines has more than one line"},
		{token("{file: large}"), "secret: " + s.dir + "/large has more than 4096 bytes"},
		{token("{env: NONE}"), "secret: the variable NONE is empty or not set"},
		{token("{file: key}"), `secret: it must be "cjt_" and 43 letters, digits, - or _; make one with: carillon provision secret join-token`},
		{token("{file: token}\n    - secret: {env: TOKEN}"), ":7: tenants[0].executors[0].joinTokens[1].secret: it is the same as that of line 6"},
		{token("{file: token}\n      expiresAt: tomorrow"), ":7: tenants[0].executors[0].joinTokens[0].expiresAt: must be an instant"},
		{token("{file: token}\n      declareJobs: perhaps"), "declareJobs: must be true or false"},
		{key("role: caller"), ":4: tenants[0].apiKeys[0]: needs secret"},
		{key("role: king, secret: {file: key}"), `:4: tenants[0].apiKeys[0].role: "king" is none of caller, timer, viewer, manager, operator, editor, scripter, admin, or several of them joined by +`},
		{key("role: caller, secret: {file: key}, callHandlers: [web]"), `callHandlers[0]: "web": must be an executor and one of its handlers`},
		{key("role: caller, secret: {file: key}, executors: [a/b]"), `executors[0]: "a/b": must be the name of an executor`},
		{key("role: caller, secret: {file: key}, executors: [" + strings.Repeat("a,", domain.MaxScopeNames+1) + "]"), "executors: there are more than 30"},
		{key("role: admin, secret: {file: key}, executors: [web]"), `apiKeys[0].executors: the role admin is about the whole tenant`},
		{key("role: caller+viewer, secret: {file: key}, callHandlers: [web/do it]"), `apiKeys[0].callHandlers: handlers bound calls and timers only`},
		{key("role: caller, secret: {file: key}, executors: []"), "executors: names nothing"},
		{user("memberships: []"), ":2: users[0]: belongs to no tenant"},
		{user("memberships: [{tenant: shop, role: viewer}]"), `:2: users[0].memberships[0].tenant: this file declares no tenant "shop"`},
		{user("memberships: [{tenant: default, role: caller}]"), `users[0].memberships[0].role: "caller" is none of viewer, operator, editor, scripter, admin`},
		{user("memberships: [{tenant: default, role: viewer}, {tenant: default, role: viewer}]"), `memberships[1]: the user has a role in "default" already`},
		{"users: [{username: Anna, password: {env: PASSWORD}, platformAdmin: true}]", `users[0].username: "Anna" must be small letters`},
		{"users: [{username: admin, password: {env: PASSWORD}, platformAdmin: true}]", "users[0].username: is the first administrator"},
		{"users: [{username: anna, password: {file: weak}, platformAdmin: true}]", "users[0].password: it is easily guessed"},
		{"administrator: {password: {file: weak}}", ":1: administrator.password: it is easily guessed"},
		{"administrator: {password: a bell in the tower}", ":1: administrator.password: a secret must not stand in this file"},
		{"users:\n" + strings.Repeat("- {username: a, password: {env: PASSWORD}, platformAdmin: true}\n", maxUsers+1), "users: there are more than 100"},
		{"a: &a [*a]\ntenants: *a", ":1: the alias *a stands inside of what it repeats"},
		{"tenants: [{name: acme, quotas: {jobs: 0x1F}}]", ":1: tenants[0].quotas.jobs: must be a whole number from 0"},
		{"tenants: [{name: acme, quotas: {jobs: 010}}]", ":1: tenants[0].quotas.jobs: must be a whole number from 0"},
		{"users: [{username: a, password: {env: PASSWORD}, platformAdmin: yes}]", "users[0].platformAdmin: must be true or false"},
	} {
		_, err := s.read(t, test.text)
		require.ErrorContains(t, err, s.dir+"/p.yaml:", test.text)
		require.ErrorContains(t, allOf(err), test.want, test.text)
	}

	_, err := Read(filepath.Join(s.dir, "nowhere"), os.Getenv)
	require.ErrorContains(t, err, "nowhere: no such file")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "huge"), []byte(strings.Repeat("#", maxFile+1)), 0o600))
	_, err = Read(filepath.Join(s.dir, "huge"), os.Getenv)
	require.ErrorContains(t, err, "has more than 1048576 bytes")

	_, err = s.read(t, "a: 1\nb: 2\n"+token("nowhere"))
	require.ErrorContains(t, err, "the provision file cannot be used:\n  "+s.dir+"/p.yaml:1: a: there is no such field; ")
	require.Len(t, problems(err), 3, "all of them at once")
	require.Contains(t, (&Error{Problems: make([]Problem, shownProblems+5)}).Error(), "\n  and 5 more")
}

func problems(err error) []Problem {
	wrong, _ := errors.AsType[*Error](err)
	if wrong == nil {
		return nil
	}
	return wrong.Problems
}

// allOf is an error without a bound on what it shows.
func allOf(err error) error {
	var b strings.Builder
	for _, p := range problems(err) {
		fmt.Fprintln(&b, (&Error{File: "p.yaml", Problems: []Problem{p}}).Error())
	}
	return fmt.Errorf("%s", b.String())
}

// fakeAccounts knows one account and hears what is to be made.
type fakeAccounts struct {
	there string
	got   store.ProvisionParams
}

func (f *fakeAccounts) FindUserByName(_ context.Context, name string) (domain.User, error) {
	if name == f.there {
		return domain.User{Username: name}, nil
	}
	return domain.User{}, domain.Errorf(domain.CodeNotFound, "no %s", name)
}

func (f *fakeAccounts) Provision(_ context.Context, p store.ProvisionParams) ([]store.ProvisionStep, error) {
	f.got = p
	return nil, nil
}

// TestPasswordsAreHashedOnce: of those only who are not there yet.
func TestPasswordsAreHashedOnce(t *testing.T) {
	s := someSecrets(t)
	d, err := s.read(t, `
users:
  - {username: anna, password: {env: PASSWORD}, platformAdmin: true}
  - {username: bert, password: {env: PASSWORD}, platformAdmin: true}`)
	require.NoError(t, err)
	f := &fakeAccounts{there: "anna"}
	hashed := 0
	for range 2 { // a second time after an outage
		require.NoError(t, d.Apply(t.Context(), f, func(_ context.Context, p string) (string, error) {
			hashed++
			return "hash of " + p, nil
		}, slog.New(slog.DiscardHandler)))
		require.Len(t, f.got.Users, 1)
		require.Equal(t, "bert", f.got.Users[0].User.Username)
		require.Equal(t, "hash of "+password, f.got.Users[0].User.PasswordHash)
	}
	require.Equal(t, 2, hashed)
}

// FuzzRead: whatever stands in a file, it is judged.
func FuzzRead(f *testing.F) {
	f.Add("tenants: [{name: a, executors: [{name: b, joinTokens: [{secret: {env: X}}]}]}]")
	f.Add("a: &a [*a]\ntenants: *a")
	f.Add("users: &u\n- username: a\n  memberships: *u")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		d, err := Read(path, func(string) string { return "" })
		require.NotEqual(t, d == nil, err == nil)
		if err != nil {
			require.NotEmpty(t, problems(err))
		}
	})
}
