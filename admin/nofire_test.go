package admin_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// A node with --no-fire shows and edits what a database holds. Nothing of it starts
// until a node without it comes.
func TestNoFire(t *testing.T) {
	t.Parallel()
	first := startNode(t, nil)
	var calls atomic.Int64
	handlers := func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(context.Context) error { calls.Add(1); return nil })
	}
	first.startExecutor("shop", nil, handlers)
	job := first.newJob("shop", "tick", map[string]any{
		"schedule": map[string]any{"kind": "fixed_rate", "every": "1s", "zone": "UTC"}, "dispatchTimeout": "1h",
	})
	first.eventually(func() bool { return calls.Load() > 0 }, func() string { return "nothing fires" })
	first.stop()
	before := calls.Load()

	copied := startNode(t, func(c *admin.Config) { c.DataDir, c.NoFire = first.dir, true })
	var ready struct{ Held string }
	copied.do(http.MethodGet, "/readyz", nil, &ready, 200)
	require.Equal(t, "no_fire", ready.Held)
	waiting := copied.runNow(job, nil)
	copied.do(http.MethodPost, "/api/v1/jobs/"+job+"/pause", map[string]any{"note": "edited in the copy"}, nil, 200)
	var r run
	copied.do(http.MethodGet, "/api/v1/runs/"+waiting, nil, &r, 200)
	require.Equal(t, "due", r.State)
	copied.stop()
	require.Equal(t, before, calls.Load())

	began := time.Now()
	again := startNode(t, func(c *admin.Config) { c.DataDir = first.dir })
	again.startExecutor("shop", nil, handlers)
	again.until(waiting, "succeeded")
	var started struct{ StartedAt time.Time }
	again.do(http.MethodGet, "/api/v1/runs/"+waiting, nil, &started, 200)
	require.False(t, started.StartedAt.Before(began.Add(-time.Second)))
}
