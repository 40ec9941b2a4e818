//go:build proof

package admin_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/internal/testenv"
)

const (
	minimalPython = "../proto/examples/minimal/executor.py"
	minimalGate   = "testdata/minimalgate.py"
)

// TestMinimalPythonExecutor: what SPEC.md says is enough for an executor of one
// short file, and every way a run can end there.
func TestMinimalPythonExecutor(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(minimalPython)
	require.NoError(t, err)
	written := 0
	_, program, _ := strings.Cut(string(source), "\nimport ") // below the head, which tells what it leaves out
	for line := range strings.Lines(program) {
		if strings.TrimSpace(line) != "" {
			written++
		}
	}
	require.LessOrEqual(t, written, 230, "lines with something in them, comments too: about 200")

	n := startNode(t, nil)
	p := startPython(t, n, minimalGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	beside := map[string]any{"blocking": "parallel"}
	job := n.newJob("shop", "gate", beside)

	killed := n.runNow(job, nil)
	n.until(killed, "running")
	n.do(http.MethodPost, "/api/v1/runs/"+killed+"/cancel", map[string]any{}, nil, 202)
	require.Equal(t, "cancelled", n.until(killed, "cancelled").ErrorKind)
	require.FileExists(t, p.gate+".cancelled")

	late := n.runNow(n.newJob("shop", "gate", map[string]any{"name": "late", "timeout": "100ms"}), nil)
	require.Equal(t, "timeout", n.until(late, "timed_out").ErrorKind)

	p.open()
	// Together these need more than the windows of the streams, both ways.
	large := []string{}
	for range 3 {
		large = append(large, n.runNow(job, map[string]any{"text": strings.Repeat("x", 130000), "times": 2}))
	}
	for _, id := range large {
		require.Equal(t, 1, n.until(id, "succeeded").Attempt)
	}
	require.Equal(t, "output_too_large", n.until(n.runNow(job, map[string]any{"text": "x", "times": 1 << 18}), "failed").ErrorKind)
	require.Equal(t, "retryable", n.until(n.runNow(job, map[string]any{"text": map[string]any{}, "times": 2}), "failed").ErrorKind)
}

// TestMinimalPythonExecutorOverTLS: as it is run by hand, inside TLS.
func TestMinimalPythonExecutorOverTLS(t *testing.T) {
	t.Parallel()
	certFile, keyFile := testenv.CertificateFiles(t)
	n := startNode(t, func(c *admin.Config) { c.ExecutorTLSCertFile, c.ExecutorTLSKeyFile = certFile, keyFile })
	startPython(t, n, minimalPython, "", "CARILLON_EXECUTOR_TLS_CA="+certFile)
	n.registered()
	require.JSONEq(t, `{"paid":true}`, string(n.until(n.runNow(n.newJob("shop", "pay", nil), nil), "succeeded").Output))
}

// TestMinimalPythonExecutorReconnects: one run goes on while no node is there,
// another ends meanwhile; neither starts twice, and the admin hears of both.
func TestMinimalPythonExecutorReconnects(t *testing.T) {
	t.Parallel()
	address, dir := freeAddress(t), t.TempDir()
	here := func(c *admin.Config) { c.ExecutorAddress, c.DataDir = address, dir }
	n := startNode(t, here)
	p := startPython(t, n, minimalGate, filepath.Join(t.TempDir(), "gate"))
	n.registered()
	id := n.runNow(n.newJob("shop", "gate", map[string]any{"onLost": "fail"}), nil)
	n.until(id, "running")
	n.stop()

	n = startNode(t, here)
	n.registered()
	require.Equal(t, "running", n.run(id).State)
	n.stop()
	p.open() // the result waits for the next node

	n = startNode(t, here)
	require.Equal(t, 1, n.until(id, "succeeded").Attempt)
	starts, err := os.ReadFile(p.gate + ".starts")
	require.NoError(t, err)
	require.Equal(t, "x", string(starts))
}

// TestMinimalPythonExecutorGivesUpItsLease: what runs is cancelled before the
// admin may give it to somebody else, and taken again after that.
func TestMinimalPythonExecutorGivesUpItsLease(t *testing.T) {
	t.Parallel()
	n, proxy := behindProxy(t)
	p := startPython(t, n, minimalGate, filepath.Join(t.TempDir(), "gate"), "CARILLON_EXECUTOR_ADDRESSES="+proxy.address())
	n.registered()
	retry := map[string]any{"onLost": "retry", "retry": map[string]any{"maxAttempts": 2, "delay": "1ms"}}
	id := n.runNow(n.newJob("shop", "gate", retry), nil)
	n.until(id, "running")
	proxy.hold()
	n.eventually(func() bool {
		_, err := os.Stat(p.gate + ".cancelled")
		return err == nil
	}, func() string { return "the handler was not cancelled" })
	p.open()
	proxy.pass()
	require.Equal(t, 2, n.until(id, "succeeded").Attempt)
}

// TestMinimalPythonExecutorIsKilled: without a journal the lease's end says
// that the attempt is lost, and the next process takes the retry.
func TestMinimalPythonExecutorIsKilled(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	gate := filepath.Join(t.TempDir(), "gate")
	first := startPython(t, n, minimalGate, gate)
	n.registered()
	retry := map[string]any{"onLost": "retry", "retry": map[string]any{"maxAttempts": 2, "delay": "1ms"}}
	id := n.runNow(n.newJob("shop", "gate", retry), nil)
	n.until(id, "running")
	first.signal(syscall.SIGKILL)
	require.Error(t, first.ended())
	startPython(t, n, minimalGate, gate).open()
	r := n.until(id, "succeeded")
	require.Equal(t, 2, r.Attempt)
	require.Equal(t, "lost", r.Attempts[0].State)
}
