package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

var update = flag.Bool("update", false, "write golden files and docs/openapi.json anew")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runner is the engine as these tests need it.
type runner struct {
	mu        sync.Mutex
	submitted []domain.Execution // guarded by mu
	cancelled []domain.Execution // guarded by mu
	wait      func(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error)
}

func (r *runner) Submit(e domain.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.submitted = append(r.submitted, e)
}

func (r *runner) SendCancel(e domain.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancelled = append(r.cancelled, e)
}

func (r *runner) WaitFinished(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	return r.wait(ctx, tenant, id)
}

// world is an API on a real SQLite file with two tenants, acme and beta.
type world struct {
	t       *testing.T
	api     *web.Server
	handler http.Handler // the API, each of its answers checked
	store   *gormstore.Store
	auth    *auth.Service
	box     *secret.Box
	runner  *runner
	ids     *domain.IDSource
	deps    Deps
	log     *bytes.Buffer
	logMu   sync.Mutex
	changed int
	handed  gormtest.Meter // what the database hands out
	options gormstore.Options

	tenants map[string]domain.TenantID
	// bearers are access tokens by "tenant/role", and "platform".
	bearers map[string]string
	// disabled is what the authentication holds for disabled.
	disabled map[domain.TenantID]bool
	// notHere is likewise why a tenant is not served here.
	notHere map[domain.TenantID]error
	users   map[string]domain.UserID
}

const (
	adminPassword = "correct horse battery"
	peerPassword  = "another long password"
)

func newWorld(t *testing.T, change ...func(*Deps)) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{
		t: t, ids: domain.NewIDSource(1, time.Now), runner: &runner{}, log: &bytes.Buffer{},
		tenants: map[string]domain.TenantID{}, bearers: map[string]string{}, users: map[string]domain.UserID{},
	}
	dir := t.TempDir()
	logger := slog.New(slog.NewTextHandler(lockedWriter{w}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	options := gormstore.Options{Driver: "sqlite", DSN: gormtest.SQLiteIn(t, dir), NewID: w.ids.Next, Logger: logger, FiresPerMinute: timing.FiresPerMinute, Connector: w.handed.Connector}
	w.options = options
	st, err := gormstore.Open(ctx, options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, st.Close()) })
	w.store = st
	w.box, err = secret.Load("", filepath.Join(dir, "sealing.key"))
	require.NoError(t, err)
	w.auth, err = auth.New(ctx, auth.Options{
		Store: st, DataDir: dir, NewID: w.ids.Next, Logger: logger, Disabled: func(t domain.TenantID) bool { return w.disabled[t] },
		NotHere: func(t domain.TenantID) error { return w.notHere[t] },
	})
	require.NoError(t, err)
	w.deps = Deps{
		Store: st, Auth: w.auth, Secrets: w.box, ScriptKey: w.box.ScriptKey().Public().(ed25519.PublicKey), Runner: w.runner,
		SignScript: func(s domain.Script, revision int64, sum []byte) []byte {
			return ed25519.Sign(w.box.ScriptKey(), fmt.Appendf(nil, "%s/%d/%x", s.ID, revision, sum))
		}, NewID: w.ids.Next, Now: time.Now, Logger: logger,
		CallJob:     calljob.Jobs{Store: st, NewID: w.ids.Next, Now: time.Now}.For,
		JobsChanged: func() { w.changed++ }, Version: "test", Self: "boot-1",
		Nodes: func() []domain.Node {
			return []domain.Node{{ID: 1, Name: "here", BootID: "boot-1"}, {ID: 2, Name: "there", BootID: "boot-2"}}
		},
	}
	t.Cleanup(func() { require.NotContains(t, w.logText(), "left no audit entry") })
	w.addAddOns()
	for _, c := range change {
		c(&w.deps)
	}
	w.start()
	w.people(ctx)
	return w
}

// start makes the API anew, as a node that has just started.
func (w *world) start() {
	w.t.Helper()
	w.api = New(complete(w.deps))
	w.handler = describedAnswers{next: w.api, fail: w.t.Errorf}
}

// Hashing is what a world would spend its time on; all of them share the two.
var shared struct {
	hashes             sync.Once
	adminPHC, peersPHC string
}

