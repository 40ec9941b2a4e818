package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A run that may be repeated outlives the death of its instance with default
// settings (one attempt), and an input that kills each process that takes it
// ends after so many of them.
func TestTheFirstLossesCostNoAttempt(t *testing.T) {
	p := retryPolicy(1, true)
	p.Retry.Delay = time.Hour
	e, now := newExecution(1), t0
	for n := range FreeLosses {
		run(t, e, now, p)
		e.HoldsSlot = true
		now = now.Add(20 * time.Second)
		fx, err := e.Lose(now, ReasonLeaseExpired, "silent", p)
		require.NoError(t, err)
		require.Equal(t, RetryWait, e.State)
		require.Equal(t, now, e.NotBefore, "at once, whatever the job's delay is")
		require.Equal(t, n+1, e.LostAttempts)
		require.Equal(t, 1, e.MaxAttempts-e.Attempt, "one is left as before")
		require.True(t, fx.ReleaseSlot)
		require.Empty(t, fx.Alert)
		require.Equal(t, Lost, fx.Archive.State)
		require.Equal(t, n+1, fx.Archive.Number)
	}
	run(t, e, now, p)
	fx, err := e.Lose(now.Add(20*time.Second), ReasonProcessDied, "died", p)
	require.NoError(t, err)
	require.Equal(t, Lost, e.State)
	require.Equal(t, AlertRunLost, fx.Alert)
	require.Equal(t, "died; 3 attempts before were lost too", e.Message)
}

// Behind the bound losses count like failures, with the job's delay.
func TestFurtherLossesCountLikeFailures(t *testing.T) {
	p := retryPolicy(2, true)
	e, now := newExecution(2), t0
	for range FreeLosses + 1 {
		run(t, e, now, p)
		now = now.Add(20 * time.Second)
		_, err := e.Lose(now, ReasonProcessDied, "died", p)
		require.NoError(t, err)
		require.Equal(t, RetryWait, e.State)
		now = e.NotBefore
	}
	require.Equal(t, e.FinishedAt.Add(p.Retry.DelayAfter(1)), e.NotBefore)
	run(t, e, now, p)
	_, err := e.Lose(now.Add(20*time.Second), ReasonProcessDied, "died", p)
	require.NoError(t, err)
	require.Equal(t, Lost, e.State)
	require.Equal(t, FreeLosses+2, e.Attempt)
}

// A run that takes its process along goes on later each time.
func TestLossesDoNotRunInCircles(t *testing.T) {
	p := retryPolicy(1, true)
	e := newExecution(1)
	for _, want := range []time.Duration{0, 700 * time.Millisecond, 1700 * time.Millisecond} {
		run(t, e, e.NotBefore, p)
		now := e.GrantedAt.Add(300 * time.Millisecond)
		_, err := e.Lose(now, ReasonProcessDied, "died", p)
		require.NoError(t, err)
		require.Equal(t, now.Add(want), e.NotBefore)
	}
}

// The result of an attempt that was given up says what it was after all: it
// counts, and was not lost.
func TestALostAttemptWhoseResultComesCounts(t *testing.T) {
	for losses, attempts := range map[int]int{1: 1, FreeLosses: 1, FreeLosses + 1: 2} {
		p := retryPolicy(attempts, true)
		e, now := newExecution(attempts), t0
		for range losses {
			run(t, e, now, p)
			now = now.Add(20 * time.Second)
			_, err := e.Lose(now, ReasonLeaseExpired, "silent", p)
			require.NoError(t, err)
			now = e.NotBefore
		}
		_, err := e.Finish(now, Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "retryable", Error: "no route"}, p)
		require.NoError(t, err)
		require.Equal(t, losses-1, e.LostAttempts)
		require.Equal(t, attempts+min(losses-1, FreeLosses), e.MaxAttempts)
		if attempts == 1 {
			require.Equal(t, Failed, e.State)
			require.Equal(t, "no route", e.Message)
		}
	}
	p := retryPolicy(1, true)
	e := newExecution(1)
	run(t, e, t0, p)
	_, err := e.Lose(t0.Add(time.Minute), ReasonLeaseExpired, "silent", p)
	require.NoError(t, err)
	_, err = e.Finish(t0.Add(time.Minute), stopping(e), p)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
	require.Equal(t, 2, e.MaxAttempts, "it was interrupted, once")
	require.Zero(t, e.LostAttempts)
}

