package domain

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func retryPolicy(attempts int, lost bool) Policy {
	return Policy{
		Retry:     Retry{MaxAttempts: attempts, Delay: 10 * time.Second, Backoff: 2, MaxDelay: time.Minute},
		RetryLost: lost, DispatchTimeout: time.Minute,
	}
}

// run brings a fresh execution to Running at the instant.
func run(t *testing.T, e *Execution, at time.Time, p Policy) {
	t.Helper()
	require.NoError(t, e.Offer(at, testNode, testInstance, false, false, p))
	e.HoldsSlot = true
	require.NoError(t, e.Grant(at.Add(100*time.Millisecond), e.Fence, testInstance, p))
}

func TestOfferClearsTheAttemptBefore(t *testing.T) {
	p := retryPolicy(3, false)
	e := newExecution(3)
	run(t, e, t0, p)
	fx, err := e.Finish(t0.Add(time.Second), Report{
		Fence: 1, Outcome: OutcomeFailed, ErrorKind: "error", Error: "no route", Stack: "main.go:1",
		Output: []byte("{}"), StartedAt: t0.Add(500 * time.Millisecond), LogLines: 4,
	}, p)
	require.NoError(t, err)

	require.NotNil(t, fx.Archive)
	require.Equal(t, Attempt{
		TenantID: 1, ExecutionID: 1001, Number: 1, Fence: 1, Instance: testInstance, State: Failed, Reason: ReasonHandlerFailed,
		OfferedAt: t0, GrantedAt: t0.Add(100 * time.Millisecond), StartedAt: t0.Add(500 * time.Millisecond),
		FinishedAt: t0.Add(time.Second), Output: []byte("{}"), ErrorKind: "error", Error: "no route", Stack: "main.go:1", LogLines: 4,
	}, *fx.Archive)
	require.True(t, fx.ReleaseSlot)
	require.Equal(t, t0.Add(11*time.Second), e.NotBefore)
	require.Equal(t, t0.Add(12*time.Second), e.WakeAt)

	require.Equal(t, CodeIllegalMove, CodeOf(e.Offer(t0.Add(10*time.Second), testNode, testInstance, false, false, p)), "before its time")
	require.NoError(t, e.Offer(t0.Add(11*time.Second), testNode, testInstance+1, false, false, p))
	require.Equal(t, int64(2), e.Fence)
	require.Equal(t, testInstance+1, e.Instance)
	require.Empty(t, e.ErrorKind+e.Error+e.Stack+e.Message+string(e.Reason)+string(e.Output))
	require.True(t, e.StartedAt.IsZero() && e.FinishedAt.IsZero() && e.GrantedAt.IsZero())
	require.Equal(t, int64(-1), e.LogLines)
}

func TestGrantInTimeOnly(t *testing.T) {
	for _, row := range []struct {
		name     string
		after    time.Duration
		fence    int64
		instance InstanceID
		want     Code
	}{
		{"at once", 0, 1, testInstance, ""},
		{"last millisecond", OfferTTL - time.Millisecond, 1, testInstance, ""},
		{"when the offer is over", OfferTTL, 1, testInstance, CodeIllegalMove},
		{"older fence", 0, 0, testInstance, CodeStaleFence},
		{"newer fence", 0, 2, testInstance, CodeStaleFence},
		{"another instance", 0, 1, testInstance + 1, CodeStaleFence},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := inState(t, Offered)
			err := e.Grant(t0.Add(row.after), row.fence, row.instance, noRetry)
			require.Equal(t, row.want, CodeOf(err))
			require.Equal(t, row.want == "", e.State == Running)
		})
	}
}