// people makes the first administrator, two tenants and one user of each role
// in each of them.
func (w *world) people(ctx context.Context) {
	shared.hashes.Do(func() {
		var err1, err2 error
		shared.adminPHC, err1 = w.auth.HashPassword(ctx, 0, adminPassword)
		shared.peersPHC, err2 = w.auth.HashPassword(ctx, 0, peerPassword)
		require.NoError(w.t, errors.Join(err1, err2))
	})
	home := domain.Tenant{ID: domain.TenantID(w.ids.Next()), Name: "default", CreatedAt: time.Now()}
	root := domain.User{
		ID: domain.UserID(w.ids.Next()), Username: "admin", PasswordHash: shared.adminPHC, PlatformAdmin: true, SessionVersion: 1, CreatedAt: time.Now(),
	}
	created, err := w.store.CreateFirstUser(ctx, home, root, domain.RoleAdmin)
	require.NoError(w.t, err)
	require.True(w.t, created)
	w.tenants["default"], w.users["admin"] = home.ID, root.ID
	for _, name := range []string{"acme", "beta"} {
		tenant := domain.Tenant{ID: domain.TenantID(w.ids.Next()), Name: name, CreatedAt: time.Now()}
		require.NoError(w.t, w.store.CreateTenant(ctx, tenant))
		w.tenants[name] = tenant.ID
		for _, role := range []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleEditor, domain.RoleScripter, domain.RoleAdmin} {
			u := domain.User{
				ID: domain.UserID(w.ids.Next()), Username: name + "-" + string(role), PasswordHash: shared.peersPHC, SessionVersion: 1, CreatedAt: time.Now(),
			}
			require.NoError(w.t, w.store.CreateUser(ctx, u, domain.Membership{TenantID: tenant.ID, UserID: u.ID, Role: role}))
			w.users[u.Username] = u.ID
		}
	}
}

// run is t.Run with the world's failures going to the subtest.
func (w *world) run(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		outer := w.t
		w.t = t
		defer func() { w.t = outer }()
		f(t)
	})
}

// as returns an access token for "acme/viewer", "platform" and the like.
func (w *world) as(who string) string {
	if who == "" {
		return ""
	}
	if token, ok := w.bearers[who]; ok {
		return token
	}
	username, tenant := strings.ReplaceAll(who, "/", "-"), strings.Split(who, "/")[0]
	if who == "platform" {
		username, tenant = "admin", "default"
	}
	// Beginning a session without a password saves the hash.
	s, err := w.auth.SwitchTenant(w.t.Context(), auth.Identity{Kind: auth.KindUser, User: w.users[username]}, tenant)
	require.NoError(w.t, err)
	w.bearers[who] = s.AccessToken
	return s.AccessToken
}

type lockedWriter struct{ w *world }

func (l lockedWriter) Write(p []byte) (int, error) {
	l.w.logMu.Lock()
	defer l.w.logMu.Unlock()
	return l.w.log.Write(p)
}

func (w *world) logText() string {
	w.logMu.Lock()
	defer w.logMu.Unlock()
	return w.log.String()
}

// answer is what came back.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
	log    string // of the server, when it is to blame
}

type header map[string]string

// call sends a request. body may be a string (sent as it is), nil, or anything
// that JSON can carry.
func (w *world) call(who, method, path string, body any, headers ...header) answer {
	w.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		require.NoError(w.t, err)
		reader = bytes.NewReader(raw)
	}
	if !strings.HasPrefix(path, "/api/") && !strings.HasPrefix(path, "//") {
		path = web.Base + path
	}
	req := httptest.NewRequestWithContext(w.t.Context(), method, strings.TrimPrefix(path, "/"+"/"), reader)
	if token := w.as(who); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if reader != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		for k, v := range maps.All(h) {
			req.Header.Set(k, v)
		}
	}
	return w.send(req)
}

// metrics asks for /metrics as a program on the node's machine does.
func (w *world) metrics() answer {
	w.t.Helper()
	req := httptest.NewRequestWithContext(w.t.Context(), "GET", "/metrics", nil)
	req.RemoteAddr = "127.0.0.1:4711"
	return w.send(req)
}

func (w *world) send(req *http.Request) answer {
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	a := answer{t: w.t, status: rec.Code, header: rec.Result().Header, body: rec.Body.Bytes()}
	if a.status >= 500 {
		a.log = w.logText()
	}
	return a
}

// is checks the status.
func (a answer) is(status int) answer {
	a.t.Helper()
	require.Equal(a.t, status, a.status, "%s\n%s", a.body, a.log)
	return a
}

// into decodes the body, which must have no unknown fields.
func into[T any](a answer) T {
	a.t.Helper()
	var v T
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.DisallowUnknownFields()
	require.NoError(a.t, dec.Decode(&v), "%s", a.body)
	return v
}

// problem checks an error answer and returns it.
func (a answer) problem(status int, code string) web.Problem {
	a.t.Helper()
	a.is(status)
	require.Equal(a.t, "application/problem+json", a.header.Get("Content-Type"))
	p := into[web.Problem](a)
	require.Equal(a.t, code, p.Code, "%s", a.body)
	require.Equal(a.t, status, p.Status)
	require.Equal(a.t, "urn:carillon:problem:"+code, p.Type)
	require.NotEmpty(a.t, p.Detail)
	require.NotEmpty(a.t, p.Title)
	require.Equal(a.t, a.header.Get("X-Request-Id"), p.Instance)
	return p
}

