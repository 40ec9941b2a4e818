package executor_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
)

// record is an interceptor that notes what passes it.
type record struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (r *record) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *record) around(name string) executor.Interceptor {
	return func(ctx context.Context, next executor.Next) error {
		r.note(name + " in " + executor.TaskFrom(ctx).Handler + " " + string(executor.InputFrom(ctx)))
		err := next(ctx)
		r.note(name + " out " + string(executor.KindOf(err)))
		return err
	}
}

func TestInterceptorsStandAroundHandlers(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	r := &record{}
	type key struct{}
	a := start(t, admin, func(ex *executor.Executor) {
		ex.Use(r.around("outer"), func(ctx context.Context, next executor.Next) error {
			if executor.TaskFrom(ctx).Handler == "forbidden" {
				return executor.Permanent(errors.New("not allowed here"))
			}
			return next(context.WithValue(ctx, key{}, "value"))
		})
		ex.Use(r.around("inner"))
		executor.HandleIn(ex, "fine", func(ctx context.Context, in struct{ N int }) error {
			if ctx.Value(key{}) != "value" || in.N != 7 {
				return errors.New("the context or the input is not what it should be")
			}
			return nil
		})
		executor.HandleFunc(ex, "forbidden", func(context.Context) error { panic("never called") })
		executor.HandleFunc(ex, "panics", func(context.Context) error { panic(errors.New("boom")) })
	})
	s := session(t, admin, 1)
	for i, handler := range []string{"fine", "forbidden", "panics"} {
		in := ""
		if handler == "fine" {
			in = `{"N":7}`
		}
		require.NoError(t, s.Offer(offer(int64(i+1), handler, input(in))))
		saw(t, admin, results(i+1))
	}
	require.NoError(t, a.stop())
	require.Equal(t, []string{
		`outer in fine {"N":7}`, `inner in fine {"N":7}`, "inner out succeeded", "outer out succeeded",
		"outer in forbidden ", "outer out permanent",
		"outer in panics ", "inner in panics ", "inner out panic", "outer out panic",
	}, r.lines)
	seen := admin.Seen()
	require.Equal(t, "SUCCEEDED", brief(resultOf(seen, 1)))
	require.Equal(t, "FAILED permanent", brief(resultOf(seen, 2)))
	require.Equal(t, "not allowed here", resultOf(seen, 2).GetError())
	require.Equal(t, "FAILED panic", brief(resultOf(seen, 3)))
	require.Contains(t, resultOf(seen, 3).GetStack(), "intercept_test.go")
	require.PanicsWithValue(t, "carillon: Use: add interceptors before Run", func() { a.Use(r.around("late")) })
}

// An interceptor that panics is like a handler that does.
func TestAnInterceptorThatPanicsFailsTheAttempt(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	start(t, admin, func(ex *executor.Executor) {
		ex.Use(func(context.Context, executor.Next) error { panic("badly written") })
		executor.HandleFunc(ex, "fine", func(context.Context) error { return nil })
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "fine")))
	r := resultOf(saw(t, admin, results(1)), 1)
	require.Equal(t, "FAILED panic", brief(r))
	require.Equal(t, "panic: badly written", r.GetError())
}

func TestKindOf(t *testing.T) {
	cause := errors.New("cause")
	for want, err := range map[executor.Kind]error{
		executor.KindSucceeded: nil,
		executor.KindRetryable: cause,
		executor.KindPermanent: executor.Permanent(cause),
		executor.KindPanic:     &executor.PanicError{Value: cause},
	} {
		require.Equal(t, want, executor.KindOf(err))
	}
	require.ErrorIs(t, &executor.PanicError{Value: cause}, cause)
}
