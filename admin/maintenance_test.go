package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// runsOf are the newest runs of a job.
func (n *node) runsOf(job string) []run {
	n.t.Helper()
	var page struct{ Items []run }
	n.do(http.MethodGet, "/api/v1/runs?limit=200&jobId="+job, nil, &page, 200)
	return page.Items
}

// TestMaintenance: from the first run on that waits for its end nothing starts, and
// then what waited starts, one run stands for the fire times that passed, and none of
// them counts as missed.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	var starts atomic.Int64
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(context.Context) error { starts.Add(1); return nil })
	})
	job := n.newJob("shop", "tick", map[string]any{"schedule": map[string]any{"kind": "fixed_rate", "every": "1s"}})
	n.eventually(func() bool { return starts.Load() > 0 }, func() string { return "nothing starts" })

	n.do(http.MethodPut, "/api/v1/maintenance", map[string]any{"mode": "wait", "reason": "new disks"}, nil, 200)
	var waits run
	n.eventually(func() bool {
		runs := n.runsOf(job)
		i := slices.IndexFunc(runs, func(r run) bool { return r.Reason == "maintenance" })
		if i >= 0 {
			waits = runs[i]
		}
		return i >= 0
	}, func() string { return "no run waits" })
	require.Equal(t, "due", waits.State)
	require.Equal(t, "maintenance of the tenant: new disks", waits.Message)
	before := starts.Load()
	n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run", nil, nil, 409)
	passed := waits.FireAt.Add(9 * time.Second) // longer than the misfire threshold
	n.eventually(func() bool { return time.Now().After(passed) }, func() string { return "" })
	require.Equal(t, before, starts.Load(), "something started")
	var meant run
	n.do(http.MethodPost, "/api/v1/jobs/"+job+"/run?duringMaintenance=true", nil, &meant, 201)
	require.Contains(t, n.scrape(), "\ncarillon_maintenance 1\n")

	n.do(http.MethodDelete, "/api/v1/maintenance", nil, nil, 200)
	n.until(waits.ID, "succeeded")
	n.until(meant.ID, "succeeded")
	count := map[string]int{}
	n.eventually(func() bool {
		clear(count)
		for _, r := range n.runsOf(job) {
			count[r.State+" "+r.Reason]++
			if r.State == "succeeded" && r.FireAt.After(passed) {
				count["on time"]++
			}
		}
		return count["on time"] > 0 && count["excluded maintenance"] > 0
	}, func() string { return fmt.Sprint("nothing stands for the fire times that passed: ", count) })
	for state := range count {
		require.NotContains(t, state, "missed")
	}
}

type shownInstance struct{ ID, Name, State, DrainedBy string }

func (n *node) shownInstance(of string) shownInstance {
	n.t.Helper()
	var executors, instances struct{ Items []shownInstance }
	n.do(http.MethodGet, "/api/v1/executors", nil, &executors, 200)
	for _, e := range executors.Items {
		if e.Name == of {
			n.do(http.MethodGet, "/api/v1/executors/"+e.ID+"/instances", nil, &instances, 200)
		}
	}
	require.NotEmpty(n.t, instances.Items)
	return instances.Items[0]
}

// TestDrainingAnInstance: what runs there goes on, nothing new comes, until it is
// undone; who is removed does not come back, and the answer says what becomes of its
// run.
func TestDrainingAnInstance(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
			entered <- struct{}{}
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	job := n.newJob("shop", "tick", map[string]any{"blocking": "parallel"})
	first := n.runNow(job, nil)
	<-entered
	i := n.shownInstance("shop")
	require.Equal(t, "online", i.State)
	n.do(http.MethodPut, "/api/v1/instances/"+i.ID+"/drain", nil, nil, 200)
	require.Equal(t, []any{"draining", "admin"}, []any{n.shownInstance("shop").State, n.shownInstance("shop").DrainedBy})
	n.eventually(func() bool { return n.drains() }, func() string { return "the node does not hear of it" })
	second := n.runNow(job, nil)
	n.eventually(func() bool {
		var r run
		n.do(http.MethodGet, "/api/v1/runs/"+second, nil, &r, 200)
		return r.Reason == "waiting_for_instance"
	}, func() string { return "the second run does not wait" })
	release <- struct{}{}
	n.until(first, "succeeded")
	require.Empty(t, entered, "nothing else started")

	n.do(http.MethodDelete, "/api/v1/instances/"+i.ID+"/drain", nil, nil, 200)
	<-entered
	var removed struct {
		Instance shownInstance
		Runs     []struct{ ID, State, Then string }
	}
	n.until(second, "running")
	n.do(http.MethodDelete, "/api/v1/instances/"+i.ID, nil, &removed, 200)
	require.Len(t, removed.Runs, 1)
	require.Equal(t, []string{second, "running", "lost"}, []string{removed.Runs[0].ID, removed.Runs[0].State, removed.Runs[0].Then})
	n.until(second, "lost")
	n.do(http.MethodPut, "/api/v1/instances/"+i.ID+"/drain", nil, nil, 409)
}

// drains reports whether the node's session is drained.
func (n *node) drains() bool {
	n.t.Helper()
	return strings.Contains(n.scrape(), "\ncarillon_sessions_draining 1\n")
}
