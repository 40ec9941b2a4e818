package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// TestRunsThatPileUp checks the whole path on both databases. The handler of a serial job
// takes four times the interval. API, explanations, bound and alert say so until the queue
// is empty.
func TestRunsThatPileUp(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "slow", func(ctx context.Context) error {
					select {
					case <-time.After(400 * time.Millisecond):
					case <-ctx.Done():
					}
					return nil
				})
			})
			id := n.newJob("shop", "slow", map[string]any{"maxWaiting": 5, "schedule": map[string]any{"kind": "fixed_rate", "every": "100ms"}})
			var job struct {
				Waiting, MaxWaiting int
				PilesUp             bool
			}
			get := func() { n.do(http.MethodGet, "/api/v1/jobs/"+id, nil, &job, 200) }
			n.eventually(func() bool { get(); return job.PilesUp }, func() string { return fmt.Sprint(job) })
			require.Equal(t, 5, job.MaxWaiting)
			require.GreaterOrEqual(t, job.Waiting, 3)
			require.LessOrEqual(t, job.Waiting, 5)

			var runs struct {
				Items []struct{ ID, State, Reason string }
			}
			find := func(of string) (run string) {
				n.do(http.MethodGet, "/api/v1/runs?jobId="+id+"&limit=200", nil, &runs, 200)
				for _, r := range runs.Items {
					if r.Reason == of {
						run = r.ID
					}
				}
				return run
			}
			explained := func(reason, words string) {
				t.Helper()
				var why struct{ Summary struct{ En string } }
				n.eventually(func() bool {
					run := find(reason)
					if run != "" {
						n.do(http.MethodGet, "/api/v1/runs/"+run+"/explain", nil, &why, 200)
					}
					return strings.Contains(why.Summary.En, words)
				}, func() string { return why.Summary.En })
			}
			explained("waiting_for_slot", "runs take longer than the interval, and ")
			explained("queue_full", "It did not run, because as many runs of the job waited for earlier ones as may (maxWaiting).")

			var list struct {
				Items []struct{ Kind, State, Severity string }
			}
			incident := func() string {
				n.do(http.MethodGet, "/api/v1/alert-incidents", nil, &list, 200)
				for _, i := range list.Items {
					if i.Kind == "runs_pile_up" {
						return i.State + " " + i.Severity
					}
				}
				return ""
			}
			n.eventually(func() bool { return incident() == "open warning" }, func() string { return fmt.Sprint(list) })

			n.do(http.MethodPost, "/api/v1/jobs/"+id+"/pause", map[string]any{}, nil, 200)
			n.eventually(func() bool { return incident() == "resolved warning" }, func() string { return fmt.Sprint(list) })
			get()
			require.Zero(t, job.Waiting)
			require.False(t, job.PilesUp)
		})
	}
}
