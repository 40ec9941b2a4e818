//go:build proof

package admin_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// python is an executor in Python, proto/examples/python-executor, in a
// process of its own.
type python struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan error // one value: how it ended
	gate string     // the handler "gate" waits until this file exists
}

// startPython runs a script below admin/testdata or proto/examples. Every call
// is a new process with a new boot id; env is added to its environment.
func startPython(t *testing.T, n *node, script, gate string, env ...string) *python {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	require.NoError(t, err, "build/need.sh python")
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	p := &python{t: t, gate: gate, done: make(chan error, 1)}
	p.cmd = exec.Command(interpreter, script)
	p.cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "CARILLON_EXECUTOR_NAME=shop",
		"CARILLON_EXECUTOR_ADDRESSES="+n.admin.ExecutorAddress(), "CARILLON_EXECUTOR_TOKEN="+access.JoinToken, "GATE="+gate)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stderr = testWriter{t}
	require.NoError(t, p.cmd.Start())
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { p.signal(syscall.SIGKILL); _ = p.ended() })
	return p
}

func (p *python) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// ended waits for the end of the process and returns what Wait said.
func (p *python) ended() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		p.done <- err // for the next who asks
		return err
	case <-time.After(time.Minute):
		p.t.Fatal("the Python executor does not end")
		return nil
	}
}

// open lets the handler "gate" return.
func (p *python) open() {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(p.gate, nil, 0o600))
}

const (
	pythonShop = "../proto/examples/python-executor/shop.py"
	pythonGate = "testdata/gate.py"
)

// TestPythonExecutor is the wire without our SDK: every way a run can end.
func TestPythonExecutor(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	startPython(t, n, pythonShop, "")
	n.registered()
	retry := map[string]any{"maxAttempts": 3, "delay": "1h"}
	for name, c := range map[string]struct {
		handler string
		in      any
		change  map[string]any
		state   string
		kind    string
		attempt int
		output  string
		lines   []string
	}{
		"one step":  {"total", map[string]any{"prices": []int{3, 4}}, nil, "succeeded", "", 1, `{"total":7}`, []string{"added up", "prices:2"}},
		"two steps": {"pay", nil, nil, "succeeded", "", 1, `{"paid":true}`, []string{"began", "done"}},
		"permanent": {"total", map[string]any{"prices": []int{-1}}, map[string]any{"retry": retry}, "failed", "permanent", 1, "", nil},
		"retried":   {"fetch", nil, map[string]any{"retry": retry}, "succeeded", "", 3, `{"attempt":3}`, nil},
		"too large": {"copy", map[string]any{"text": "x", "times": 262144}, nil, "failed", "output_too_large", 1, "", nil},
		// Together they need more than the window of the command stream, both ways.
		"large output": {"copy", map[string]any{"text": strings.Repeat("x", 131000), "times": 2}, nil, "succeeded", "", 1, "", nil},
		"large input":  {"copy", map[string]any{"text": strings.Repeat("x", 250000), "times": 1}, nil, "succeeded", "", 1, "", nil},
		"timeout":      {"pay", map[string]any{"seconds": 3600}, map[string]any{"timeout": "100ms"}, "timed_out", "timeout", 1, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := n.in(t)
			id := n.runNow(n.newJob("shop", c.handler, c.change), c.in)
			r := n.until(id, c.state)
			require.Equal(t, c.kind, r.ErrorKind)
			require.Equal(t, c.attempt, r.Attempt)
			if c.output != "" {
				require.JSONEq(t, c.output, string(r.Output))
			}
			n.logContains(id, c.lines...)
		})
	}
	t.Run("cancel", func(t *testing.T) {
		n := n.in(t)
		id := n.runNow(n.newJob("shop", "pay", nil), map[string]any{"seconds": 3600})
		n.until(id, "running")
		n.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", map[string]any{}, nil, 202)
		require.Equal(t, "cancelled", n.until(id, "cancelled").ErrorKind)
	})
}

// in returns the node for a subtest.
func (n *node) in(t *testing.T) *node {
	other := *n
	other.t = t
	return &other
}

// TestPythonExecutorOverTLS: the same bytes, inside TLS.
func TestPythonExecutorOverTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile := testenv.CertificateFiles(t)
	n := startNode(t, func(c *admin.Config) { c.ExecutorTLSCertFile, c.ExecutorTLSKeyFile = certFile, keyFile })
	startPython(t, n, pythonShop, "", "CARILLON_EXECUTOR_TLS_CA="+certFile)
	n.registered()
	id := n.runNow(n.newJob("shop", "pay", nil), nil)
	n.until(id, "succeeded")
	n.logContains(id, "began", "done")
}

// TestPythonExecutorIsKilled: without a journal on disk, the lease's end says
// that the attempt is lost.
func TestPythonExecutorIsKilled(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	first := startPython(t, n, pythonGate, gate)
	n.registered()
	job := map[string]any{"onLost": "retry", "blocking": "parallel", "retry": map[string]any{"maxAttempts": 2, "delay": "1ms"}}
	retried := n.runNow(n.newJob("shop", "gate", job), nil)
	lost := n.runNow(n.newJob("shop", "gate", map[string]any{"name": "fails", "onLost": "fail"}), nil)
	n.until(retried, "running")
	n.until(lost, "running")
	first.signal(syscall.SIGKILL)
	require.Error(t, first.ended())
	startPython(t, n, pythonGate, gate).open()
	r := n.until(retried, "succeeded")
	require.Equal(t, 2, r.Attempt)
	require.Equal(t, "lost", r.Attempts[0].State)
	require.Equal(t, 1, n.until(lost, "lost").Attempt)
}

