package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// databases are the two that every path is tested on.
var databases = map[string]func(t *testing.T, dir string) string{
	"sqlite": func(t *testing.T, dir string) string { return "sqlite:" + gormtest.SQLiteIn(t, dir) },
	"mysql":  func(t *testing.T, _ string) string { return "mysql:" + testenv.Database(t) },
}

const password = "a long test password"

// node is one running admin.
type node struct {
	t     *testing.T
	admin *admin.Admin
	url   string // of its API
	dir   string // the data directory
	token string
	stop  func()
}

// key makes an API key with a role.
func (n *node) key(name, role string) string {
	n.t.Helper()
	var made struct{ Secret string }
	n.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": name, "role": role}, &made, 201)
	return made.Secret
}

// startNode runs an admin until the test ends, or until stop is called.
func startNode(t *testing.T, change func(*admin.Config)) *node {
	t.Helper()
	dir := t.TempDir()
	config := admin.Config{
		DataDir: dir, HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", AdminPassword: password,
		Webhook: admin.WebhookConfig{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Logger:  slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	if change != nil {
		change(&config)
	}
	a, err := admin.New(t.Context(), config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n := &node{t: t, admin: a, url: a.URL(), dir: config.DataDir}
	var once sync.Once
	n.stop = func() {
		once.Do(func() {
			cancel()
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(time.Minute):
				t.Error("the node does not stop")
			}
		})
	}
	t.Cleanup(n.stop)
	n.login()
	return n
}

// set gives settings of add-ons further values.
func set(c *admin.Config, values admin.Settings) {
	all := maps.Clone(c.AddOns)
	if all == nil {
		all = admin.Settings{}
	}
	maps.Copy(all, values)
	c.AddOns = all
}

// testWriter shows log lines with the test that they belong to.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Helper()
	defer func() { _ = recover() }() // a line after the end of the test
	w.t.Log(string(bytes.TrimRight(p, "\n")))
	return len(p), nil
}

func (n *node) login() {
	n.t.Helper()
	var session struct{ AccessToken string }
	n.do(http.MethodPost, "/api/v1/auth/login", map[string]string{"username": "admin", "password": password}, &session, 200)
	n.token = session.AccessToken
}

// do calls the API, expects the status and decodes the answer.
func (n *node) do(method, path string, in, out any, status int) {
	n.t.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		require.NoError(n.t, err)
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, body)
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	if n.token != "" {
		req.Header.Set("Authorization", "Bearer "+n.token)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(n.t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(n.t, err)
	require.Equal(n.t, status, res.StatusCode, "%s %s: %s", method, path, raw)
	if out != nil {
		require.NoError(n.t, json.Unmarshal(raw, out), "%s", raw)
	}
}

// run is what the tests look at in a run.
type run struct {
	ID, JobID, State, Reason, Message, Cause, ErrorKind, Error string
	FireAt                                                     time.Time
	Attempt, Fence, FailedSends                                int
	Output                                                     json.RawMessage
	Attempts                                                   []struct {
		Number int
		State  string
		Error  string
	}
}

// newJob creates a job without a schedule, changed as told, and returns its id.
func (n *node) newJob(executorName, handler string, change map[string]any) string {
	n.t.Helper()
	var list struct {
		Items []struct{ ID, Name string }
	}
	n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
	id := ""
	for _, e := range list.Items {
		if e.Name == executorName {
			id = e.ID
		}
	}
	job := map[string]any{
		"name": n.t.Name() + "/" + handler, "executor": map[string]string{"id": id}, "handler": handler,
		"schedule": map[string]any{"kind": "none", "zone": "UTC"},
	}
	for k, v := range change {
		job[k] = v
	}
	var made struct{ ID string }
	n.do(http.MethodPost, "/api/v1/jobs", job, &made, 201)
	return made.ID
}

// eachSecond creates a job for each handler that fires each second, so many times from
// begin on. All of them exist well before begin, however busy the machine is: a job owes no
// fire time from before it existed. Jobs that came too late are deleted, and may have run.
func (n *node) eachSecond(executorName string, handlers []string, fires int, change map[string]any) (begin time.Time, ids []string) {
	n.t.Helper()
	for lead := 3 * time.Second; lead < time.Minute; lead *= 2 {
		begin, ids = time.Now().Add(lead).Truncate(time.Second).UTC(), nil
		job := map[string]any{"blocking": "parallel", "schedule": map[string]any{
			"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC",
			"startAt": begin.Format(time.RFC3339Nano), "endAt": begin.Add(time.Duration(fires-1)*time.Second + 500*time.Millisecond).Format(time.RFC3339Nano),
		}}
		maps.Copy(job, change)
		for i, handler := range handlers {
			job["name"] = fmt.Sprintf("job %d, %s ahead", i, lead)
			ids = append(ids, n.newJob(executorName, handler, job))
		}
		if time.Until(begin) > lead/4 {
			return begin, ids
		}
		for _, id := range ids {
			n.do(http.MethodDelete, "/api/v1/jobs/"+id, nil, nil, 204)
		}
	}
	n.t.Fatalf("%d jobs cannot be created within a minute", len(handlers))
	return begin, ids
}

// number is an id as handlers see it.
func number(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	require.NoError(t, err)
	return n
}

// runNow asks for a run and waits until it is in one of the states.
func (n *node) runNow(job string, in any) string {
	n.t.Helper()
	var r run
	n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run", map[string]any{"input": in}, &r, 201)
	return r.ID
}

// until polls a run until it is in the state, and returns it.
func (n *node) until(id, state string) run {
	n.t.Helper()
	var r run
	reached := func() bool {
		r = run{}
		n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &r, 200)
		return r.State == state
	}
	n.eventually(reached, func() string {
		return fmt.Sprintf("run %s is %s (%s %s %s), want %s", id, r.State, r.Reason, r.Message, r.Error, state)
	})
	return r
}

// eventually polls until the condition holds, for at most a minute.
func (n *node) eventually(holds func() bool, otherwise func() string) {
	n.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			n.t.Fatal(otherwise())
		}
	}
}

// startExecutor runs an application with the handlers that register adds.
func (n *node) startExecutor(name string, change func(*executor.Config), register func(*executor.Executor)) *executor.Executor {
	n.t.Helper()
	access, err := n.admin.Provision(n.t.Context(), name)
	require.NoError(n.t, err)
	config := executor.Config{
		Name: name, Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(access.JoinToken),
		JournalDir: n.t.TempDir(), Logger: slog.New(slog.NewTextHandler(testWriter{n.t}, nil)),
	}
	if change != nil {
		change(&config)
	}
	ex, err := executor.New(config)
	require.NoError(n.t, err)
	register(ex)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	n.t.Cleanup(func() { cancel(); require.NoError(n.t, <-done) })
	select {
	case <-ex.Ready():
	case <-time.After(30 * time.Second):
		n.t.Fatal("the executor did not register")
	}
	return ex
}
