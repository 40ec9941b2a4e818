package executortest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type order struct {
	ID int64 `json:"id" required:"true"`
}

type receipt struct {
	Number string `json:"number"`
}

func TestACallGoesThroughTheRealPipeline(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var seen []string
		ex.Use(func(ctx context.Context, next executor.Next) error {
			seen = append(seen, executor.TaskFrom(ctx).Handler)
			return next(ctx)
		})
		executor.Handle(ex, "charge", func(ctx context.Context, in order) (receipt, error) {
			executor.Logger(ctx).Info("charging", "order", in.ID)
			executor.Progress(ctx, 50, "half")
			return receipt{fmt.Sprint("R-", in.ID)}, nil
		})

		run := admin.Call("charge", order{ID: 7})
		var out receipt
		run.Output(&out)
		require.Equal(t, "R-7", out.Number)
		require.Equal(t, []string{"charge"}, seen)
		lines := run.Log()
		require.Len(t, lines, 1)
		require.Equal(t, "charging", lines[0].Message)
		require.EqualValues(t, 7, lines[0].Attrs["order"])
		percent, message := run.Progress()
		require.InDelta(t, 50.0, percent, 0)
		require.Equal(t, "half", message)

		bad := admin.Call("charge", map[string]any{"nr": 7})
		require.Equal(t, executortest.Failed, bad.State())
		require.Contains(t, bad.Err(), `unknown field "nr"`)
		require.Equal(t, "bad_input", bad.ErrKind())
	})
}

func TestSchedulesFireByTheFakeClock(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var closed []string
		executor.HandleFunc(ex, "close-day", func(ctx context.Context) error {
			closed = append(closed, executor.TaskFrom(ctx).FireTime.Format(time.RFC3339))
			return nil
		}, executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"))
		ticks := 0
		executor.HandleFunc(ex, "tick", func(context.Context) error { ticks++; return nil }, executor.Every(10*time.Minute))
		after := 0
		executor.HandleFunc(ex, "poll", func(ctx context.Context) error {
			after++
			time.Sleep(time.Minute)
			return nil
		}, executor.Delay(4*time.Minute))

		admin.Start()
		admin.Sleep(48*time.Hour - time.Second)
		require.Equal(t, []string{"2000-01-01T18:00:00Z", "2000-01-02T18:00:00Z"}, closed)
		require.Equal(t, 48*6-1, ticks)
		require.Equal(t, 48*12, after, "each 4 min after the end of a run of 1 min")
		require.Len(t, admin.Runs("close-day"), 2)
	})
}

func TestRetriesTimeoutsAndTypedErrors(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var at []time.Duration
		var attempts []int
		began := time.Now()
		say := []error{
			errors.New("once more"), executor.RetryAfter(errors.New("closed"), 2*time.Hour), executor.Snooze(time.Minute), nil,
		}
		executor.HandleFunc(ex, "sync", func(ctx context.Context) error {
			at = append(at, time.Since(began))
			attempts = append(attempts, executor.TaskFrom(ctx).Attempt)
			next := say[0]
			say = say[1:]
			return next
		}, executor.Retries(2), executor.RetryDelay(10*time.Second))
		executor.HandleFunc(ex, "permanent", func(context.Context) error {
			return executor.Permanent(errors.New("no such order"))
		}, executor.Retries(5))
		executor.HandleFunc(ex, "withdrawn", func(context.Context) error {
			return executor.Cancelled(errors.New("the order is gone"))
		}, executor.Retries(5))
		executor.HandleFunc(ex, "slow", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, executor.Timeout(30*time.Second))

		run := admin.Call("sync", nil)
		require.Equal(t, executortest.Succeeded, run.State())
		require.Equal(t, []time.Duration{0, 10 * time.Second, 2*time.Hour + 10*time.Second, 2*time.Hour + 70*time.Second}, at)
		require.Equal(t, []int{1, 2, 3, 4}, attempts, "a snooze has its number, and does not count: three are allowed")
		require.Equal(t, 4, run.Attempts())

		require.Equal(t, executortest.Failed, admin.Call("permanent", nil).State())
		withdrawn := admin.Call("withdrawn", nil)
		require.Equal(t, executortest.Cancelled, withdrawn.State())
		require.Equal(t, "the order is gone", withdrawn.Err())
		require.Equal(t, 1, withdrawn.Attempts())
		require.Equal(t, executortest.TimedOut, admin.Call("slow", nil).State())
	})
}

func TestStepsSurviveARetry(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		charged := 0
		executor.Handle(ex, "order", func(ctx context.Context, in order) (receipt, error) {
			r, err := executor.Step(ctx, "charge", func(context.Context) (receipt, error) {
				charged++
				return receipt{"R-1"}, nil
			})
			if err == nil && executor.TaskFrom(ctx).Attempt < 3 {
				err = errors.New("the mail server is down")
			}
			return r, err
		}, executor.Retries(2))

		var out receipt
		admin.Call("order", order{1}).Output(&out)
		require.Equal(t, receipt{"R-1"}, out)
		require.Equal(t, 1, charged)
		admin.Call("order", order{1})
		require.Equal(t, 2, charged, "another run charges again")
	})
}

