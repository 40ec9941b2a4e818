package domain

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelayAfter(t *testing.T) {
	for _, row := range []struct {
		name    string
		retry   Retry
		attempt int
		want    time.Duration
	}{
		{"no delay", Retry{}, 1, 0},
		{"constant", Retry{Delay: time.Second}, 7, time.Second},
		{"factor below one counts as one", Retry{Delay: time.Second, Backoff: 0.5}, 7, time.Second},
		{"first", Retry{Delay: time.Second, Backoff: 2}, 1, time.Second},
		{"third", Retry{Delay: time.Second, Backoff: 2}, 3, 4 * time.Second},
		{"fraction", Retry{Delay: time.Second, Backoff: 1.5}, 3, 2250 * time.Millisecond},
		{"bounded", Retry{Delay: time.Second, Backoff: 2, MaxDelay: 3 * time.Second}, 3, 3 * time.Second},
		{"delay above its bound", Retry{Delay: time.Minute, MaxDelay: time.Second}, 1, time.Second},
		{"bounded by an hour unless said otherwise", Retry{Delay: time.Minute, Backoff: 10}, 9, time.Hour},
		{"many attempts", Retry{Delay: time.Second, Backoff: 2}, math.MaxInt, time.Hour},
		{"wild factor", Retry{Delay: time.Second, Backoff: 1e300}, 2, time.Hour},
		{"infinite factor", Retry{Delay: time.Second, Backoff: math.Inf(1)}, 2, time.Hour},
		{"no number", Retry{Delay: time.Second, Backoff: math.NaN()}, 2, time.Second},
		{"negative delay", Retry{Delay: -time.Second, Backoff: 2}, 3, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.retry.DelayAfter(row.attempt))
		})
	}
}

func TestWaitForAnInstanceCountsAnewForEachAttempt(t *testing.T) {
	p := retryPolicy(6, false)
	e := newExecution(6)
	at := t0
	for range 5 {
		run(t, e, at, p)
		_, err := e.Finish(at.Add(time.Second), Report{Fence: e.Fence, Outcome: OutcomeFailed}, p)
		require.NoError(t, err)
		require.Equal(t, p.DispatchTimeout, e.ExpireAt.Sub(e.NotBefore))
		at = e.NotBefore
	}
}

func TestWaitForAnInstanceHasADefaultEnd(t *testing.T) {
	p := retryPolicy(2, false)
	p.DispatchTimeout = 0
	e := newExecution(2)
	run(t, e, t0, p)
	_, err := e.Finish(t0.Add(time.Second), Report{Fence: 1, Outcome: OutcomeFailed}, p)
	require.NoError(t, err)
	require.Equal(t, e.NotBefore.Add(DefaultDispatchTimeout), e.ExpireAt)
}

func TestWaitWithoutEndStaysWithoutEnd(t *testing.T) {
	p := retryPolicy(2, false)
	e := newExecution(2)
	e.ExpireAt = time.Time{}
	run(t, e, t0, p)
	_, err := e.Finish(t0.Add(time.Second), Report{Fence: 1, Outcome: OutcomeFailed}, p)
	require.NoError(t, err)
	require.True(t, e.ExpireAt.IsZero())
	_, _, err = e.Sweep(t0.AddDate(1, 0, 0), time.Time{}, time.Second, p)
	require.NoError(t, err)
	require.Equal(t, RetryWait, e.State)
}

func TestPolicyOf(t *testing.T) {
	for _, row := range []struct {
		onLost     OnLost
		idempotent bool
		want       bool
	}{
		{OnLostAuto, false, false}, {OnLostAuto, true, true}, {"", false, false}, {"", true, true},
		{OnLostFail, false, false}, {OnLostFail, true, false}, {OnLostRetry, false, true}, {OnLostRetry, true, true},
	} {
		t.Run(fmt.Sprintf("%q idempotent=%v", row.onLost, row.idempotent), func(t *testing.T) {
			spec := &JobSpec{OnLost: row.onLost, Timeout: time.Minute, DispatchTimeout: time.Hour, Retry: Retry{MaxAttempts: 3}}
			p := PolicyOf(spec, row.idempotent)
			require.Equal(t, Policy{Retry: spec.Retry, Timeout: time.Minute, RetryLost: row.want, DispatchTimeout: time.Hour}, p)
		})
	}
}

