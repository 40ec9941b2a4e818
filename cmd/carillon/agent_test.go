package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/carillon-sched/carillon/admin"
)

// site is an admin node with an executor for agents.
type site struct {
	*terminal
	node *admin.Admin
	data string
	key  string // an API key
}

func startSite(t *testing.T) *site {
	t.Helper()
	s := &site{data: t.TempDir()}
	var err error
	s.node, err = admin.New(t.Context(), admin.Config{
		DataDir: s.data, HTTPAddress: "127.0.0.1:0", ExecutorAddress: "127.0.0.1:0", AdminPassword: "tower-bell-64", Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.node.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	s.terminal = newTerminal(t)
	s.pipe("tower-bell-64\n", "login", "--url", s.node.URL(), "--username", "admin", "--password-stdin")
	return s
}

// must runs a command that has to succeed.
func (s *site) must(stdin string, args ...string) string {
	s.t.Helper()
	r := s.pipe(stdin, args...)
	require.Equal(s.t, 0, r.code, "%v: %s", args, r.stderr)
	return r.stdout
}

// agentLog is what an agent says.
type agentLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *agentLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *agentLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// listed is an executor in the list.
type listed struct {
	Name            string
	InstancesOnline int
}

// agent starts carillon agent for an executor and waits until it has registered.
func (s *site) agent(name string, flags ...string) *agentLog {
	s.t.Helper()
	access, err := s.node.Provision(s.t.Context(), name)
	require.NoError(s.t, err)
	s.key = strings.TrimSpace(s.must("", "api-key", "create", name))
	work, err := os.MkdirTemp("", "carillon-agent-e2e-") // t.TempDir is for its owner alone
	require.NoError(s.t, err)
	s.t.Cleanup(func() { require.NoError(s.t, os.RemoveAll(work)) })
	require.NoError(s.t, os.Chmod(work, 0o711))
	args := append([]string{
		"agent", "--addresses", s.node.ExecutorAddress(), "--executor", name, "--journal", s.t.TempDir(), "--work-dir", work,
	}, flags...)
	if os.Getuid() == 0 {
		args = append(args, "--run-as", "nobody")
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(s.env, "CARILLON_EXECUTOR_TOKEN="+access.JoinToken)
	log := &agentLog{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(s.t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		require.NoError(s.t, <-done, log.String())
	})
	require.Eventually(s.t, func() bool {
		var list struct{ Items []listed }
		s.get("/executors", &list)
		return slices.ContainsFunc(list.Items, func(e listed) bool { return e.Name == name && e.InstancesOnline > 0 })
	}, time.Minute, 50*time.Millisecond, "%s", log)
	return log
}

func (s *site) get(path string, out any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.node.URL()+"/api/v1"+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+s.key)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, json.Unmarshal(raw, out), "%s", raw)
}

// ended is what a run came to.
type ended struct {
	ID, State, ErrorKind, Error string
	Attempt                     int
	Output                      json.RawMessage
}

// ran runs a job and waits for its end.
func (s *site) ran(job, input string) (e ended) {
	s.t.Helper()
	r := s.run("job", "run", job, "--input", input, "--wait", "-o", "json")
	require.NoError(s.t, json.Unmarshal([]byte(r.stdout), &e), "%s%s", r.stdout, r.stderr)
	return e
}

func (s *site) job(name, executor, handler, more string) result {
	s.t.Helper()
	return s.pipe(fmt.Sprintf("name: %s\nexecutor: {name: %s}\nhandler: %s\nschedule: {kind: none}\n%s", name, executor, handler, more), "job", "create", "-f", "-")
}

// Everything is refused with its reason until both sides allow it.
func TestAgentIsOffOnBothSides(t *testing.T) {
	s := startSite(t)
	r := s.run("agent", "--addresses", s.node.ExecutorAddress(), "--executor", "x", "--token-file", keyFile(t))
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "nothing is allowed here")
	log := s.agent("callers", "--allow-http", "api.example.com")
	require.Contains(t, log.String(), "scripts are off (--allow-scripts)")

	r = s.pipe("true\n", "script", "push", "report", "-f", "-", "--language", "shell")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stderr, "scripts in shell are off for this tenant")
	r = s.job("call", "callers", "http.request", "")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stderr, "HTTP calls by agents are off for this tenant")

	s.must("", "script", "policy", "--languages", "shell", "--http", "--note", "a trial")
	s.must("true\n", "script", "push", "report", "-f", "-", "--language", "shell")
	r = s.job("report", "callers", "script.shell", "script: {name: report}\n")
	require.NotEqual(t, 0, r.code)
	require.Contains(t, r.stderr, "no instance of the executor \"callers\" has registered a handler \"script.shell\"")
	require.Equal(t, 0, s.job("call", "callers", "http.request", "").code)
	e := s.ran("call", `{"url":"https://example.org/"}`)
	require.Equal(t, []any{"failed", "permanent"}, []any{e.State, e.ErrorKind})
	require.Contains(t, e.Error, "this agent may not call example.org")
	s.must("", "script", "policy", "--http=false")
	e = s.ran("call", `{"url":"https://api.example.com/"}`)
	require.Contains(t, e.Error, "the admin refuses it: HTTP calls by agents are off for this tenant")
}

