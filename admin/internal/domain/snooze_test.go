package domain

import (
	"testing"
	"time"
)

// A snooze is neither a failure nor an attempt, however often it comes.
func TestASnoozeUsesUpNoAttempt(t *testing.T) {
	e, now := newExecution(1), t0
	for n := 1; n <= 3; n++ {
		must(t, e.Offer(now, testNode, testInstance, true, true, noRetry))
		e.HoldsSlot = true
		if e.Attempt != n || e.MaxAttempts != n {
			t.Fatalf("attempt %d of %d, want %d of as many", e.Attempt, e.MaxAttempts, n)
		}
		fx, err := e.Finish(now.Add(time.Second), Report{
			Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "snoozed", Error: "snoozed for 1m", RetryAfter: time.Minute, LogLines: 2,
		}, noRetry)
		must(t, err)
		if e.State != RetryWait || e.Reason != ReasonSnoozed || e.MaxAttempts != n+1 || fx.Alert != "" || !fx.ReleaseSlot {
			t.Fatalf("%s %s attempt %d, %+v", e.State, e.Reason, e.Attempt, fx)
		}
		if a := fx.Archive; a == nil || a.Number != n || a.State != Cancelled || a.Reason != ReasonSnoozed || a.Fence != e.Fence {
			t.Fatalf("archived %+v", fx.Archive)
		}
		if want := now.Add(time.Second + time.Minute); !e.NotBefore.Equal(want) {
			t.Fatalf("again at %s, want %s", e.NotBefore, want)
		}
		now = e.NotBefore
	}
	must(t, e.Offer(now, testNode, testInstance, true, true, noRetry))
	_, err := e.Finish(now, Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "retryable"}, noRetry)
	must(t, err)
	if e.State != Failed {
		t.Fatalf("%s, want failed: the one attempt was left", e.State)
	}
}

// The wait for a retry grows with the failures, not with the snoozes between.
func TestSnoozesDoNotLengthenRetries(t *testing.T) {
	p := noRetry
	p.Retry = Retry{MaxAttempts: 3, Delay: time.Second, Backoff: 10, MaxDelay: time.Hour}
	e, now := newExecution(3), t0
	for i, kind := range []string{"snoozed", "snoozed", "retryable", "snoozed", "retryable", "retryable"} {
		must(t, e.Offer(now, testNode, testInstance, true, true, p))
		e.HoldsSlot = true
		_, err := e.Finish(now, Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: kind}, p)
		must(t, err)
		if want := []time.Duration{time.Second, time.Second, time.Second, time.Second, 10 * time.Second, 0}[i]; want > 0 && e.NotBefore.Sub(now) != want {
			t.Fatalf("%d (%s): again after %s, want %s", i, kind, e.NotBefore.Sub(now), want)
		}
		now = e.NotBefore
	}
	if e.State != Failed || e.Attempt != 6 || e.MaxAttempts != 6 {
		t.Fatalf("%s, attempt %d of %d", e.State, e.Attempt, e.MaxAttempts)
	}
}

func TestASnoozeWaitsAtLeastASecond(t *testing.T) {
	e := inState(t, Running)
	_, err := e.Finish(t0, Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "snoozed"}, noRetry)
	must(t, err)
	if want := t0.Add(time.Second); !e.NotBefore.Equal(want) {
		t.Fatalf("again at %s, want %s", e.NotBefore, want)
	}
}

func TestASnoozeOfARunThatIsCancelledEndsIt(t *testing.T) {
	e := inState(t, Cancelling)
	fx, err := e.Finish(t0.Add(2*time.Second), Report{Fence: e.Fence, Outcome: OutcomeFailed, ErrorKind: "snoozed"}, noRetry)
	must(t, err)
	if e.State != Cancelled || e.Reason != ReasonKilled || fx.Archive != nil {
		t.Fatalf("%s %s %+v", e.State, e.Reason, fx)
	}
}

func TestAHandlerMayCancelItsRun(t *testing.T) {
	e := inState(t, Running)
	e.MaxAttempts = 5
	fx, err := e.Finish(t0.Add(2*time.Second), Report{Fence: e.Fence, Outcome: OutcomeCancelled, ErrorKind: "cancelled", Error: "the order is gone"}, noRetry)
	must(t, err)
	if e.State != Cancelled || e.Reason != ReasonHandlerCancel || e.Message != "the order is gone" || fx.Alert != "" {
		t.Fatalf("%s %s %q %+v", e.State, e.Reason, e.Message, fx)
	}
}

func TestWhichCallbackFollows(t *testing.T) {
	spec := JobSpec{OnSuccess: FollowUp{Handler: "yes"}, OnFailure: FollowUp{Handler: "no"}}
	for _, s := range States {
		want := ""
		switch s {
		case Succeeded:
			want = "yes"
		case Failed, TimedOut, Lost, Missed:
			want = "no"
		}
		if got := spec.Callback(s).Handler; got != want {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
