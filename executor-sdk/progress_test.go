package executor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

func again(fence int64) func(*proto.Offer) { return func(o *proto.Offer) { o.Fence = fence } }

// A step's result is asked for and stored over the wire, also when the session
// breaks in between.
func TestStepsOutliveTheirSession(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	calls := 0
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleOut(ex, "order", func(ctx context.Context) (int, error) {
			return executor.Step(ctx, "charge", func(context.Context) (int, error) { calls++; return 7, nil })
		})
	})
	admin.HoldSteps.Store(true)
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "order")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Steps) == 1 })
	admin.HoldSteps.Store(false)
	s.Cut()
	seen := saw(t, admin, results(1))
	require.Equal(t, "SUCCEEDED", brief(seen.Results[0]))
	require.Equal(t, "7", string(seen.Results[0].GetOutput()))
	require.GreaterOrEqual(t, len(seen.Steps), 2, "asked again by the next session")
	for _, step := range seen.Steps {
		require.Equal(t, proto.StepAction_STEP_ACTION_STORE, step.GetAction(), "a first attempt reads nothing")
		require.Equal(t, "charge", step.GetName())
	}

	require.NoError(t, session(t, admin, 2).Offer(offer(1, "order", again(2))))
	seen = saw(t, admin, results(2))
	require.Equal(t, "7", string(seen.Results[1].GetOutput()))
	require.Equal(t, proto.StepAction_STEP_ACTION_READ, seen.Steps[len(seen.Steps)-1].GetAction())
	require.NoError(t, a.stop())
	require.Equal(t, 1, calls)
}

// What a handler told last arrives before its end, and not everything is sent.
func TestProgressIsSentNowAndThen(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "long", func(ctx context.Context) error {
			for i := range 1001 {
				executor.Progress(ctx, float64(i)/10, "working")
			}
			executor.Progress(ctx, 250, "bad \xff bytes and beyond the end")
			return nil
		})
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "long")))
	seen := saw(t, admin, results(1))
	require.NotEmpty(t, seen.Progress)
	require.Less(t, len(seen.Progress), 100)
	last := seen.Progress[len(seen.Progress)-1]
	require.EqualValues(t, 1000, last.GetPermille())
	require.EqualValues(t, 1002, last.GetSeq())
	require.Equal(t, "bad \uFFFD bytes and beyond the end", last.GetMessage())
	executor.Progress(t.Context(), 50, "outside of a handler nothing happens")
}

func TestTypedErrorsOnTheWire(t *testing.T) {
	admin := startAdmin(t, &fakeadmin.Admin{})
	cause := errors.New("cause")
	start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "snooze", func(context.Context) error { return executor.Snooze(time.Minute) })
		executor.HandleFunc(ex, "snooze-at-once", func(context.Context) error { return executor.Snooze(0) })
		executor.HandleFunc(ex, "cancelled", func(context.Context) error { return executor.Cancelled(cause) })
	})
	s := session(t, admin, 1)
	require.NoError(t, s.Offer(offer(1, "snooze"), offer(2, "snooze-at-once"), offer(3, "cancelled")))
	seen := saw(t, admin, results(3))
	require.Equal(t, "FAILED snoozed", brief(resultOf(seen, 1)))
	require.EqualValues(t, 60_000, resultOf(seen, 1).GetRetryAfterMs())
	require.EqualValues(t, 1000, resultOf(seen, 2).GetRetryAfterMs())
	require.Equal(t, "CANCELLED cancelled", brief(resultOf(seen, 3)))
	require.Equal(t, "cause", resultOf(seen, 3).GetError())
	require.NoError(t, executor.Cancelled(nil))
	require.ErrorIs(t, executor.Cancelled(cause), cause)
	require.Equal(t, executor.KindSnoozed, executor.KindOf(executor.Snooze(time.Second)))
	require.Equal(t, executor.KindCancelled, executor.KindOf(executor.Cancelled(cause)))
}