func TestDeadline(t *testing.T) {
	p := noRetry
	p.Timeout = time.Minute
	deadline := t0.Add(100*time.Millisecond + time.Minute + DeadlineGrace)

	e := newExecution(1)
	run(t, e, t0, p)
	require.Equal(t, deadline, e.Deadline)
	_, err := e.ExpireDeadline(deadline.Add(-time.Millisecond))
	require.Equal(t, CodeIllegalMove, CodeOf(err), "too early")

	require.NoError(t, e.StillAlive(t0.Add(time.Hour)))
	require.Equal(t, deadline, e.WakeAt, "the deadline is looked at although the instance lives on")
	require.NoError(t, e.StillAlive(t0.Add(time.Second)))
	require.Equal(t, t0.Add(time.Second+LeaseMargin), e.WakeAt)

	action, fx, err := e.Sweep(deadline, t0.Add(time.Hour), time.Second, p)
	require.NoError(t, err)
	require.Equal(t, SweepCancel, action, "the handler is told to stop")
	require.Equal(t, Effects{Alert: AlertRunTimedOut}, fx)
	require.Equal(t, TimedOut, e.State)
	require.True(t, e.Deadline.IsZero())
	fx, err = e.Finish(deadline, Report{Fence: 1, Outcome: OutcomeSucceeded}, p)
	require.NoError(t, err)
	require.Equal(t, Effects{ReleaseSlot: true}, fx)
	require.Equal(t, TimedOut, e.State, "only that the handler has returned is news")
}

func TestShortTimeoutIsCheckedBeforeTheLease(t *testing.T) {
	e := newExecution(1)
	p := noRetry
	p.Timeout = time.Second
	require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, p))
	require.NoError(t, e.Grant(t0, 1, testInstance, p))
	require.Equal(t, t0, e.GrantedAt)
	require.Equal(t, t0.Add(PickupGrace), e.WakeAt, "the look that was set at planning stays")
	_, _, err := e.Sweep(e.WakeAt, t0.Add(time.Hour), time.Second, p)
	require.NoError(t, err)
	require.Equal(t, t0.Add(time.Second+DeadlineGrace), e.WakeAt)
}

// The look set at planning stays when it is early enough; one that is past, or
// too late, is set anew.
func TestOfferAndGrantKeepAnEarlyLook(t *testing.T) {
	for _, row := range []struct {
		name    string
		wake    time.Duration
		offered time.Duration
	}{
		{"early", PickupGrace, PickupGrace},
		{"past", 0, OfferTTL},
		{"too late", OfferTTL + time.Millisecond, OfferTTL},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newExecution(1)
			e.WakeAt = t0.Add(row.wake)
			require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
			require.Equal(t, t0.Add(row.offered), e.WakeAt)
			require.NoError(t, e.Grant(t0.Add(time.Millisecond), 1, testInstance, noRetry))
			require.Equal(t, t0.Add(row.offered), e.WakeAt)
		})
	}
	// Whatever WakeAt says, the offer's time counts from the offer.
	e := newExecution(1)
	e.WakeAt = t0.Add(time.Hour)
	require.NoError(t, e.Offer(t0, testNode, testInstance, false, false, noRetry))
	e.WakeAt = t0.Add(time.Hour)
	require.Equal(t, CodeIllegalMove, CodeOf(e.Grant(t0.Add(OfferTTL), 1, testInstance, noRetry)))
}

func TestOneStepTakesAnIdempotentHandler(t *testing.T) {
	e := newExecution(1)
	require.Equal(t, CodeIllegalMove, CodeOf(e.Offer(t0, testNode, testInstance, false, true, noRetry)))
	require.Equal(t, newExecution(1), e)
	require.NoError(t, e.Offer(t0, testNode, testInstance, true, true, noRetry))
	require.Equal(t, t0, e.GrantedAt)
	require.Equal(t, t0.Add(PickupGrace), e.WakeAt, "the look that was set at planning stays")
	late := newExecution(1)
	late.WakeAt = t0
	require.NoError(t, late.Offer(t0, testNode, testInstance, true, true, noRetry))
	require.Equal(t, t0.Add(OfferTTL), late.WakeAt, "whether it arrived is looked at as for any offer")
	require.NoError(t, e.Started(t0.Add(time.Second), 1, testInstance, t0.Add(-time.Hour)))
	require.Equal(t, t0, e.StartedAt, "not before it was granted")
	require.Equal(t, t0.Add(PickupGrace), e.WakeAt, "a look that was brought forward stays")
	require.Equal(t, CodeStaleFence, CodeOf(e.Started(t0, 2, testInstance, t0)))
	require.Equal(t, CodeStaleFence, CodeOf(e.Started(t0, 1, testInstance+1, t0)))
}

