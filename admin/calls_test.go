package admin_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	sdkproxy "github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// called is what a case of TestCallsAsDeclared works with.
type called struct {
	*testing.T
	client   *sdkproxy.Client
	executor string
	slots    int
	tries    atomic.Int32
	// Both are read by the case; the handlers write as often as they fit.
	entered chan struct{}
	ended   chan executor.Ended
	// stay is what handlers wait for; closed by release.
	stay    chan struct{}
	release func()
}

const short = 50 * time.Millisecond

var errAlways = errors.New("always")

// The handlers of the cases.
func (c *called) fail(context.Context) error { c.tries.Add(1); return errAlways }

func (c *called) hang(ctx context.Context) error {
	c.tries.Add(1)
	<-ctx.Done()
	return ctx.Err()
}

func (c *called) wait(ctx context.Context) error {
	c.entered <- struct{}{}
	select {
	case <-c.stay:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *called) end(_ context.Context, e executor.Ended) error { c.ended <- e; return nil }

// call runs the handler "do" and returns how it ended.
func (c *called) call(opts ...sdkproxy.Option) string {
	c.Helper()
	_, err := sdkproxy.Call[sdkproxy.None](c.Context(), c.client, c.executor, "do", nil, opts...)
	if failed, ok := errors.AsType[*sdkproxy.RunError](err); ok {
		return failed.State
	}
	require.NoError(c, err)
	return "succeeded"
}

func (c *called) start(opts ...sdkproxy.Option) *sdkproxy.Run[sdkproxy.None] {
	c.Helper()
	run, err := sdkproxy.Start[sdkproxy.None](c.Context(), c.client, c.executor, "do", nil, opts...)
	require.NoError(c, err)
	return run
}

// failing are cases of a handler that always fails.
func failing(tries int32, opts []executor.HandlerOption, call ...sdkproxy.Option) func(*called) (func(*executor.Executor), func()) {
	return func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) { executor.HandleFunc(ex, "do", c.fail, opts...) }, func() {
			require.Equal(c, "failed", c.call(call...))
			require.Equal(c, tries, c.tries.Load())
		}
	}
}

// hanging are cases of a handler that never ends by itself.
func hanging(tries int32, opts []executor.HandlerOption, call ...sdkproxy.Option) func(*called) (func(*executor.Executor), func()) {
	return func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) { executor.HandleFunc(ex, "do", c.hang, opts...) }, func() {
			require.Equal(c, "timed_out", c.call(call...))
			require.Equal(c, tries, c.tries.Load())
		}
	}
}

func options(opts ...executor.HandlerOption) []executor.HandlerOption { return opts }