func TestStaleFence(t *testing.T) {
	p := retryPolicy(3, true)
	for _, fence := range []int64{0, 1, 3} {
		e := newExecution(3)
		run(t, e, t0, p)
		_, err := e.Lose(t0.Add(time.Second), ReasonLeaseExpired, "", p)
		require.NoError(t, err)
		run(t, e, t0.Add(time.Minute), p)
		before := *e
		_, err = e.Finish(t0.Add(2*time.Minute), Report{Fence: fence, Outcome: OutcomeSucceeded}, p)
		require.Equal(t, CodeStaleFence, CodeOf(err))
		require.Equal(t, CodeStaleFence, CodeOf(e.GiveBack(t0.Add(2*time.Minute), fence, ReasonOfferRefused, "", 0)))
		require.Equal(t, before, *e)
	}
}

func TestAttemptNumbers(t *testing.T) {
	p := retryPolicy(3, false)
	e := newExecution(3)
	at := t0
	for n := 1; n <= 3; n++ {
		require.NoError(t, e.Offer(at, testNode, testInstance, false, false, p))
		require.Equal(t, n-1, e.Attempt, "an offer is no attempt")
		require.NoError(t, e.GiveBack(at, e.Fence, ReasonOfferRefused, "full", time.Second))
		at = at.Add(time.Second)
		require.NoError(t, e.Offer(at, testNode, testInstance, false, false, p))
		require.NoError(t, e.Grant(at, e.Fence, testInstance, p))
		require.Equal(t, n, e.Attempt)
		require.Equal(t, int64(2*n), e.Fence, "the fence counts offers")
		fx, err := e.Finish(at, Report{Fence: e.Fence, Outcome: OutcomeFailed, Error: "boom"}, p)
		require.NoError(t, err)
		if n < 3 {
			require.Equal(t, RetryWait, e.State)
			require.Equal(t, n, fx.Archive.Number)
			require.Empty(t, fx.Alert, "no alert before the last attempt")
			at = e.NotBefore
			continue
		}
		require.Equal(t, Failed, e.State)
		require.Nil(t, fx.Archive)
		require.Equal(t, AlertRunFailed, fx.Alert)
		require.Equal(t, "boom", e.Message)
	}
}

func TestNeverStartedGivesTheAttemptBack(t *testing.T) {
	e := inState(t, Running)
	require.Equal(t, 1, e.Attempt)
	fx, err := e.Finish(t0.Add(time.Second), Report{Fence: 1, Outcome: OutcomeNeverStarted, Error: "process restarted"}, noRetry)
	require.NoError(t, err)
	require.Equal(t, Effects{}, fx)
	require.Equal(t, Due, e.State)
	require.Equal(t, 0, e.Attempt)
	require.Equal(t, int64(1), e.Fence, "the fence does not go back")
	require.True(t, e.HoldsSlot, "its place in the order is kept")
	require.Equal(t, t0.Add(time.Second), e.NotBefore)
	run(t, e, t0.Add(time.Second), noRetry)
	require.Equal(t, 1, e.Attempt)
}

func TestNeverStartedWhileCancelling(t *testing.T) {
	e := inState(t, Cancelling)
	fx, err := e.Finish(t0.Add(2*time.Second), Report{Fence: 1, Outcome: OutcomeNeverStarted, Error: "process restarted"}, noRetry)
	require.NoError(t, err)
	require.Equal(t, Cancelled, e.State, "what never started was cancelled in time")
	require.Equal(t, ReasonKilled, e.Reason)
	require.Equal(t, "by alice", e.Message)
	require.Equal(t, Effects{ReleaseSlot: true}, fx)
	require.Equal(t, 0, e.Attempt)
}