var (
	idPattern      = regexp.MustCompile(`"\d{15,}"`)
	instantPattern = regexp.MustCompile(`"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)
	requestPattern = regexp.MustCompile(`("instance": )"[0-9a-f]{16}"`)
	tokenPattern   = regexp.MustCompile(`"(ey[\w-]+\.[\w-]+\.[\w-]+|ck_[\w-]+|cjt_[\w-]+)"`)
)

// golden compares the body with testdata/NAME.json; what differs in every run
// is replaced first.
func (a answer) golden(name string) answer {
	a.t.Helper()
	var out bytes.Buffer
	require.NoError(a.t, json.Indent(&out, a.body, "", "  "), "%s", a.body)
	text := idPattern.ReplaceAllString(out.String(), `"<id>"`)
	text = instantPattern.ReplaceAllString(text, `"<instant>"`)
	text = requestPattern.ReplaceAllString(text, `$1"<request>"`)
	text = tokenPattern.ReplaceAllString(text, `"<secret>"`)
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(a.t, os.MkdirAll("testdata", 0o755))
		require.NoError(a.t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(a.t, err, "run go test with -update to write it")
	require.Equal(a.t, string(want), text, "run go test with -update if this is meant")
	return a
}

// executor makes an executor of the tenant.
func (w *world) executor(tenant, name string) domain.Executor {
	w.t.Helper()
	e := domain.Executor{ID: domain.ExecutorID(w.ids.Next()), TenantID: w.tenants[tenant], Name: name, CreatedAt: time.Now()}
	require.NoError(w.t, w.store.CreateExecutor(w.t.Context(), e))
	return e
}

// instance registers one with these handlers.
func (w *world) instance(e domain.Executor, name string, handlers ...string) domain.Instance {
	w.t.Helper()
	now := time.Now()
	p := store.RegisterInstanceParams{TTL: time.Minute, Instance: domain.Instance{
		ID: domain.InstanceID(w.ids.Next()), TenantID: e.TenantID, Executor: e.ID, BootID: "boot-" + name, Name: name, Host: "host", Address: "10.9.8.7",
		PID: 42, AppVersion: "1.2.3", Client: "go/0.1", Labels: map[string]string{"zone": "a"}, Handlers: handlers, Slots: 8,
		StartedAt: now, ConnectedAt: now, LastSeenAt: now,
	}}
	for _, h := range handlers {
		p.Handlers = append(p.Handlers, domain.Handler{
			TenantID: e.TenantID, Executor: e.ID, Name: h, Description: "Does " + h, InputSchema: []byte(`{"type":"object"}`),
			FirstSeenAt: now, LastSeenAt: now,
		})
	}
	i, err := storetest.RegisterInstance(w.t.Context(), w.store, p)
	require.NoError(w.t, err)
	return i
}

// jobBody is the smallest job of an executor.
func jobBody(name string, executor domain.Executor, change ...func(map[string]any)) map[string]any {
	body := map[string]any{
		"name": name, "executor": map[string]any{"id": executor.ID.String()}, "handler": "reconcile",
		"schedule": map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"},
	}
	for _, c := range change {
		c(body)
	}
	return body
}

// job makes a job over the API.
func (w *world) job(tenant, name string, executor domain.Executor, change ...func(map[string]any)) Job {
	w.t.Helper()
	return into[Job](w.call(tenant+"/editor", "POST", "/jobs", jobBody(name, executor, change...)).is(http.StatusCreated))
}

// ran makes a run of the job that has ended, with the given report.
func (w *world) ran(tenant string, job Job, report domain.Report) domain.Execution {
	w.t.Helper()
	run := into[Run](w.call(tenant+"/operator", "POST", "/jobs/"+job.ID+"/run", nil).is(http.StatusCreated))
	return w.ends(tenant, run.ID, report)
}

// ends starts a run that is there, and ends it.
func (w *world) ends(tenant, runID string, report domain.Report) domain.Execution {
	w.t.Helper()
	e := w.started(tenant, runID)
	report.ExecutionID, report.Fence = e.ID, e.Fence
	report.StartedAt = time.Now()
	res, err := w.store.FinishAttempts(w.t.Context(), []store.AttemptReport{{Tenant: e.TenantID, Executor: e.Executor, Report: report}})
	require.NoError(w.t, err)
	require.Equal(w.t, store.FinishStored, res[0].Code)
	return res[0].Execution
}

// started offers and grants the run to an instance of its executor.
func (w *world) started(tenant, runID string) domain.Execution {
	w.t.Helper()
	id, err := strconv.ParseInt(runID, 10, 64)
	require.NoError(w.t, err)
	v, err := w.store.FindExecution(w.t.Context(), w.tenants[tenant], domain.ExecutionID(id))
	require.NoError(w.t, err)
	instances, err := w.store.ListInstances(w.t.Context(), store.ListInstancesParams{Tenant: v.TenantID, Executor: v.Executor, Limit: 1})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, instances, "the executor needs an instance")
	res, err := w.store.OfferExecutions(w.t.Context(), []store.Offer{{
		Tenant: v.TenantID, ID: v.ID, Node: 1, Instance: instances[0].ID, Idempotent: true, Granted: true,
	}})
	require.NoError(w.t, err)
	require.Equal(w.t, store.OfferMade, res[0].Status)
	return res[0].Execution
}
