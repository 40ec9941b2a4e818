package admin_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// starts are the runs that a handler has seen.
type starts struct {
	work time.Duration // that a run takes; fixed after construction

	mu   sync.Mutex
	seen []executor.Task // guarded by mu
	ends []time.Time     // guarded by mu
}

func (s *starts) handle(ctx context.Context) error {
	task := executor.TaskFrom(ctx)
	if s.work > 0 {
		select {
		case <-time.After(s.work):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, task)
	s.ends = append(s.ends, time.Now())
	return nil
}

func (s *starts) list() ([]executor.Task, []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]executor.Task(nil), s.seen...), append([]time.Time(nil), s.ends...)
}

// replace puts an object, whatever version it is at.
func (n *node) replace(path, body string) { n.t.Helper(); n.edit(http.MethodPut, path, body) }

// edit is a request with the header If-Match.
func (n *node) edit(method, path, body string) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.admin.URL()+path, strings.NewReader(body))
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("If-Match", "*")
	res, err := http.DefaultClient.Do(req)
	require.NoError(n.t, err)
	require.NoError(n.t, res.Body.Close())
	require.Equal(n.t, http.StatusOK, res.StatusCode)
}

// TestSchedulesEndToEnd holds fixed delays, calendars and backfills against a
// real node and a real executor.
func TestSchedulesEndToEnd(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			delayed, dated := starts{work: 200 * time.Millisecond}, starts{}
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "delayed", delayed.handle)
				executor.HandleFunc(ex, "dated", dated.handle)
			})

			t.Run("a fixed delay counts from the end of each run", func(t *testing.T) {
				const delay = 300 * time.Millisecond
				job := n.newJob("shop", "delayed", map[string]any{"name": "delayed", "schedule": map[string]any{"kind": "fixed_delay", "every": delay.String()}})
				require.Eventually(t, func() bool { seen, _ := delayed.list(); return len(seen) >= 5 }, time.Minute, 10*time.Millisecond)
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/pause", nil, nil, 200)
				seen, ends := delayed.list()
				for i := 1; i < len(seen); i++ {
					// The end is known by the database's clock as the node knows it, which
					// may be behind; counted from the start it would be 100 ms.
					require.GreaterOrEqual(t, seen[i].FireTime.Sub(ends[i-1]), delay-100*time.Millisecond, "run %d", i)
				}
			})

			t.Run("a calendar keeps a job from running until it is edited", func(t *testing.T) {
				now := time.Now().UTC()
				var calendar struct{ ID string }
				n.do(http.MethodPost, "/api/v1/calendars", map[string]any{"name": "freeze", "spec": map[string]any{"blackouts": []any{
					map[string]any{"from": now.Add(-time.Hour).Format(time.RFC3339), "to": now.Add(time.Hour).Format(time.RFC3339), "name": "moving house"},
				}}}, &calendar, 201)
				job := n.newJob("shop", "dated", map[string]any{"name": "frozen", "schedule": map[string]any{
					"kind": "fixed_rate", "every": "500ms", "calendars": []any{map[string]string{"name": "freeze"}},
				}})
				var list struct{ Items []run }
				runs := func(state string) int {
					n.do(http.MethodGet, "/api/v1/runs?jobId="+job+"&state="+state, nil, &list, 200)
					return len(list.Items)
				}
				require.Eventually(t, func() bool { return runs("excluded") >= 2 }, time.Minute, 50*time.Millisecond)
				require.Equal(t, "calendar", list.Items[0].Reason)
				require.Contains(t, list.Items[0].Message, "moving house")
				require.Zero(t, runs("succeeded"))
				n.replace("/api/v1/calendars/"+calendar.ID, `{"name":"freeze","spec":{}}`)
				require.Eventually(t, func() bool { return runs("succeeded") >= 2 }, time.Minute, 50*time.Millisecond)
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/pause", nil, nil, 200)
			})

			t.Run("a backfill hands each run its logical date", func(t *testing.T) {
				job := n.newJob("shop", "dated", map[string]any{"name": "daily", "schedule": map[string]any{"kind": "cron", "expr": "0 2 * * *", "zone": "Asia/Shanghai"}})
				var b struct {
					ID, State                   string
					Planned, Created, Succeeded int
				}
				n.do(http.MethodPost, "/api/v1/jobs/"+job+"/backfill", map[string]any{
					"from": "2026-03-01T00:00:00+08:00", "to": "2026-03-06T00:00:00+08:00", "concurrency": 2,
				}, &b, 201)
				require.Equal(t, 5, b.Planned)
				require.Eventually(t, func() bool {
					n.do(http.MethodGet, "/api/v1/backfills/"+b.ID, nil, &b, 200)
					return b.State == "done"
				}, time.Minute, 50*time.Millisecond)
				require.Equal(t, []int{5, 5}, []int{b.Created, b.Succeeded})
				want := map[string]bool{}
				for day := 1; day <= 5; day++ {
					want[time.Date(2026, 3, day, 2, 0, 0, 0, time.FixedZone("", 8*3600)).UTC().String()] = true
				}
				seen, _ := dated.list()
				for _, task := range seen {
					if task.JobName == "daily" {
						require.Equal(t, "backfill", task.Cause)
						require.True(t, want[task.FireTime.UTC().String()], "%s", task.FireTime)
						delete(want, task.FireTime.UTC().String())
					}
				}
				require.Empty(t, want, "each date once")
			})
		})
	}
}