// TestWhatWasRefusedHasNotRun: a refusal proves it in one step too, a broken
// session does not.
func TestWhatWasRefusedHasNotRun(t *testing.T) {
	e := inState(t, Running)
	require.Equal(t, CodeIllegalMove, CodeOf(e.GiveBack(t0, 1, ReasonSessionLost, "", 0)))
	require.Equal(t, CodeStaleFence, CodeOf(e.Refuse(t0, 2, ReasonOfferRefused, "", 0)))
	require.NoError(t, e.Refuse(t0.Add(time.Second), 1, ReasonOfferRefused, "all slots are taken", time.Second))
	require.Equal(t, Due, e.State)
	require.Zero(t, e.Attempt)
	require.Zero(t, e.Instance)
	require.True(t, e.HoldsSlot)
	require.Equal(t, t0.Add(2*time.Second), e.NotBefore)

	two := newExecution(1)
	require.NoError(t, two.Offer(t0, testNode, testInstance, false, false, noRetry))
	require.NoError(t, two.Grant(t0, 1, testInstance, noRetry))
	require.Equal(t, CodeIllegalMove, CodeOf(two.Refuse(t0, 1, ReasonOfferRefused, "", 0)), "it was accepted before it was granted")
	require.True(t, two.Has(1, testInstance))
	require.False(t, two.Has(2, testInstance) || two.Has(1, testInstance+1))
}

func TestSweepActions(t *testing.T) {
	const hold = 5 * time.Second
	for _, row := range []struct {
		name   string
		from   State
		at     time.Duration
		lease  time.Duration
		action SweepAction
		to     State
		wake   time.Duration
	}{
		{"due now", Due, 2 * time.Second, 0, SweepDispatch, Due, 7 * time.Second},
		{"due, last millisecond of the wait", Due, time.Minute - time.Millisecond, 0, SweepDispatch, Due, 65*time.Second - time.Millisecond},
		{"due, wait is over", Due, time.Minute, 0, SweepNothing, Missed, 0},
		{"offer open", Offered, OfferTTL - time.Millisecond, time.Hour, SweepNothing, Offered, OfferTTL},
		{"offer unanswered", Offered, OfferTTL, time.Hour, SweepDispatch, Due, OfferTTL + hold},
		{"one step, nobody told of its start", Running, OfferTTL, 30 * time.Second, SweepResend, Running, OfferTTL + StartResend},
		{"one step, looked at early", Running, time.Second, 30 * time.Second, SweepNothing, Running, OfferTTL},
		{"running, looked at early", Running, time.Second, 15 * time.Second, SweepNothing, Running, 17 * time.Second},
		{"running, lease renewed", Running, 17 * time.Second, 30 * time.Second, SweepNothing, Running, 32 * time.Second},
		{"running, within the margin", Running, 32 * time.Second, 30 * time.Second, SweepNothing, Running, 32 * time.Second},
		{"running, silent", Running, 32*time.Second + time.Millisecond, 30 * time.Second, SweepNothing, Lost, 0},
		{"cancelling, alive", Cancelling, 5 * time.Second, 30 * time.Second, SweepCancel, Cancelling, 7 * time.Second},
		{"cancelling, silent", Cancelling, time.Minute, 30 * time.Second, SweepNothing, Cancelled, 0},
		{"ended", Succeeded, time.Minute, 0, SweepNothing, Succeeded, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := inState(t, row.from)
			if strings.HasPrefix(row.name, "running") {
				e.StartedAt = t0
			}
			action, _, err := e.Sweep(t0.Add(row.at), t0.Add(row.lease), hold, noRetry)
			require.NoError(t, err)
			require.Equal(t, row.action, action)
			require.Equal(t, row.to, e.State)
			if row.to.Terminal() {
				require.True(t, e.WakeAt.IsZero())
				return
			}
			require.Equal(t, t0.Add(row.wake), e.WakeAt)
		})
	}
}

func TestSweepKeepsAFutureRunForItsTime(t *testing.T) {
	e := newExecution(1)
	e.FireAt, e.NotBefore, e.ExpireAt = t0.Add(time.Hour), t0.Add(time.Hour), t0.Add(2*time.Hour)
	action, _, err := e.Sweep(t0, time.Time{}, 5*time.Second, noRetry)
	require.NoError(t, err)
	require.Equal(t, SweepDispatch, action)
	require.Equal(t, t0.Add(time.Hour+PickupGrace), e.WakeAt)
}

func TestWaitingForATurnIsNotWaitingForAnInstance(t *testing.T) {
	for _, reason := range []Reason{ReasonWaitSlot, ReasonWaitLimit} {
		t.Run(string(reason), func(t *testing.T) { testWaitingForATurn(t, reason) })
	}
}