func TestLateResults(t *testing.T) {
	for _, row := range []struct {
		name      string
		attempts  int
		lost      bool // the job repeats lost attempts
		outcome   Outcome
		wait      bool // dispatch noted meanwhile that no instance is online
		want      State
		wantAlert AlertKind
		wantCode  Code
	}{
		{name: "success settles a lost run", attempts: 1, outcome: OutcomeSucceeded, want: Succeeded},
		{name: "failure settles a lost run", attempts: 1, outcome: OutcomeFailed, want: Failed, wantAlert: AlertRunFailed},
		{name: "timeout settles a lost run", attempts: 1, outcome: OutcomeTimedOut, want: TimedOut, wantAlert: AlertRunTimedOut},
		{name: "failure of a lost run is retried", attempts: 2, outcome: OutcomeFailed, want: RetryWait},
		{name: "unknown tells nothing new", attempts: 1, outcome: OutcomeUnknown, want: Lost, wantCode: CodeAlreadyFinished},
		{name: "success before the repetition", attempts: 2, lost: true, outcome: OutcomeSucceeded, want: Succeeded},
		{name: "success while the repetition waits for an instance", attempts: 2, lost: true, wait: true, outcome: OutcomeSucceeded, want: Succeeded},
		{name: "failure before the repetition", attempts: 2, lost: true, outcome: OutcomeFailed, want: RetryWait},
		{name: "unknown before the repetition", attempts: 2, lost: true, outcome: OutcomeUnknown, want: RetryWait, wantCode: CodeAlreadyFinished},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retryPolicy(row.attempts, row.lost)
			e := newExecution(row.attempts)
			run(t, e, t0, p)
			_, err := e.Lose(t0.Add(20*time.Second), ReasonLeaseExpired, "", p)
			require.NoError(t, err)
			if row.wait {
				require.NoError(t, e.Wait(t0, ReasonWaitInstance, "none online", t0.Add(time.Minute)))
			}
			r := Report{Fence: 1, Outcome: row.outcome, Output: []byte(`1`), StartedAt: t0.Add(time.Second)}
			fx, err := e.Finish(t0.Add(30*time.Second), r, p)
			require.Equal(t, row.wantCode, CodeOf(err))
			require.Equal(t, row.want, e.State)
			require.Equal(t, row.wantAlert, fx.Alert)
			require.False(t, fx.ReleaseSlot, "the slot was given back when it was lost")
			if row.want == Succeeded {
				require.Equal(t, []byte(`1`), e.Output)
				require.Equal(t, t0.Add(30*time.Second), e.FinishedAt)
				require.Empty(t, string(e.Reason)+e.Message)
			}
		})
	}
}

func TestResultOfARepeatedResendIsRefused(t *testing.T) {
	p := retryPolicy(2, false)
	e := newExecution(2)
	run(t, e, t0, p)
	r := Report{Fence: 1, Outcome: OutcomeFailed, Error: "boom"}
	_, err := e.Finish(t0.Add(time.Second), r, p)
	require.NoError(t, err)
	require.NoError(t, e.Wait(t0, ReasonWaitInstance, "none online", t0.Add(time.Minute)))
	before := *e
	_, err = e.Finish(t0.Add(2*time.Second), r, p)
	require.Equal(t, CodeAlreadyFinished, CodeOf(err))
	require.Equal(t, before, *e)
}

func TestStartedAtIsClamped(t *testing.T) {
	granted, now := t0.Add(100*time.Millisecond), t0.Add(10*time.Second)
	for _, row := range []struct {
		name     string
		reported time.Time
		want     time.Time
	}{
		{"executor's clock is an hour behind", t0.Add(-time.Hour), granted},
		{"within", t0.Add(2 * time.Second), t0.Add(2 * time.Second)},
		{"executor's clock is an hour ahead", t0.Add(time.Hour), now},
		{"not reported", time.Time{}, time.Time{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newExecution(1)
			run(t, e, t0, noRetry)
			_, err := e.Finish(now, Report{Fence: 1, Outcome: OutcomeSucceeded, StartedAt: row.reported}, noRetry)
			require.NoError(t, err)
			require.Equal(t, row.want, e.StartedAt)
		})
	}
}

