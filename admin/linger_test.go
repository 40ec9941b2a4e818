package admin_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestTheNextRunWaitsForAHandlerThatDoesNotListen: promise P6 on the whole path,
// on both databases.
func TestTheNextRunWaitsForAHandlerThatDoesNotListen(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var live, beside atomic.Int32
			release := make(chan struct{})
			n.startExecutor("shop", func(c *executor.Config) { c.Slots, c.KillGrace = 2, 100*time.Millisecond }, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "deaf", func(context.Context) error {
					if live.Add(1) > 1 {
						beside.Add(1)
					}
					defer live.Add(-1)
					<-release
					return nil
				})
			})
			job := n.newJob("shop", "deaf", map[string]any{"blocking": "serial", "timeout": "300ms"})
			first := n.runNow(job, nil)
			n.until(first, "timed_out")
			second := n.runNow(job, nil)
			explained := func(id, words string) {
				var why struct{ Summary struct{ En string } }
				n.eventually(func() bool {
					n.do(http.MethodGet, "/api/v1/runs/"+id+"/explain", nil, &why, 200)
					return strings.Contains(why.Summary.En, words)
				}, func() string { return why.Summary.En })
			}
			explained(second, "run "+first+" before it ended as timed_out")
			explained(first, "and still runs on instance")

			close(release)
			n.until(second, "succeeded")
			require.Zero(t, beside.Load())
			r := n.until(first, "timed_out")
			require.Equal(t, "timeout", r.Reason, "the outcome stands")
			explained(first, "It ended as timed_out after one attempt, because it ran longer than the job's timeout.")
		})
	}
}

// TestAProcessThatDiesWithAHandlerThatDoesNotListen: its successor with the same
// journal says so, and the next run need not wait for the lease's end.
func TestAProcessThatDiesWithAHandlerThatDoesNotListen(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	w := newWorker(t, n, n.admin.ExecutorAddress())
	n.registered()
	job := n.newJob("shop", "till", map[string]any{"blocking": "serial", "timeout": "300ms"})
	first := n.runNow(job, nil)
	w.entered()
	n.until(first, "timed_out")
	second := n.runNow(job, nil)
	n.eventually(func() bool { return n.run(second).Reason == "waiting_for_slot" }, func() string { return n.run(second).Reason })
	w.kill()
	killed := time.Now()
	w.start()
	w.entered()
	t.Logf("the next run started %s after the kill", time.Since(killed).Round(time.Millisecond))
	require.Equal(t, []string{first + "/1", second + "/1"}, w.witness())
	w.say("go")
	require.Equal(t, "timed_out", n.run(first).State, "the outcome stands")
}