// What must not be repeated unasked is not, however it is lost.
func TestALossEndsARunThatMustNotBeRepeated(t *testing.T) {
	p := retryPolicy(3, false)
	e := newExecution(3)
	run(t, e, t0, p)
	_, err := e.Lose(t0.Add(time.Minute), ReasonLeaseExpired, "silent", p)
	require.NoError(t, err)
	require.Equal(t, Lost, e.State)
	require.Zero(t, e.LostAttempts)
}

// What nobody has heard of is offered elsewhere at once, and its instance's late
// word changes nothing unless it is a result.
func TestAnUnheardOneStepOfferGoesElsewhere(t *testing.T) {
	p := retryPolicy(1, true)
	e := newExecution(1)
	require.NoError(t, e.Offer(t0, testNode, testInstance, true, true, p))
	now := t0.Add(1300 * time.Millisecond)
	_, err := e.Unheard(now, e.Fence+1, "silent", p)
	require.Equal(t, CodeStaleFence, CodeOf(err))
	fx, err := e.Unheard(now, e.Fence, "silent", p)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
	require.Equal(t, now, e.NotBefore)
	require.Equal(t, []int{1, 1, 2}, []int{e.LostAttempts, e.Attempt, e.MaxAttempts})
	require.Equal(t, Effects{Archive: fx.Archive}, fx)
	require.Equal(t, ReasonSessionLost, fx.Archive.Reason)

	for _, r := range []Report{{Outcome: OutcomeCancelled}, {Outcome: OutcomeFailed, ErrorKind: "lease_lost"}} {
		stopped := *e
		r.Fence = e.Fence
		_, err = stopped.Finish(now, r, p)
		require.Equal(t, CodeAlreadyFinished, CodeOf(err), "it was told to stop")
		require.Equal(t, *e, stopped)
	}
	done := *e
	_, err = done.Finish(now, Report{Fence: e.Fence, Outcome: OutcomeSucceeded}, p)
	require.NoError(t, err)
	require.Equal(t, Succeeded, done.State)

	for range FreeLosses - 1 {
		require.NoError(t, e.Offer(e.NotBefore, testNode, testInstance, true, true, p))
		_, err = e.Unheard(e.OfferedAt, e.Fence, "silent", p)
		require.NoError(t, err)
	}
	require.NoError(t, e.Offer(e.NotBefore, testNode, testInstance, true, true, p))
	_, err = e.Unheard(e.OfferedAt, e.Fence, "silent", p)
	require.Equal(t, CodeIllegalMove, CodeOf(err), "then its lease decides")
}

func TestWhatMayHaveStartedOnceStaysWithItsInstance(t *testing.T) {
	for name, prepare := range map[string]func(e *Execution, p *Policy){
		"must not be repeated": func(_ *Execution, p *Policy) { p.RetryLost = false },
		"in two steps":         func(e *Execution, _ *Policy) { e.Idempotent = false },
		"it was heard":         func(e *Execution, _ *Policy) { e.StartedAt = t0 },
		"for this one only":    func(e *Execution, _ *Policy) { e.Bound = testInstance },
		"it holds a slot":      func(e *Execution, _ *Policy) { e.HoldsSlot = true },
		"its parent holds one": func(_ *Execution, p *Policy) {
			serial := JobSpec{Blocking: BlockSerial, OnLost: OnLostRetry}
			*p = PolicyOf(serial.For(PartShard), true)
		},
	} {
		e, p := newExecution(1), retryPolicy(1, true)
		require.NoError(t, e.Offer(t0, testNode, testInstance, true, true, p))
		prepare(e, &p)
		before := *e
		_, err := e.Unheard(t0.Add(time.Minute), e.Fence, "silent", p)
		require.Equal(t, CodeIllegalMove, CodeOf(err), name)
		require.Equal(t, before, *e, name)
	}
}

func TestLeasesHoldAfterAnAbsence(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		signs SignsOfLife
		hold  time.Time
	}{
		"no node was ever there":            {SignsOfLife{}, time.Time{}},
		"a node is there":                   {SignsOfLife{Seen: now.Add(-AbsentAfter)}, time.Time{}},
		"none has come back yet":            {SignsOfLife{Seen: now.Add(-AbsentAfter - 1), Returned: now.Add(-time.Hour)}, now.Add(ReturnTime)},
		"one has come back":                 {SignsOfLife{Seen: now, Returned: now.Add(-time.Second)}, now.Add(ReturnTime - time.Second)},
		"the clock was set back since then": {SignsOfLife{Seen: now, Returned: now.Add(time.Hour)}, time.Time{}},
		"the clock was set back":            {SignsOfLife{Seen: now.Add(time.Hour)}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.hold, c.signs.LeasesHold(now)) })
	}
}
