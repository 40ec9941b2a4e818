package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	remote "github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// detail is what these tests look at in a run.
type detail struct {
	run
	Progress *struct {
		Percent float64
		Message string
	}
	Steps []struct {
		Name   string
		Output json.RawMessage
	}
}

func (n *node) detail(id string) (d detail) {
	n.t.Helper()
	n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &d, 200)
	return d
}

func (n *node) jobNamed(name string) string {
	n.t.Helper()
	var list struct {
		Items []struct{ ID, Name string }
	}
	n.do(http.MethodGet, "/api/v1/jobs?kind=all&q="+name, nil, &list, 200)
	for _, j := range list.Items {
		if j.Name == name {
			return j.ID
		}
	}
	return ""
}

// TestHandlersTellAndAskWhileTheyRun: progress, steps, guards and typed errors
// go all the way to the database and back, on both of them.
func TestHandlersTellAndAskWhileTheyRun(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var charged, snoozes atomic.Int32
			told, goOn := make(chan struct{}), make(chan struct{})
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleOut(ex, "order", func(ctx context.Context) (reply, error) {
					r, err := executor.Step(ctx, "charge", func(context.Context) (reply, error) {
						charged.Add(1)
						return reply{"R-1"}, nil
					})
					if err != nil {
						return r, err
					}
					if err := executor.GuardStrict(ctx); err != nil {
						return r, err
					}
					if executor.TaskFrom(ctx).Attempt == 1 {
						return r, errors.New("the mail server is down")
					}
					return r, nil
				})
				executor.HandleFunc(ex, "long", func(ctx context.Context) error {
					executor.Progress(ctx, 42.5, "half of the shops")
					close(told)
					select {
					case <-goOn:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
				executor.HandleFunc(ex, "snooze", func(ctx context.Context) error {
					try := snoozes.Add(1)
					executor.Logger(ctx).Info(fmt.Sprintf("try %d", try))
					if try < 3 {
						return executor.Snooze(time.Second)
					}
					return nil
				})
				executor.HandleFunc(ex, "withdraw", func(context.Context) error {
					return executor.Cancelled(errors.New("the order is gone"))
				})
			})

			t.Run("a step survives a retry", func(t *testing.T) {
				id := n.runNow(n.newJob("shop", "order", map[string]any{"retry": map[string]any{"maxAttempts": 2, "delay": "10ms"}}), nil)
				r := n.until(id, "succeeded")
				require.Equal(t, 2, r.Attempt)
				require.JSONEq(t, `{"text":"R-1"}`, string(r.Output))
				require.EqualValues(t, 1, charged.Load())
				d := n.detail(id)
				require.Len(t, d.Steps, 1)
				require.Equal(t, "charge", d.Steps[0].Name)
				require.JSONEq(t, `{"text":"R-1"}`, string(d.Steps[0].Output))
			})
			t.Run("progress is seen while it runs", func(t *testing.T) {
				id := n.runNow(n.newJob("shop", "long", nil), nil)
				<-told
				n.eventually(func() bool { return n.detail(id).Progress != nil }, func() string { return "no progress is shown" })
				d := n.detail(id)
				require.Equal(t, "running", d.State)
				require.Equal(t, 42.5, d.Progress.Percent)
				require.Equal(t, "half of the shops", d.Progress.Message)
				close(goOn)
				n.until(id, "succeeded")
			})
			t.Run("a snooze is no attempt", func(t *testing.T) {
				r := n.until(n.runNow(n.newJob("shop", "snooze", nil), nil), "succeeded")
				require.Equal(t, 3, r.Attempt)
				require.Len(t, r.Attempts, 3)
				require.Equal(t, "cancelled", r.Attempts[0].State)
				n.logContains(r.ID, "try 1", "try 2", "try 3")
			})
			t.Run("a handler may cancel its run", func(t *testing.T) {
				r := n.until(n.runNow(n.newJob("shop", "withdraw", map[string]any{"retry": map[string]any{"maxAttempts": 5, "delay": "10ms"}}), nil), "cancelled")
				require.Equal(t, "handler_cancelled", r.Reason)
				require.Equal(t, "the order is gone", r.Message)
				require.Equal(t, 1, r.Attempt)
			})
		})
	}
}

