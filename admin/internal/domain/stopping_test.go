package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func stopping(e *Execution) Report {
	return Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "stopping", Error: "executor is stopping", LogLines: 2}
}

// A process that stops costs a run that may be repeated nothing but time,
// however often: not even its last attempt.
func TestAnInterruptedAttemptDoesNotCount(t *testing.T) {
	p := retryPolicy(2, true)
	p.Retry.Delay = time.Hour
	e, now := newExecution(1), t0
	for n := range 3 {
		require.NoError(t, e.Offer(now, testNode, testInstance, true, n%2 == 0, p))
		if e.State == Offered {
			require.NoError(t, e.Grant(now, e.Fence, testInstance, p))
		}
		e.HoldsSlot = true
		require.Equal(t, n+1, e.Attempt, "each has a number of its own")
		now = now.Add(20 * time.Second)
		fx, err := e.Finish(now, stopping(e), p)
		require.NoError(t, err)
		require.Equal(t, RetryWait, e.State)
		require.Equal(t, ReasonStopped, e.Reason)
		require.Equal(t, now, e.NotBefore, "at once, whatever the job's delay is")
		require.Equal(t, 1, e.MaxAttempts-e.Attempt, "one is left as before")
		require.Zero(t, e.Sends().Failed(), "it was sent to somebody")
		require.True(t, fx.ReleaseSlot)
		require.Empty(t, fx.Alert)
		require.Equal(t, Cancelled, fx.Archive.State)
		require.Equal(t, ReasonStopped, fx.Archive.Reason)
		require.Equal(t, n+1, fx.Archive.Number)
		require.Equal(t, int64(2), fx.Archive.LogLines)
		_, err = e.Finish(now, stopping(e), p)
		require.Equal(t, CodeAlreadyFinished, CodeOf(err), "the same report again")
		require.Equal(t, n+2, e.MaxAttempts)
	}
	require.NoError(t, e.Offer(now, testNode, testInstance, true, true, p))
	_, err := e.Finish(now, Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "retryable"}, p)
	require.NoError(t, err)
	require.Equal(t, Failed, e.State, "the one attempt that it has")
}

// What must not be repeated unasked starts as often as its owner allows, and
// not once more.
func TestAnInterruptedAttemptCountsWhereItMustNotBeRepeated(t *testing.T) {
	p := retryPolicy(2, false)
	e := newExecution(2)
	run(t, e, t0, p)
	fx, err := e.Finish(t0.Add(time.Minute), stopping(e), p)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
	require.Equal(t, ReasonStopped, e.Reason)
	require.Equal(t, 2, e.MaxAttempts)
	require.Equal(t, Failed, fx.Archive.State)
	require.Equal(t, t0.Add(time.Minute+p.Retry.DelayAfter(1)), e.NotBefore)

	run(t, e, e.NotBefore, p)
	fx, err = e.Finish(e.GrantedAt.Add(time.Minute), stopping(e), p)
	require.NoError(t, err)
	require.Equal(t, Failed, e.State)
	require.Equal(t, ReasonStopped, e.Reason)
	require.Equal(t, AlertRunFailed, fx.Alert)
	require.Equal(t, "executor is stopping; the job does not allow to repeat what had begun (onLost)", e.Message)
	require.Equal(t, "stopping", e.ErrorKind)
	require.Equal(t, "executor is stopping", e.Error)
}

// However fast processes stop, a run starts once a second at most; and the
// handler may wish for a pause.
func TestInterruptedAttemptsDoNotRunInCircles(t *testing.T) {
	p := retryPolicy(1, true)
	for ran, want := range map[time.Duration]time.Duration{0: time.Second, 300 * time.Millisecond: 700 * time.Millisecond, time.Second: 0} {
		e := newExecution(1)
		run(t, e, t0, p)
		now := e.GrantedAt.Add(ran)
		_, err := e.Finish(now, stopping(e), p)
		require.NoError(t, err)
		require.Equal(t, now.Add(want), e.NotBefore)
	}
	e := newExecution(1)
	run(t, e, t0, p)
	r := stopping(e)
	r.RetryAfter = time.Minute
	_, err := e.Finish(t0.Add(time.Hour), r, p)
	require.NoError(t, err)
	require.Equal(t, t0.Add(time.Hour+time.Minute), e.NotBefore)
}

func TestAnInterruptedRunThatIsCancelledEnds(t *testing.T) {
	e := inState(t, Cancelling)
	fx, err := e.Finish(t0.Add(2*time.Second), stopping(e), retryPolicy(3, true))
	require.NoError(t, err)
	require.Equal(t, Cancelled, e.State)
	require.Equal(t, ReasonKilled, e.Reason)
	require.Nil(t, fx.Archive)
}

// A handler that still runs, in a process that is about to end, is not started
// a second time beside itself. Its run ends as after a crash.
func TestTheOutcomeIsOpenWhileAHandlerIgnoresTheStop(t *testing.T) {
	for lost, want := range map[bool]State{true: RetryWait, false: Lost} {
		p := retryPolicy(3, lost)
		e := newExecution(3)
		run(t, e, t0, p)
		before := *e
		r := stopping(e)
		r.StillRunning = true
		_, err := e.Finish(t0.Add(time.Minute), r, p)
		require.Equal(t, CodeAlreadyFinished, CodeOf(err))
		require.Equal(t, before, *e)
		_, err = e.Finish(t0.Add(2*time.Minute), Report{ExecutionID: e.ID, Fence: e.Fence, Outcome: OutcomeUnknown}, p)
		require.NoError(t, err)
		require.Equal(t, want, e.State)
		require.Equal(t, ReasonProcessDied, e.Reason)
	}
}

// The report may come when the run was given up: then it goes on, unless it is
// part of a family, whose parent has counted it as lost.
func TestAnInterruptionThatIsToldLate(t *testing.T) {
	p := retryPolicy(1, true)
	for parent, want := range map[ExecutionID]State{0: RetryWait, 7: Failed} {
		e := newExecution(1)
		e.Parent, e.LostAttempts = parent, FreeLosses
		run(t, e, t0, p)
		_, err := e.Lose(t0.Add(time.Minute), ReasonLeaseExpired, "silent", p)
		require.NoError(t, err)
		require.Equal(t, Lost, e.State)
		_, err = e.Finish(t0.Add(2*time.Minute), stopping(e), p)
		require.NoError(t, err)
		require.Equal(t, want, e.State)
	}
}