func TestStepsAndGuardWhenARunIsTakenOver(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		var did []string
		register := func(name string) {
			ex := admin.Executor()
			executor.HandleFunc(ex, "work", func(ctx context.Context) error {
				_, err := executor.Step(ctx, "first", func(context.Context) (int, error) {
					did = append(did, name+" does the first part")
					return 1, nil
				})
				if err != nil {
					return err
				}
				require.NoError(t, executor.Guard(ctx))
				require.NoError(t, executor.GuardStrict(ctx))
				if executor.TaskFrom(ctx).Fence == 1 {
					<-ctx.Done()
					require.ErrorIs(t, executor.Guard(ctx), executor.ErrLeaseLost)
					require.ErrorIs(t, executor.Guard(context.WithoutCancel(ctx)), executor.ErrLeaseLost)
					return context.Cause(ctx)
				}
				did = append(did, name+" does the second part")
				return nil
			})
		}
		register("one")
		register("two")
		run := admin.Begin("work", nil)
		admin.Wait()
		run.TakeOver()
		require.Equal(t, executortest.Succeeded, run.Wait().State())
		require.Len(t, did, 2)
		require.True(t, strings.HasSuffix(did[0], "the first part"))
		require.True(t, strings.HasSuffix(did[1], "the second part"))
		require.NotEqual(t, did[0][:3], did[1][:3], "another instance goes on")
	})
}

// A run of a job that is never repeated ends as lost when its instance is gone.
func TestLostRuns(t *testing.T) {
	for policy, want := range map[executor.LostPolicy]executortest.State{executor.FailLost: executortest.Lost, executor.RetryLost: executortest.Succeeded} {
		executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
			tries := 0
			ex := admin.Executor()
			executor.HandleFunc(ex, "work", func(ctx context.Context) error {
				if tries++; tries > 1 {
					return nil
				}
				<-ctx.Done()
				return context.Cause(ctx)
			}, executor.Idempotent(), executor.OnLost(policy), executor.OnFailure("told"))
			var told []string
			executor.HandleEnd(ex, "told", func(_ context.Context, e executor.Ended) error { told = append(told, e.State); return nil })
			run := admin.Begin("work", nil)
			admin.Wait()
			run.TakeOver()
			require.Equal(t, want, run.Wait().State())
			admin.Wait()
			require.Equal(t, want == executortest.Lost, len(told) == 1, "%v", told)
		})
	}
}

// The pauses between attempts grow as the job says.
func TestPausesOfRetries(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		var at []time.Duration
		start := time.Now()
		executor.HandleFunc(admin.Executor(), "work", func(context.Context) error {
			at = append(at, time.Since(start).Round(time.Second))
			return errors.New("no")
		}, executor.Retries(4), executor.RetryDelay(2*time.Second), executor.RetryBackoff(1.5), executor.MaxRetryDelay(4*time.Second))
		require.Equal(t, executortest.Failed, admin.Call("work", nil).State())
		require.Equal(t, []time.Duration{0, 2 * time.Second, 5 * time.Second, 9 * time.Second, 13 * time.Second}, at)
	})
}

func TestStepMistakes(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		one := func(context.Context) (int, error) { return 1, nil }
		for name, step := range map[string]func(ctx context.Context) error{
			"twice": func(ctx context.Context) error {
				_, err := executor.Step(ctx, "a", one)
				require.NoError(t, err)
				_, err = executor.Step(ctx, "a", one)
				return err
			},
			"named badly": func(ctx context.Context) error { _, err := executor.Step(ctx, "a b", one); return err },
			"too large": func(ctx context.Context) error {
				_, err := executor.Step(ctx, "a", func(context.Context) (string, error) { return strings.Repeat("x", 65536), nil })
				return err
			},
			"not JSON": func(ctx context.Context) error {
				_, err := executor.Step(ctx, "a", func(context.Context) (chan int, error) { return nil, nil })
				return err
			},
		} {
			executor.HandleFunc(ex, strings.ReplaceAll(name, " ", "-"), step, executor.Retries(3))
		}
		for _, name := range []string{"twice", "named-badly", "too-large", "not-JSON"} {
			run := admin.Call(name, nil)
			require.Equal(t, "permanent", run.ErrKind(), name)
		}
		_, err := executor.Step(t.Context(), "a", one)
		require.ErrorContains(t, err, "belongs to no run")
		require.ErrorContains(t, executor.Guard(t.Context()), "belongs to no run")
	})
}