func TestErrorKinds(t *testing.T) {
	for _, row := range []struct {
		kind    string
		reason  Reason
		retried bool
	}{
		{"", ReasonHandlerFailed, true},
		{"error", ReasonHandlerFailed, true},
		{"panic", ReasonHandlerPanic, true},
		{"permanent", ReasonPermanent, false},
		{"bad_input", ReasonBadInput, false},
		{"unknown_handler", ReasonUnknownHandler, false},
		{"output_too_large", ReasonBigOutput, false},
		{"lease_lost", ReasonLeaseLost, true},
		{"stalled", ReasonStalled, true},
	} {
		t.Run(row.kind, func(t *testing.T) {
			p := retryPolicy(2, false)
			e := newExecution(2)
			run(t, e, t0, p)
			_, err := e.Finish(t0.Add(time.Second), Report{Fence: 1, Outcome: OutcomeFailed, ErrorKind: row.kind}, p)
			require.NoError(t, err)
			require.Equal(t, row.reason, e.Reason)
			require.Equal(t, row.retried, e.State == RetryWait)
			require.Equal(t, !row.retried, e.State == Failed)
		})
	}
}

func TestStillRunningIsNeverRepeated(t *testing.T) {
	p := retryPolicy(5, true)
	e := newExecution(5)
	run(t, e, t0, p)
	fx, err := e.Finish(t0.Add(time.Minute), Report{Fence: 1, Outcome: OutcomeTimedOut, StillRunning: true}, p)
	require.NoError(t, err)
	require.Equal(t, TimedOut, e.State)
	require.Equal(t, Effects{Alert: AlertRunTimedOut}, fx)
	require.True(t, e.Lingers)
	require.True(t, e.HoldsSlot, "the next run would start beside it")
}

func TestRetryAfterBeatsTheDelay(t *testing.T) {
	p := retryPolicy(2, false)
	e := newExecution(2)
	run(t, e, t0, p)
	_, err := e.Finish(t0.Add(time.Second), Report{Fence: 1, Outcome: OutcomeFailed, RetryAfter: 90 * time.Second}, p)
	require.NoError(t, err)
	require.Equal(t, t0.Add(91*time.Second), e.NotBefore)
}

func TestLostAttemptIsRepeatedOnlyWhereAllowed(t *testing.T) {
	for _, row := range []struct {
		name     string
		attempts int
		lost     bool
		want     State
		alert    AlertKind
	}{
		{"forbidden, attempts left", 3, false, Lost, AlertRunLost},
		{"allowed, attempts left", 3, true, RetryWait, ""},
		{"allowed, last attempt", 1, true, RetryWait, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retryPolicy(row.attempts, row.lost)
			e := newExecution(row.attempts)
			run(t, e, t0, p)
			fx, err := e.Lose(t0.Add(20*time.Second), ReasonLeaseExpired, "silent", p)
			require.NoError(t, err)
			require.Equal(t, row.want, e.State)
			require.Equal(t, row.alert, fx.Alert)
			require.Equal(t, row.want == RetryWait, fx.Archive != nil)
			require.Equal(t, ReasonLeaseExpired, e.Reason)
			require.Equal(t, t0.Add(20*time.Second), e.FinishedAt)
		})
	}
}

// A covered run that runs keeps its slot, tells why it stops, and is not tried
// again however it ends.
func TestACoveredAttemptEndsWithItsReason(t *testing.T) {
	p := retryPolicy(3, true)
	for outcome, want := range map[Outcome]State{OutcomeCancelled: Cancelled, OutcomeSucceeded: Succeeded, OutcomeFailed: Failed, OutcomeUnknown: Cancelled} {
		e := newExecution(3)
		run(t, e, t0, p)
		e.HoldsSlot = true
		fx, err := e.Cover(t0.Add(time.Second), "a later run is due")
		require.NoError(t, err)
		require.Equal(t, Effects{}, fx)
		require.Equal(t, Cancelling, e.State)
		require.Equal(t, ReasonCovered, e.Reason)
		require.True(t, e.HoldsSlot)
		fx, err = e.Finish(t0.Add(2*time.Second), Report{Fence: e.Fence, Outcome: outcome}, p)
		require.NoError(t, err)
		require.Equal(t, want, e.State)
		require.True(t, fx.ReleaseSlot)
		if outcome == OutcomeCancelled {
			require.Equal(t, ReasonCovered, e.Reason)
		}
	}
}
