package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	"github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// limitedCluster returns what starts nodes on one database.
func limitedCluster(t *testing.T) (start func() *node) {
	dsn := "mysql:" + testenv.Database(t)
	key := t.TempDir() + "/sealing.key"
	return func() *node {
		return startNode(t, func(c *admin.Config) { c.Database, c.SealingKeyFile = dsn, key })
	}
}

// TestALaterRunCoversTheEarlierOne on two nodes with a real application: the
// handler of the covered run is told why, what waited between is discarded, and
// the last one runs.
func TestALaterRunCoversTheEarlierOne(t *testing.T) {
	t.Parallel()
	start := limitedCluster(t)
	a, b := start(), start()
	entered, causes := make(chan string, 9), make(chan error, 9)
	a.startExecutor("shop", func(c *executor.Config) { c.Slots = 1 }, func(ex *executor.Executor) {
		executor.Handle(ex, "mirror", func(ctx context.Context, in greeting) (struct{}, error) {
			entered <- in.Name
			if in.Name == "last" {
				return struct{}{}, nil
			}
			<-ctx.Done()
			<-time.After(500 * time.Millisecond) // it tidies up
			causes <- context.Cause(ctx)
			return struct{}{}, ctx.Err()
		}, executor.Priority(7), executor.Blocking(executor.CoverEarly))
	})
	job := b.newJob("shop", "mirror", map[string]any{"blocking": "cover_early"})
	first := a.runNow(job, greeting{"first"})
	require.Equal(t, "first", <-entered)
	between := b.runNow(job, greeting{"between"})
	last := a.runNow(job, greeting{"last"})
	r := a.until(first, "cancelled")
	require.Equal(t, "covered", r.Reason)
	require.Error(t, <-causes)
	require.Equal(t, "last", <-entered)
	b.until(last, "succeeded")
	require.Equal(t, "covered", b.until(between, "discarded").Reason)

	var declared struct {
		Items []struct {
			Source, Blocking string
			Priority         int
		}
	}
	a.do(http.MethodGet, "/api/v1/jobs?q=mirror", nil, &declared, 200)
	require.Len(t, declared.Items, 2)
	for _, j := range declared.Items {
		require.Equal(t, "cover_early", j.Blocking)
		if j.Source == "code" {
			require.Equal(t, 7, j.Priority)
		}
	}
}

// TestALimitHoldsOnAllNodes: runs asked for on two nodes at once, on an
// executor with room for many; never more than the limit go on, and all have
// their turn.
func TestALimitHoldsOnAllNodes(t *testing.T) {
	t.Parallel()
	const runs, most = 24, 3
	start := limitedCluster(t)
	a := start()
	var mu sync.Mutex
	on, peak := 0, 0
	for range 2 {
		a.startExecutor("shop", func(c *executor.Config) { c.Slots = 16 }, func(ex *executor.Executor) {
			executor.HandleFunc(ex, "squeeze", func(context.Context) error {
				mu.Lock()
				on++
				peak = max(peak, on)
				mu.Unlock()
				<-time.After(20 * time.Millisecond) // the work
				mu.Lock()
				on--
				mu.Unlock()
				return nil
			})
		})
	}
	var executors struct{ Items []struct{ ID string } }
	a.do(http.MethodGet, "/api/v1/executors", nil, &executors, 200)
	path := "/api/v1/executors/" + executors.Items[0].ID + "/limit"
	a.do(http.MethodPut, path, map[string]any{"maxRunning": most}, nil, 200)
	b := start()
	job := a.newJob("shop", "squeeze", map[string]any{"blocking": "parallel"})
	var ids []string
	for i := range runs {
		n := []*node{a, b}[i%2]
		ids = append(ids, n.runNow(job, nil))
	}
	for _, id := range ids {
		b.until(id, "succeeded")
	}
	require.LessOrEqual(t, peak, most)
	require.Positive(t, peak)
	var limits struct {
		Items []struct{ Kind, MaxRunning, Running, Waiting any }
	}
	b.do(http.MethodGet, "/api/v1/limits", nil, &limits, 200)
	require.Equal(t, "[{executor 3 0 0}]", fmt.Sprint(limits.Items))
}