func testWaitingForATurn(t *testing.T, reason Reason) {
	e := newExecution(1)
	require.NoError(t, e.Wait(t0, reason, "run 1000 is not over", t0.Add(10*time.Second)))
	now := t0.Add(10 * time.Second)
	for range 100 { // the run before takes 17 minutes, the dispatch timeout is one
		action, _, err := e.Sweep(now, time.Time{}, 10*time.Second, noRetry)
		require.NoError(t, err)
		require.Equal(t, SweepDispatch, action)
		require.Equal(t, Due, e.State)
		now = now.Add(10 * time.Second)
	}
	require.NoError(t, e.Wait(now, ReasonWaitInstance, "none online", now.Add(time.Second)))
	_, _, err := e.Sweep(now.Add(30*time.Second), time.Time{}, time.Second, noRetry)
	require.NoError(t, err)
	require.Equal(t, Due, e.State, "the wait for an instance begins when the slot is free")
	_, _, err = e.Sweep(now.Add(time.Minute), time.Time{}, time.Second, noRetry)
	require.NoError(t, err)
	require.Equal(t, Missed, e.State)
	require.Equal(t, ReasonNoExecutor, e.Reason)
}

func TestGiveBackPostpones(t *testing.T) {
	e := inState(t, Offered)
	require.NoError(t, e.GiveBack(t0.Add(time.Second), 1, ReasonOfferRefused, "all slots are taken", 3*time.Second))
	require.Equal(t, t0.Add(4*time.Second), e.NotBefore)
	require.Equal(t, t0.Add(4*time.Second+PickupGrace), e.WakeAt)
	require.Zero(t, e.Instance)
	require.True(t, e.HoldsSlot)
	require.Equal(t, ReasonOfferRefused, e.Reason)
	require.Equal(t, CodeIllegalMove, CodeOf(e.Offer(t0.Add(4*time.Second-OfferAhead-1), testNode, testInstance, false, false, noRetry)))
}

func TestLateness(t *testing.T) {
	e := newExecution(1)
	_, ok := Lateness(e)
	require.False(t, ok)
	e.StartedAt = t0.Add(7 * time.Millisecond)
	d, ok := Lateness(e)
	require.True(t, ok)
	require.Equal(t, 7*time.Millisecond, d)
}

func TestJitterIsNotLateness(t *testing.T) {
	e := newExecution(1)
	e.Cause, e.Attempt, e.State = CauseSchedule, 1, Running
	e.NotBefore, e.StartedAt = e.FireAt.Add(20*time.Second), e.FireAt.Add(20*time.Second+7*time.Millisecond)
	d, ok := Lateness(e)
	require.True(t, ok)
	require.Equal(t, 7*time.Millisecond, d)

	e.State, e.NotBefore = RetryWait, e.StartedAt.Add(time.Minute) // of the next attempt
	d, _ = Lateness(e)
	require.Equal(t, 20*time.Second+7*time.Millisecond, d)

	e.State, e.Cause = Succeeded, CauseMisfire // starts when it is made up for
	d, _ = Lateness(e)
	require.Equal(t, 20*time.Second+7*time.Millisecond, d)
}

func TestARefusedOfferIsLateness(t *testing.T) {
	e := newExecution(1)
	e.Cause, e.Attempt, e.State = CauseSchedule, 0, Due
	require.NoError(t, e.Offer(e.FireAt, testNode, testInstance, false, false, noRetry))
	require.NoError(t, e.GiveBack(e.FireAt.Add(time.Second), 1, ReasonOfferRefused, "all slots are taken", 3*time.Second))
	e.StartedAt = e.NotBefore.Add(7 * time.Millisecond)
	d, ok := Lateness(e)
	require.True(t, ok)
	require.Equal(t, 4*time.Second+7*time.Millisecond, d)
}

func TestAColdRunIsWokenBeforeItsTime(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	require.Equal(t, now.Add(time.Minute+PickupGrace), FirstWake(now, now.Add(time.Minute)))
	require.Equal(t, now.Add(time.Hour-WarmUp), FirstWake(now, now.Add(time.Hour)))

	e := Execution{State: Due, FireAt: now.Add(time.Hour), NotBefore: now.Add(time.Hour), WakeAt: now.Add(time.Hour - WarmUp)}
	action, _, err := e.Sweep(now.Add(time.Hour-WarmUp), time.Time{}, time.Second, Policy{})
	require.NoError(t, err)
	require.Equal(t, SweepDispatch, action)
	require.Equal(t, now.Add(time.Hour+PickupGrace), e.WakeAt, "left to the timer that took it")
}