// TestCallbacksFollowARun: after the end of a run, as a run of their own, until
// they succeed.
func TestCallbacksFollowARun(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var mu sync.Mutex
			var told []executor.Ended
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.Handle(ex, "work", func(_ context.Context, in greeting) (reply, error) {
					if in.Name == "" {
						return reply{}, errors.New("no name")
					}
					return reply{"hello " + in.Name}, nil
				}, executor.Input(greeting{"Mei"}), executor.Retries(1), executor.RetryDelay(10*time.Millisecond),
					executor.OnSuccess("told"), executor.OnFailure("told"))
				executor.HandleEnd(ex, "told", func(_ context.Context, run executor.Ended) error {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, run)
					return nil
				})
			})
			job := n.jobNamed("work")
			good := n.until(n.runNow(job, greeting{"Mei"}), "succeeded")
			bad := n.until(n.runNow(job, greeting{}), "failed")
			have := func() []executor.Ended {
				mu.Lock()
				defer mu.Unlock()
				return told
			}
			n.eventually(func() bool { return len(have()) == 2 }, func() string { return fmt.Sprint("told: ", have()) })
			byRun := map[string]executor.Ended{}
			for _, e := range have() {
				byRun[fmt.Sprint(e.RunID)] = e
			}
			e := byRun[good.ID]
			require.Equal(t, "succeeded", e.State)
			require.Equal(t, "work", e.Job)
			require.Equal(t, good.FireAt, e.FireTime)
			var out reply
			require.NoError(t, e.DecodeOutput(&out))
			require.Equal(t, reply{"hello Mei"}, out)
			e = byRun[bad.ID]
			require.EqualError(t, e.Err(), "no name")
			require.Equal(t, 2, e.Attempt)
			require.Equal(t, "retryable", e.ErrorKind)

			var runs struct{ Items []run }
			n.do(http.MethodGet, "/api/v1/runs?jobId="+n.jobNamed("callback:shop/told"), nil, &runs, 200)
			require.Len(t, runs.Items, 2, "they are runs that people see")
			for _, r := range runs.Items {
				require.Equal(t, "parent", r.Cause)
				n.until(r.ID, "succeeded")
			}
		})
	}
}

// askedFor counts the questions about runs that are known.
type askedFor struct{ runs atomic.Int32 }

func (a *askedFor) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		a.runs.Add(1)
	}
	return http.DefaultTransport.RoundTrip(req)
}

// TestProxiesCallARemoteExecutor over real HTTP, with a key that may do nothing else.
func TestProxiesCallARemoteExecutor(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var entered atomic.Int32
			ended := make(chan error, 1)
			register := func(ex *executor.Executor) {
				executor.Handle(ex, "greet", func(ctx context.Context, in greeting) (reply, error) {
					entered.Add(1)
					switch in.Name {
					case "":
						return reply{}, executor.Permanent(errors.New("no name"))
					case "wait":
						<-ctx.Done()
						ended <- context.Cause(ctx)
						return reply{}, context.Cause(ctx)
					}
					return reply{"hello " + in.Name + " from " + executor.TaskFrom(ctx).RequestedBy}, nil
				})
			}
			n.startExecutor("shop", nil, register)
			n.startExecutor("bank", nil, register)
			var key struct{ Secret string }
			n.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": "billing", "role": "caller", "executors": []string{"shop"}}, &key, 201)
			var asked askedFor
			client, err := remote.New(remote.Config{URL: n.admin.URL(), Key: key.Secret, HTTP: &http.Client{Transport: &asked}})
			require.NoError(t, err)
			ctx := t.Context()

			out, err := remote.Call[reply](ctx, client, "shop", "greet", greeting{"Mei"})
			require.NoError(t, err)
			require.Equal(t, "hello Mei from key:billing", out.Text)

			_, err = remote.Call[reply](ctx, client, "shop", "greet", greeting{})
			failed, ok := errors.AsType[*remote.RunError](err)
			require.True(t, ok, err)
			require.Equal(t, "failed", failed.State)
			require.Equal(t, "permanent", failed.Kind)
			require.Equal(t, "no name", failed.Message)

			before := entered.Load()
			first, err := remote.Start[reply](ctx, client, "shop", "greet", greeting{"Bo"}, remote.Key("order-7"))
			require.NoError(t, err)
			second, err := remote.Start[reply](ctx, client, "shop", "greet", greeting{"Bo"}, remote.Key("order-7"))
			require.NoError(t, err)
			require.Equal(t, first.ID(), second.ID())
			out, err = second.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, "hello Bo from key:billing", out.Text)
			require.Equal(t, before+1, entered.Load(), "one run for one key")

			waiting, cancel := context.WithCancelCause(ctx)
			polls := asked.runs.Load()
			go func() {
				// A handler may be entered before its caller knows the run, which goes on then.
				n.eventually(func() bool { return entered.Load() == before+2 && asked.runs.Load() > polls }, func() string { return "the call does not arrive" })
				cancel(errors.New("the caller has gone"))
			}()
			_, err = remote.Call[reply](waiting, client, "shop", "greet", greeting{"wait"})
			require.ErrorContains(t, err, "the caller has gone")
			require.ErrorIs(t, <-ended, executor.ErrKilled, "and so is its run")

			_, err = remote.Call[reply](ctx, client, "bank", "greet", greeting{"Mei"})
			refused, ok := errors.AsType[*remote.RefusedError](err)
			require.True(t, ok, err)
			require.Equal(t, "not_found", refused.Code, "a key for the shop knows no bank")
		})
	}
}
