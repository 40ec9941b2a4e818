package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// process is an executor that a test stops as SIGTERM does.
type process struct {
	name    string
	stopped func()
	begun   chan int      // attempt of each handler that begins
	goOn    chan struct{} // lets handlers succeed
}

// startProcess runs an executor with DrainTimeout 0, so that a stop interrupts
// what runs. Its handlers run until their context ends, or goOn is closed.
func (n *node) startProcess(name string) *process {
	n.t.Helper()
	access, err := n.admin.Provision(n.t.Context(), "shop")
	require.NoError(n.t, err)
	ex, err := executor.New(executor.Config{
		Name: "shop", InstanceName: name, Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(access.JoinToken),
		JournalDir: n.t.TempDir(), DrainTimeout: -1, Logger: slog.New(slog.NewTextHandler(testWriter{n.t}, nil)),
	})
	require.NoError(n.t, err)
	p := &process{name: name, begun: make(chan int, 10), goOn: make(chan struct{})}
	handler := func(give func(ctx context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error {
			executor.Logger(ctx).Info("begun by " + name)
			p.begun <- executor.TaskFrom(ctx).Attempt
			select {
			case <-p.goOn:
				return nil
			case <-ctx.Done():
				return give(ctx)
			}
		}
	}
	gives := handler(func(ctx context.Context) error { return fmt.Errorf("copy the shops: %w", ctx.Err()) })
	executor.HandleFunc(ex, "safe", gives, executor.Idempotent())
	executor.HandleFunc(ex, "once", gives)
	executor.HandleFunc(ex, "breaks", handler(func(context.Context) error { return errors.New("half a file is left") }), executor.Idempotent())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	over := false
	p.stopped = func() {
		if cancel(); !over {
			over = true
			require.NoError(n.t, <-done)
		}
	}
	n.t.Cleanup(p.stopped)
	select {
	case <-ex.Ready():
	case err := <-done:
		n.t.Fatal(err)
	}
	return p
}

// TestAStopCostsNoAttempt: an executor that stops interrupts its handlers. What
// may be repeated goes on with another one, though the job has one attempt
// only; what may not fails, and says why; and an error of the handler's own
// counts as ever.
func TestAStopCostsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			first := n.startProcess("first")
			runs := map[string]string{}
			begin := func(name, handler string, change map[string]any) {
				change["name"] = name
				runs[name] = n.runNow(n.newJob("shop", handler, change), nil)
				require.Equal(t, 1, <-first.begun)
			}
			begin("safe", "safe", map[string]any{"sendRetry": map[string]any{"maxSends": 1}})
			begin("asked", "once", map[string]any{"onLost": "retry"})
			begin("once", "once", map[string]any{})
			begin("forbidden", "safe", map[string]any{"onLost": "fail"})
			begin("twice", "once", map[string]any{"retry": map[string]any{"maxAttempts": 2, "delay": "10ms"}})
			begin("breaks", "breaks", map[string]any{})
			second := n.startProcess("second")
			first.stopped()

			for _, name := range []string{"once", "forbidden"} {
				r := n.until(runs[name], "failed")
				require.Equal(t, "stopping", r.ErrorKind)
				require.Equal(t, "executor_stopped", r.Reason)
				require.Equal(t, 1, r.Attempt)
				require.Contains(t, r.Message, "does not allow to repeat")
			}
			r := n.until(runs["breaks"], "failed")
			require.Equal(t, "handler_failed", r.Reason)
			require.Equal(t, "executor is stopping: half a file is left", r.Error)

			for range 3 {
				require.Equal(t, 2, <-second.begun)
			}
			close(second.goOn)
			for name, state := range map[string]string{"safe": "cancelled", "asked": "cancelled", "twice": "failed"} {
				r := n.until(runs[name], "succeeded")
				require.Equal(t, 2, r.Attempt, name)
				require.Zero(t, r.FailedSends, name)
				require.Len(t, r.Attempts, 2, name)
				require.Equal(t, state, r.Attempts[0].State, name)
				require.Equal(t, "executor is stopping: copy the shops: context canceled", r.Attempts[0].Error, name)
				var more struct{ MaxAttempts int }
				n.do(http.MethodGet, "/api/v1/runs/"+runs[name], nil, &more, 200)
				require.Equal(t, 2, more.MaxAttempts, name)
				n.logContains(runs[name], "begun by first", "begun by second")
			}
		})
	}
}