// The whole way of a script: written, run, changed, compared, restored, forged.
func TestAgentRunsScripts(t *testing.T) {
	s := startSite(t)
	s.must("", "script", "policy", "--languages", "shell,python", "--http")
	key := strings.TrimSpace(s.must("", "script", "key"))
	s.must("echo one; read -r in; printf '{\"in\":%s,\"args\":\"%s\"}' \"$in\" \"$*\"\n", "script", "push", "report", "-f", "-", "--language", "shell", "--note", "first")
	// Without root, scripts and other tests have the same user, whose processes the limit counts.
	s.agent("agents", "--allow-scripts", "shell,python", "--script-key", key, "--kill-grace", "1m", "--limit-processes", "0")
	require.Equal(t, 0, s.job("follows", "agents", "script.shell", "retry: {maxAttempts: 3, delay: 1ms}\nscript: {name: report, args: ['{{input.a}}', 'shard {{run.shardTotal}}']}\n").code)
	require.Equal(t, 0, s.job("pinned", "agents", "script.shell", "script: {name: report, revision: 1, args: [x]}\n").code)

	e := s.ran("follows", `{"a":"b c"}`)
	require.Equal(t, "succeeded", e.State, e.Error)
	require.JSONEq(t, `{"exitCode":0,"result":{"in":{"a":"b c"},"args":"b c shard 1"}}`, string(e.Output))
	require.EventuallyWithT(t, func(t *assert.CollectT) { // lines come beside the result
		logs := s.must("", "run", "logs", e.ID)
		assert.Contains(t, logs, "one")
		assert.Regexp(t, regexp.MustCompile(`script starts.*script_revision=1`), logs)
	}, time.Minute, 50*time.Millisecond)

	s.must("echo two >&2; exit 9\n", "script", "push", "report", "-f", "-", "--note", "breaks it")
	e = s.ran("follows", `{"a":1}`)
	require.Equal(t, []any{"failed", "retryable", 3, "exit code 9: two"}, []any{e.State, e.ErrorKind, e.Attempt, e.Error})
	require.Equal(t, "succeeded", s.ran("pinned", `{}`).State)
	require.Equal(t, "--- version 1\n+++ version 2\n@@ -1,1 +1,1 @@\n-echo one; read -r in; printf '{\"in\":%s,\"args\":\"%s\"}' \"$in\" \"$*\"\n+echo two >&2; exit 9\n", s.must("", "script", "diff", "report"))
	s.must("", "script", "revert", "report", "1", "--note", "as it was")
	require.Equal(t, "succeeded", s.ran("follows", `{"a":1}`).State)
	require.Regexp(t, regexp.MustCompile(`(?s)3 .*as it was.*2 .*breaks it.*1 .*first`), s.must("", "script", "versions", "report"))
	require.Contains(t, s.must("", "script", "show", "report"), "echo one")
	require.Equal(t, 5, s.run("script", "delete", "report", "--yes").code, "jobs use it")

	t.Run("cancelled", func(t *testing.T) {
		s.must("trap 'echo ends; exit 1' TERM\nsleep 1000 & echo runs; while :; do wait; done\n", "script", "push", "long", "-f", "-", "--language", "shell")
		require.Equal(t, 0, s.job("long", "agents", "script.shell", "script: {name: long}\n").code)
		var e ended
		require.NoError(t, json.Unmarshal([]byte(s.must("", "job", "run", "long", "-o", "json")), &e))
		require.Eventually(t, func() bool { return strings.Contains(s.must("", "run", "logs", e.ID), "runs") }, time.Minute, 20*time.Millisecond)
		s.must("", "run", "cancel", e.ID)
		require.Eventually(t, func() bool {
			s.get("/runs/"+e.ID, &e)
			return e.State == "cancelled"
		}, time.Minute, 20*time.Millisecond)
		require.Eventually(t, func() bool { return strings.Contains(s.must("", "run", "logs", e.ID), "ends") }, time.Minute, 20*time.Millisecond)
	})
	t.Run("forged", func(t *testing.T) {
		s.forge(`UPDATE script_versions SET spec = REPLACE(spec, 'echo one', 'echo forged')`)
		e := s.ran("pinned", `{}`)
		require.Equal(t, []any{"failed", "permanent", 1}, []any{e.State, e.ErrorKind, e.Attempt})
		require.Contains(t, e.Error, "no key that is trusted here has signed this revision")
	})
	t.Run("forbidden since", func(t *testing.T) {
		s.must("", "script", "policy", "--languages", "python")
		e := s.ran("pinned", `{}`)
		require.Equal(t, []any{"failed", "permanent"}, []any{e.State, e.ErrorKind})
		require.Contains(t, e.Error, "scripts in shell are off for this tenant")
	})
}

// forge changes rows behind the admin's back.
func (s *site) forge(statement string) {
	s.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(s.data, "carillon.db")+"?_pragma=busy_timeout(20000)")
	require.NoError(s.t, err)
	defer db.Close()
	_, err = db.ExecContext(s.t.Context(), statement)
	require.NoError(s.t, err)
}

func TestAgentMakesHTTPCalls(t *testing.T) {
	s := startSite(t)
	s.must("", "script", "policy", "--http")
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"asked":%q,"said":%s}`, r.Method+" "+r.URL.Path, body)
	}))
	defer server.Close()
	s.agent("callers", "--allow-http", "127.0.0.1", "--allow-http-net", "127.0.0.0/8")
	require.Equal(t, 0, s.job("call", "callers", "http.request", "retry: {maxAttempts: 2, delay: 1ms}\n").code)
	e := s.ran("call", fmt.Sprintf(`{"url":"%s/orders/{{input.id}}","body":{"run":"{{run.attempt}}"},"input":{"id":7}}`, server.URL))
	require.Equal(t, "succeeded", e.State, e.Error)
	require.Equal(t, 2, e.Attempt)
	var out struct{ JSON json.RawMessage }
	require.NoError(t, json.Unmarshal(e.Output, &out))
	require.JSONEq(t, `{"asked":"POST /orders/7","said":{"run":2}}`, string(out.JSON))
}