// TestPythonExecutorDrains: SIGTERM lets the handler finish, and nothing is
// taken any more.
func TestPythonExecutorDrains(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	p := startPython(t, n, pythonGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	job := n.newJob("shop", "gate", map[string]any{"blocking": "parallel"})
	id := n.runNow(job, nil)
	n.until(id, "running")
	p.signal(syscall.SIGTERM)
	n.instanceIs("draining")
	late := n.runNow(job, nil)
	p.open()
	require.Equal(t, 1, n.until(id, "succeeded").Attempt)
	n.logContains(id, "passed")
	require.NoError(t, p.ended())
	require.Equal(t, "due", n.run(late).State)
}

// TestPythonExecutorSaysWhatItHas: its inventory is complete, so a database
// that was put back ends the attempt that it calls running and that is over.
func TestPythonExecutorSaysWhatItHas(t *testing.T) {
	t.Parallel()
	address, dir := freeAddress(t), t.TempDir()
	start := func() *node {
		return startNode(t, func(c *admin.Config) { c.DataDir, c.ExecutorAddress = dir, address })
	}
	n := start()
	p := startPython(t, n, pythonGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	job := n.newJob("shop", "gate", map[string]any{"onLost": "fail"})
	id := n.runNow(job, nil)
	n.until(id, "running")
	n.stop()
	file := filepath.Join(dir, "carillon.db")
	backup, err := os.ReadFile(file)
	require.NoError(t, err)
	n = start()
	p.open()
	n.until(id, "succeeded")
	n.until(n.runNow(job, nil), "succeeded") // the acknowledgement was sent before its offer
	n.stop()

	require.NoError(t, os.WriteFile(file, backup, 0o600))
	n = start()
	require.True(t, n.history().Held)
	require.Equal(t, "running", n.run(id).State)
	n.do(http.MethodPost, "/api/v1/cluster/accept-history", nil, nil, 200)
	require.Equal(t, "db_rollback", n.until(id, "lost").Reason)
	n.until(n.runNow(job, nil), "succeeded")
}

// instanceIs waits until the executor's only instance is in the state.
func (n *node) instanceIs(state string) {
	n.t.Helper()
	var list struct{ Items []struct{ ID, State string } }
	n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
	path := "/api/v1/executors/" + list.Items[0].ID + "/instances"
	n.eventually(func() bool {
		n.do(http.MethodGet, path, nil, &list, 200)
		return len(list.Items) == 1 && list.Items[0].State == state
	}, func() string { return "want " + state })
}

// TestPythonExecutorKeepsResults: the handler ends while no node is there; the
// result goes to the next one that is.
func TestPythonExecutorKeepsResults(t *testing.T) {
	t.Parallel()
	address, dir := freeAddress(t), t.TempDir()
	here := func(c *admin.Config) { c.ExecutorAddress, c.DataDir = address, dir }
	n := startNode(t, here)
	p := startPython(t, n, pythonGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	id := n.runNow(n.newJob("shop", "gate", nil), nil)
	n.until(id, "running")
	n.stop()
	p.open()
	r := startNode(t, here).until(id, "succeeded")
	require.Equal(t, 1, r.Attempt)
	require.JSONEq(t, `{"passed":true}`, string(r.Output))
}

// TestPythonExecutorGivesUpItsLease: what runs is cancelled when no node
// renewed the lease, and another attempt can follow.
func TestPythonExecutorGivesUpItsLease(t *testing.T) {
	t.Parallel()
	n, proxy := behindProxy(t)
	p := startPython(t, n, pythonGate, filepath.Join(t.TempDir(), "gate"), "CARILLON_EXECUTOR_ADDRESSES="+proxy.address())
	n.registered()
	id := n.runNow(n.newJob("shop", "gate", map[string]any{
		"onLost": "retry", "retry": map[string]any{"maxAttempts": 2, "delay": "1ms"},
	}), nil)
	n.until(id, "running")
	proxy.hold()
	n.eventually(func() bool {
		why, err := os.ReadFile(p.gate + ".cancelled")
		return err == nil && string(why) == "1 lease_lost"
	}, func() string { return "the handler was not cancelled" })
	p.open()
	proxy.pass()
	require.Equal(t, 2, n.until(id, "succeeded").Attempt)
}

// TestPythonExecutorReportsTwice: a handler that ignores its cancellation is
// reported as running on, and again when it returns: the next run waits for that.
func TestPythonExecutorReportsTwice(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	p := startPython(t, n, pythonGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	job := n.newJob("shop", "deaf", map[string]any{"blocking": "serial", "timeout": "100ms"})
	first := n.runNow(job, nil)
	n.until(first, "timed_out")
	second := n.runNow(job, nil)
	n.eventually(func() bool { return n.run(second).Reason == "waiting_for_slot" }, func() string { return n.run(second).Reason })
	p.open()
	n.until(second, "succeeded")
	require.Equal(t, "timed_out", n.run(first).State, "the outcome stands")
	n.logContains(first, "hears nothing")
}