func TestCallbacksAreRunsOfTheirOwn(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		var told []executor.Ended
		executor.HandleEnd(ex, "told", func(ctx context.Context, run executor.Ended) error {
			told = append(told, run)
			if len(told) == 1 {
				return errors.New("not now")
			}
			return nil
		})
		executor.Handle(ex, "work", func(ctx context.Context, in order) (receipt, error) {
			if in.ID < 0 {
				return receipt{}, errors.New("no such order")
			}
			return receipt{"R"}, nil
		}, executor.Input(order{1}), executor.Retries(1), executor.OnSuccess("told"), executor.OnFailure("told"))

		admin.Call("work", nil)
		admin.Sleep(time.Hour)
		require.Len(t, told, 2, "the callback was tried again")
		require.Equal(t, told[0], told[1])
		require.Equal(t, "succeeded", told[1].State)
		require.NoError(t, told[1].Err())
		var out receipt
		require.NoError(t, told[1].DecodeOutput(&out))
		require.Equal(t, receipt{"R"}, out)
		var in order
		require.NoError(t, told[1].DecodeInput(&in))
		require.Equal(t, order{1}, in)

		admin.Call("work", order{-1})
		admin.Sleep(time.Hour)
		require.Len(t, told, 3)
		require.EqualError(t, told[2].Err(), "no such order")
		require.Equal(t, 2, told[2].Attempt)
		require.Len(t, admin.Runs("told"), 2)
	})
}

func TestBlockingStrategies(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		work := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Minute):
				return nil
			}
		}
		for _, s := range []executor.BlockingStrategy{executor.Serial, executor.DiscardLater, executor.CoverEarly, executor.Parallel} {
			executor.HandleFunc(ex, string(s), work, executor.Blocking(s))
		}
		for name, want := range map[string][2]executortest.State{
			"serial": {executortest.Succeeded, executortest.Succeeded}, "discard_later": {executortest.Succeeded, executortest.Discarded},
			"cover_early": {executortest.Cancelled, executortest.Succeeded}, "parallel": {executortest.Succeeded, executortest.Succeeded},
		} {
			first, second := admin.Begin(name, nil), admin.Begin(name, nil)
			require.Equal(t, want, [2]executortest.State{first.Wait().State(), second.Wait().State()}, name)
		}
	})
}

func TestHeavyHandlersTakeMoreSlots(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor(func(c *executor.Config) { c.Slots = 4 })
		var mu sync.Mutex
		now, most := 0, 0
		take := func(weight int) {
			mu.Lock()
			defer mu.Unlock()
			now += weight
			most = max(most, now)
		}
		work := func(weight int) func(context.Context) error {
			return func(context.Context) error {
				take(weight)
				time.Sleep(time.Minute)
				take(-weight)
				return nil
			}
		}
		executor.HandleFunc(ex, "heavy", work(3), executor.Weight(3))
		executor.HandleFunc(ex, "light", work(1))
		executor.HandleFunc(ex, "huge", work(4), executor.Weight(100))
		var runs []*executortest.Run
		for _, name := range []string{"heavy", "light", "heavy", "light", "light", "huge"} {
			runs = append(runs, admin.Begin(name, nil))
		}
		for _, r := range runs {
			require.Equal(t, executortest.Succeeded, r.Wait().State())
		}
		require.Equal(t, 4, most, "never more than there are")
	})
}

func TestProxiesCallWithoutANetwork(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		ex := admin.Executor()
		executor.Handle(ex, "charge", func(ctx context.Context, in order) (receipt, error) {
			if in.ID < 0 {
				return receipt{}, executor.Permanent(errors.New("no such order"))
			}
			executor.Progress(ctx, 25, "asking the bank")
			time.Sleep(5 * time.Minute)
			return receipt{fmt.Sprint("R-", in.ID)}, ctx.Err()
		})
		client := admin.Proxy()

		out, err := proxy.Call[receipt](t.Context(), client, "test", "charge", order{3})
		require.NoError(t, err)
		require.Equal(t, receipt{"R-3"}, out)

		_, err = proxy.Call[receipt](t.Context(), client, "test", "charge", order{-1}, proxy.Attempts(3))
		var failed *proxy.RunError
		ok := errors.As(err, &failed)
		require.True(t, ok, err)
		require.Equal(t, "permanent", failed.Kind)
		require.Equal(t, "no such order", failed.Message)

		run, err := proxy.Start[receipt](t.Context(), client, "test", "charge", order{4}, proxy.Key("order-4"))
		require.NoError(t, err)
		again, err := proxy.Start[receipt](t.Context(), client, "test", "charge", order{4}, proxy.Key("order-4"))
		require.NoError(t, err)
		require.Equal(t, run.ID(), again.ID(), "the same key is the same run")
		admin.Sleep(time.Second)
		status, err := run.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, proxy.Status{State: "running", Attempt: 1, Percent: 25, Message: "asking the bank"}, status)
		out, err = again.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, receipt{"R-4"}, out)
		require.NoError(t, run.Cancel(t.Context()), "too late is no error")

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = proxy.Call[receipt](ctx, client, "test", "charge", order{5})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		admin.Sleep(10 * time.Minute)
		runs := admin.Runs("charge")
		last := runs[len(runs)-1]
		require.NotEqual(t, executortest.Running, last.State(), "the caller's end was told")

		_, err = proxy.Call[receipt](t.Context(), client, "test", "chrage", order{6})
		var refused *proxy.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "unknown_handler", refused.Code)
	})
}