// calls are what holds for calls of a handler with the options that stand beside
// it, in production and in executortest. Each case registers handlers on an
// executor, with one slot unless it says otherwise, and then calls.
var calls = map[string]func(*called) (register func(*executor.Executor), call func()){
	"the handler's timeout":           hanging(1, options(executor.Timeout(short))),
	"the caller's timeout":            hanging(1, nil, sdkproxy.Timeout(short)),
	"the caller's shorter timeout":    hanging(1, options(executor.Timeout(time.Hour)), sdkproxy.Timeout(short)),
	"no longer timeout for callers":   hanging(1, options(executor.Timeout(short)), sdkproxy.Timeout(time.Hour)),
	"a timeout is retried":            hanging(2, options(executor.Timeout(short), executor.Retries(1), executor.RetryDelay(time.Millisecond))),
	"nothing declared":                failing(1, nil),
	"nothing declared, caller asks":   failing(2, nil, sdkproxy.Attempts(2)),
	"the handler's retries":           failing(3, options(executor.Retries(2), executor.RetryDelay(time.Millisecond))),
	"the handler's longest delay":     failing(3, options(executor.Retries(2), executor.RetryDelay(time.Hour), executor.RetryBackoff(2), executor.MaxRetryDelay(time.Millisecond))),
	"fewer retries for the caller":    failing(2, options(executor.Retries(2), executor.RetryDelay(time.Millisecond)), sdkproxy.Attempts(2)),
	"no more retries for the caller":  failing(3, options(executor.Retries(2), executor.RetryDelay(time.Millisecond)), sdkproxy.Attempts(10)),
	"declared: no retries":            failing(1, options(executor.Retries(0)), sdkproxy.Attempts(10)),
	"a schedule changes nothing":      failing(2, options(executor.Cron("0 0 0 1 1 *"), executor.JobName("yearly"), executor.Retries(1), executor.RetryDelay(time.Millisecond))),
	"a job beside it changes nothing": failing(1, options(executor.Job("beside", executor.Retries(5), executor.Timeout(time.Millisecond)))),
	"what is permanent is not tried again": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) {
				executor.HandleFunc(ex, "do", func(context.Context) error { c.tries.Add(1); return executor.Permanent(errAlways) }, executor.Retries(5))
			}, func() {
				require.Equal(c, "failed", c.call())
				require.EqualValues(c, 1, c.tries.Load())
			}
	},
	"a callback after success": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) {
				executor.HandleOut(ex, "do", func(context.Context) (int, error) { return 3, nil }, executor.OnSuccess("done"), executor.OnFailure("failed"))
				executor.HandleEnd(ex, "done", c.end)
				executor.HandleEnd(ex, "failed", func(context.Context, executor.Ended) error { c.Error("it did not fail"); return nil })
			}, func() {
				out, err := sdkproxy.Call[int](c.Context(), c.client, c.executor, "do", nil)
				require.NoError(c, err)
				require.Equal(c, 3, out)
				e := <-c.ended
				require.Equal(c, "succeeded", e.State)
				require.Equal(c, "3", string(e.Output))
				require.Equal(c, "call:"+c.executor+"/do", e.Job)
				require.Equal(c, 1, e.Attempt)
			}
	},
	"a callback after the last failure": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) {
				executor.HandleFunc(ex, "do", c.fail, executor.Retries(1), executor.RetryDelay(time.Millisecond), executor.OnFailure("failed"))
				executor.HandleEnd(ex, "failed", c.end)
			}, func() {
				require.Equal(c, "failed", c.call())
				e := <-c.ended
				require.Equal(c, "failed", e.State)
				require.Equal(c, "always", e.Error)
				require.Equal(c, 2, e.Attempt)
			}
	},
	"a callback after a timeout": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) {
				executor.HandleFunc(ex, "do", c.hang, executor.Timeout(short), executor.OnFailure("failed"))
				executor.HandleEnd(ex, "failed", c.end)
			}, func() {
				require.Equal(c, "timed_out", c.call())
				require.Equal(c, "timed_out", (<-c.ended).State)
			}
	},
	"a callback has a timeout of its own": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) {
				executor.HandleFunc(ex, "do", func(context.Context) error { return nil }, executor.OnSuccess("done"))
				executor.HandleEnd(ex, "done", func(ctx context.Context, e executor.Ended) error {
					<-ctx.Done()
					e.Error = context.Cause(ctx).Error()
					return c.end(ctx, e)
				}, executor.Timeout(short), executor.Retries(0))
			}, func() {
				require.Equal(c, "succeeded", c.call())
				require.Equal(c, executor.ErrTimeout.Error(), (<-c.ended).Error)
			}
	},
	"calls discard later ones where it is declared": func(c *called) (func(*executor.Executor), func()) {
		c.slots = 2 // an admin discards what could start else
		return func(ex *executor.Executor) {
				executor.HandleFunc(ex, "do", c.wait, executor.Blocking(executor.DiscardLater))
			}, func() {
				first := c.start()
				<-c.entered
				require.Equal(c, "discarded", c.call())
				c.release()
				_, err := first.Wait(c.Context())
				require.NoError(c, err)
			}
	},
	"a call that finds no room in time": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) { executor.HandleFunc(ex, "do", c.wait) }, func() {
			first := c.start()
			<-c.entered
			// Long enough for the admin to take the call, on a loaded machine too.
			require.Equal(c, "missed", c.call(sdkproxy.StartWithin(3*time.Second)))
			c.release()
			_, err := first.Wait(c.Context())
			require.NoError(c, err)
		}
	},
	"one key, one run": func(c *called) (func(*executor.Executor), func()) {
		return func(ex *executor.Executor) { executor.HandleFunc(ex, "do", c.wait) }, func() {
			c.release()
			first := c.start(sdkproxy.Key("k"), sdkproxy.Note("one"))
			require.Equal(c, first.ID(), c.start(sdkproxy.Key("k"), sdkproxy.Note("one")).ID())
			_, err := sdkproxy.Start[sdkproxy.None](c.Context(), c.client, c.executor, "do", nil, sdkproxy.Key("k"), sdkproxy.Note("another"))
			refused, ok := errors.AsType[*sdkproxy.RefusedError](err)
			require.True(c, ok, err)
			require.Equal(c, "idempotency_key_reused", refused.Code)
			_, err = first.Wait(c.Context())
			require.NoError(c, err)
		}
	},
}

func newCalled(t *testing.T, name string) *called {
	c := &called{T: t, executor: name, slots: 1, entered: make(chan struct{}, 100), ended: make(chan executor.Ended, 100), stay: make(chan struct{})}
	c.release = sync.OnceFunc(func() { close(c.stay) })
	return c
}

// TestCallsAsDeclared: what stands beside a handler holds for its calls, as for
// jobs, and with executortest as with an admin.
func TestCallsAsDeclared(t *testing.T) {
	t.Parallel()
	t.Run("executortest", func(t *testing.T) {
		for name, prepare := range calls {
			t.Run(name, func(t *testing.T) {
				executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
					c := newCalled(t, "test")
					c.client = admin.Proxy()
					register, call := prepare(c)
					register(admin.Executor(func(config *executor.Config) { config.Slots = c.slots }))
					call()
				})
			})
		}
	})
	t.Run("admin", func(t *testing.T) {
		n := startNode(t, nil)
		var key struct{ Secret string }
		n.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": "caller", "role": "caller"}, &key, 201)
		client, err := sdkproxy.New(sdkproxy.Config{URL: n.admin.URL(), Key: key.Secret})
		require.NoError(t, err)
		number := 0
		for name, prepare := range calls {
			number++
			executorName := "test-" + string(rune('a'+number))
			t.Run(name, func(t *testing.T) {
				c := newCalled(t, executorName)
				c.client = client
				register, call := prepare(c)
				at := *n // the executor stops with this case
				at.t = t
				at.startExecutor(executorName, func(config *executor.Config) { config.Slots = c.slots }, register)
				call()
			})
		}
	})
}
