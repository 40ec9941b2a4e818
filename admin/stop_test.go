package admin_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// events is what happened, in its order, as handlers and the test saw it.
type events struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (e *events) add(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, what)
}

func (e *events) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = nil
}

func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.list...)
}

// TestWhoIsStoppedHasStopped: kill, timeout and cover reach the handler with
// their cause, and a run is said to have ended after its handler has.
func TestWhoIsStoppedHasStopped(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var seen events
			begun := make(chan struct{}, 10)
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "listens", func(ctx context.Context) error {
					seen.add("begins")
					begun <- struct{}{}
					<-ctx.Done()
					for _, cause := range []error{executor.ErrKilled, executor.ErrTimeout} {
						if errors.Is(context.Cause(ctx), cause) {
							seen.add("told: " + cause.Error())
						}
					}
					tidy := time.NewTimer(50 * time.Millisecond)
					defer tidy.Stop()
					<-tidy.C
					seen.add("returns")
					return ctx.Err()
				})
			})
			job := func(change map[string]any) string {
				change["name"] = t.Name() + "/" + change["blocking"].(string) + "/" + change["timeout"].(string)
				return n.newJob("shop", "listens", change)
			}
			ends := func(id, state, reason string) {
				t.Helper()
				require.Equal(t, reason, n.until(id, state).Reason)
				seen.add(state)
			}
			kill := func(id string) {
				<-begun
				n.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", map[string]string{"reason": "enough"}, nil, 202)
			}
			plain := job(map[string]any{"blocking": "parallel", "timeout": "0s"})
			killed := n.runNow(plain, nil)
			kill(killed)
			ends(killed, "cancelled", "killed")
			require.Equal(t, []string{"begins", "told: " + executor.ErrKilled.Error(), "returns", "cancelled"}, seen.all())

			seen.forget()
			late := n.runNow(job(map[string]any{"blocking": "parallel", "timeout": "200ms"}), nil)
			<-begun
			ends(late, "timed_out", "timeout")
			require.Equal(t, []string{"begins", "told: " + executor.ErrTimeout.Error(), "returns", "timed_out"}, seen.all())

			seen.forget()
			covered := job(map[string]any{"blocking": "cover_early", "timeout": "0s"})
			first := n.runNow(covered, nil)
			<-begun
			second := n.runNow(covered, nil)
			ends(first, "cancelled", "covered")
			kill(second)
			ends(second, "cancelled", "killed")
			got := seen.all()
			require.Equal(t, []string{"begins", "told: " + executor.ErrKilled.Error(), "returns"}, got[:3])
			require.Subset(t, got[3:], []string{"cancelled", "begins", "returns"}, "the second begins when the first has returned")
		})
	}
}

// TestWhoDoesNotListenIsSaidToLinger until it returns, and the outcome stands.
func TestWhoDoesNotListenIsSaidToLinger(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	begun, release := make(chan struct{}), make(chan struct{})
	n.startExecutor("shop", func(c *executor.Config) { c.KillGrace = 100 * time.Millisecond }, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "deaf", func(context.Context) error {
			close(begun)
			<-release
			return nil
		})
	})
	id := n.runNow(n.newJob("shop", "deaf", nil), nil)
	<-begun
	n.do(http.MethodPost, "/api/v1/runs/"+id+"/cancel", nil, nil, 202)
	type lingering struct {
		Lingers                bool
		FinishedAt, ReturnedAt *time.Time
	}
	var r lingering
	look := func() lingering {
		r = lingering{}
		n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &r, 200)
		return r
	}
	n.until(id, "cancelled")
	require.True(t, look().Lingers)
	require.Nil(t, r.ReturnedAt)
	close(release)
	n.eventually(func() bool { return look().ReturnedAt != nil }, func() string { return "the handler is not known to have returned" })
	require.False(t, r.Lingers)
	require.False(t, r.ReturnedAt.Before(*r.FinishedAt))
	require.Equal(t, "cancelled", n.until(id, "cancelled").State)
}
