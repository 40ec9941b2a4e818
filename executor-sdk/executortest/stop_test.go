package executortest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
)

// A drain that has to wait for a handler costs it no attempt.
func TestStoppingLetsHandlersFinish(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor(func(c *executor.Config) { c.DrainTimeout = 10 * time.Minute })
		executor.HandleFunc(ex, "long", func(ctx context.Context) error {
			time.Sleep(9 * time.Minute)
			return ctx.Err()
		})
		run := admin.Begin("long", nil)
		admin.Wait()
		admin.Stop()
		require.Equal(t, executortest.Succeeded, run.State())
		require.Equal(t, 1, run.Attempts())
	})
}

// Beyond its time for draining, an executor interrupts what runs. That costs a
// run that may be repeated no attempt; any other fails.
func TestStoppingOneExecutorHandsItsRunsOver(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		var all []*executor.Executor
		var seen []string // which executor and attempt
		for n := range 2 {
			ex := admin.Executor(func(c *executor.Config) { c.DrainTimeout = time.Minute })
			work := func(ctx context.Context) error {
				seen = append(seen, fmt.Sprint(n, " ", executor.TaskFrom(ctx).Attempt))
				select {
				case <-ctx.Done():
					return context.Cause(ctx)
				case <-time.After(10 * time.Minute):
					return nil
				}
			}
			executor.HandleFunc(ex, "safe", work, executor.Idempotent())
			executor.HandleFunc(ex, "once", work)
			all = append(all, ex)
		}
		run := admin.Begin("safe", nil)
		admin.Wait()
		admin.StopOne(all[0])
		require.Equal(t, executortest.Succeeded, run.Wait().State())
		require.Equal(t, 2, run.Attempts())
		require.Equal(t, []string{"0 1", "1 2"}, seen)

		once := admin.Begin("once", nil)
		admin.Wait()
		admin.StopOne(all[1])
		require.Equal(t, executortest.Failed, once.Wait().State())
		require.Equal(t, "stopping", once.ErrKind())
	})
}

// A handler that ignores the stop leaves its outcome unknown.
func TestStoppingOneExecutorLosesWhatIgnoresIt(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		release := make(chan struct{})
		defer close(release)
		var all []*executor.Executor
		for range 2 {
			ex := admin.Executor(func(c *executor.Config) { c.DrainTimeout, c.KillGrace = time.Second, time.Second })
			work := func(ctx context.Context) error {
				if executor.TaskFrom(ctx).Attempt == 1 {
					<-release
				}
				return nil
			}
			executor.HandleFunc(ex, "safe", work, executor.Idempotent())
			executor.HandleFunc(ex, "once", work)
			all = append(all, ex)
		}
		safe, once := admin.Begin("safe", nil), admin.Begin("once", nil)
		admin.Wait()
		admin.StopOne(all[0])
		admin.StopOne(all[1])
		require.Equal(t, executortest.Lost, once.State())
		require.Contains(t, []executortest.State{executortest.Succeeded, executortest.Waiting}, safe.State(), "by the order of the stops")
	})
}

func TestCancel(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		executor.HandleFunc(ex, "wait", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		run := admin.Begin("wait", nil)
		admin.Wait()
		run.Cancel()
		require.Equal(t, executortest.Cancelled, run.Wait().State())
	})
}
