package domain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	t0      = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	noRetry = Policy{Retry: Retry{MaxAttempts: 1, Delay: 10 * time.Second}, DispatchTimeout: time.Minute}
)

const (
	testNode     NodeID     = 3
	testInstance InstanceID = 77
)

func newExecution(maxAttempts int) *Execution {
	return &Execution{
		ID: 1001, TenantID: 1, JobID: 5, Revision: 2, Executor: 9, Cause: CauseSchedule,
		FireAt: t0, State: Due, MaxAttempts: maxAttempts, NotBefore: t0, WakeAt: t0.Add(PickupGrace),
		ExpireAt: t0.Add(time.Minute), PlannedAt: t0.Add(-time.Second), LogLines: -1,
	}
}

// inState walks an execution with one allowed attempt to a state by legal
// moves only, so that the table below starts from what can really exist.
func inState(t *testing.T, s State) *Execution {
	t.Helper()
	e := newExecution(1)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("walk to %s: %v", s, err)
		}
	}
	finish := func(o Outcome) {
		_, err := e.Finish(t0.Add(2*time.Second), Report{Fence: e.Fence, Outcome: o}, noRetry)
		must(err)
	}
	offer := func(granted bool) {
		must(e.Offer(t0, testNode, testInstance, granted, granted, noRetry))
		e.HoldsSlot = true
	}
	switch s {
	case Due:
	case Offered:
		offer(false)
	case Running:
		offer(true)
	case Cancelling, Cancelled:
		offer(true)
		_, err := e.RequestCancel(t0.Add(time.Second), ReasonKilled, "by alice")
		must(err)
		if s == Cancelled {
			finish(OutcomeCancelled)
		}
	case RetryWait:
		e.MaxAttempts = 2
		offer(true)
		finish(OutcomeFailed)
	case Succeeded:
		offer(true)
		finish(OutcomeSucceeded)
	case Failed:
		offer(true)
		finish(OutcomeFailed)
	case TimedOut:
		offer(true)
		finish(OutcomeTimedOut)
	case Lost:
		offer(true)
		finish(OutcomeUnknown)
	case Missed:
		_, err := e.Miss(t0.Add(time.Minute), ReasonNoExecutor, "")
		must(err)
	case Discarded:
		_, err := e.Discard(t0, ReasonOverlap, "")
		must(err)
	case Excluded: // as the planner writes it
		e.State, e.Reason, e.WakeAt, e.FinishedAt = Excluded, ReasonCalendar, time.Time{}, t0
	}
	if e.State != s {
		t.Fatalf("walked to %s instead of %s", e.State, s)
	}
	return e
}

func terminalWith(c Code) map[State]Code {
	m := map[State]Code{}
	for _, s := range States {
		if s.Terminal() {
			m[s] = c
		}
	}
	return m
}

func without(m map[State]Code, drop ...State) map[State]Code {
	for _, s := range drop {
		delete(m, s)
	}
	return m
}

func with(m map[State]Code, s State, c Code) map[State]Code {
	m[s] = c
	return m
}

// TestMoves has one row per move and state. A state that is not in legal is
// refused with the code in refused, or CodeIllegalMove, and nothing changes.
func TestMoves(t *testing.T) {
	now := t0.Add(30 * time.Minute) // past every waiting time, lease and deadline
	finish := func(o Outcome) func(*Execution) (Effects, error) {
		return func(e *Execution) (Effects, error) {
			return e.Finish(now, Report{Fence: e.Fence, Outcome: o}, noRetry)
		}
	}
	noEffects := func(err error) (Effects, error) { return Effects{}, err }
	finished := func() map[State]Code { return with(terminalWith(CodeAlreadyFinished), RetryWait, CodeAlreadyFinished) }

	rows := []struct {
		name    string
		move    func(*Execution) (Effects, error)
		legal   map[State]State
		refused map[State]Code
	}{
		{
			name: "offer",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Offer(now, testNode, testInstance, false, false, noRetry))
			},
			legal: map[State]State{Due: Offered, RetryWait: Offered},
		}, {
			name: "offer granted",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Offer(now, testNode, testInstance, true, true, noRetry))
			},
			legal: map[State]State{Due: Running, RetryWait: Running},
		}, {
			name: "grant",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Grant(t0.Add(time.Second), e.Fence, e.Instance, noRetry))
			},
			legal: map[State]State{Offered: Running},
		}, {
			name: "give back",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.GiveBack(now, e.Fence, ReasonOfferRefused, "full", time.Second))
			},
			legal: map[State]State{Offered: Due},
		}, {
			name: "refuse", // running here is a one-step attempt
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Refuse(now, e.Fence, ReasonOfferRefused, "full", time.Second))
			},
			legal: map[State]State{Offered: Due, Running: Due},
		}, {
			name: "started",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Started(now, e.Fence, e.Instance, now))
			},
			legal: map[State]State{Running: Running, Cancelling: Cancelling},
		}, {
			name: "wait",
			move: func(e *Execution) (Effects, error) {
				return noEffects(e.Wait(now, ReasonWaitInstance, "none online", now.Add(time.Second)))
			},
			legal: map[State]State{Due: Due, RetryWait: RetryWait},
		},
		{name: "finish succeeded", move: finish(OutcomeSucceeded), refused: without(finished(), Lost),
			legal: map[State]State{Running: Succeeded, Cancelling: Succeeded, Lost: Succeeded}},
		{name: "finish failed", move: finish(OutcomeFailed), refused: without(finished(), Lost),
			legal: map[State]State{Running: Failed, Cancelling: Failed, Lost: Failed}},
		{name: "finish timed out", move: finish(OutcomeTimedOut), refused: without(finished(), Lost),
			legal: map[State]State{Running: TimedOut, Cancelling: TimedOut, Lost: TimedOut}},
		{name: "finish cancelled", move: finish(OutcomeCancelled), refused: without(finished(), Lost),
			// A cancel that nobody asked for is a failure.
			legal: map[State]State{Running: Failed, Cancelling: Cancelled, Lost: Failed}},
		{name: "finish never started", move: finish(OutcomeNeverStarted), refused: without(finished(), Lost),
			legal: map[State]State{Offered: Due, Running: Due, Cancelling: Cancelled, Lost: Due}},
		{name: "finish unknown", move: finish(OutcomeUnknown), refused: finished(),
			legal: map[State]State{Running: Lost, Cancelling: Cancelled}},
		{
			name: "lose",
			move: func(e *Execution) (Effects, error) {
				return e.Lose(now, ReasonLeaseExpired, "", noRetry)
			},
			legal: map[State]State{Running: Lost, Cancelling: Cancelled},
		}, {
			name: "expire deadline",
			move: func(e *Execution) (Effects, error) {
				e.Deadline = now
				return e.ExpireDeadline(now)
			},
			legal: map[State]State{Running: TimedOut, Cancelling: TimedOut},
		}, {
			name:  "still alive",
			move:  func(e *Execution) (Effects, error) { return noEffects(e.StillAlive(now)) },
			legal: map[State]State{Running: Running, Cancelling: Cancelling},
		}, {
			name: "request cancel",
			move: func(e *Execution) (Effects, error) {
				return e.RequestCancel(now, ReasonKilled, "by bob")
			},
			legal: map[State]State{Due: Cancelled, RetryWait: Cancelled, Offered: Cancelled,
				Running: Cancelling, Cancelling: Cancelling},
			refused: terminalWith(CodeAlreadyFinished),
		}, {
			name:  "miss",
			move:  func(e *Execution) (Effects, error) { return e.Miss(now, ReasonNoExecutor, "") },
			legal: map[State]State{Due: Missed, RetryWait: Failed},
		}, {
			name:  "discard",
			move:  func(e *Execution) (Effects, error) { return e.Discard(now, ReasonOverlap, "") },
			legal: map[State]State{Due: Discarded},
		}, {
			name:  "exclude",
			move:  func(e *Execution) (Effects, error) { return Exclude(e, now, "maintenance") },
			legal: map[State]State{Due: Excluded},
		}, {
			name:  "hold",
			move:  func(e *Execution) (Effects, error) { return noEffects(Hold(e, now, ReasonMaintenance, "maintenance")) },
			legal: map[State]State{Offered: Due},
		}, {
			name: "cover",
			move: func(e *Execution) (Effects, error) { return e.Cover(now, "a later run is due") },
			legal: map[State]State{Due: Discarded, Offered: Discarded, RetryWait: Cancelled,
				Running: Cancelling, Cancelling: Cancelling},
			refused: terminalWith(CodeAlreadyFinished),
		}, {
			name: "sweep with a dead lease",
			move: func(e *Execution) (Effects, error) {
				_, fx, err := e.Sweep(now, time.Time{}, time.Second, noRetry)
				return fx, err
			},
			legal: map[State]State{Due: Missed, Offered: Due, Running: Lost, Cancelling: Cancelled, RetryWait: Failed,
				Succeeded: Succeeded, Failed: Failed, TimedOut: TimedOut, Cancelled: Cancelled, Lost: Lost,
				Missed: Missed, Discarded: Discarded, Excluded: Excluded},
		}, {
			name: "sweep with a live lease",
			move: func(e *Execution) (Effects, error) {
				_, fx, err := e.Sweep(t0.Add(20*time.Second), t0.Add(30*time.Second), time.Second, noRetry)
				return fx, err
			},
			legal: map[State]State{Due: Due, Offered: Due, Running: Running, Cancelling: Cancelling, RetryWait: RetryWait,
				Succeeded: Succeeded, Failed: Failed, TimedOut: TimedOut, Cancelled: Cancelled, Lost: Lost,
				Missed: Missed, Discarded: Discarded, Excluded: Excluded},
		},
	}
	for _, row := range rows {
		for _, from := range States {
			t.Run(row.name+"/"+from.String(), func(t *testing.T) {
				e := inState(t, from)
				checkMove(t, e, row.move, row.legal, row.refused)
			})
		}
	}
}

// lingering returns a run of which the executor, or only the admin, says that
// its handler still runs.
func lingering(t *testing.T, reported bool) *Execution {
	t.Helper()
	e := inState(t, Running)
	e.Deadline = t0.Add(time.Second)
	move := func() (Effects, error) { return e.ExpireDeadline(t0.Add(2 * time.Second)) }
	if reported {
		move = func() (Effects, error) {
			return e.Finish(t0.Add(2*time.Second), Report{Fence: e.Fence, Outcome: OutcomeTimedOut, StillRunning: true}, noRetry)
		}
	}
	fx, err := move()
	if err != nil || !e.Lingers || !e.HoldsSlot || fx != (Effects{Alert: AlertRunTimedOut}) {
		t.Fatalf("%v, effects %+v, %+v", err, fx, e)
	}
	return e
}

// TestMovesOfALingeringRun has one row per move: only the news that the handler
// runs no more is taken, and the outcome stands.
func TestMovesOfALingeringRun(t *testing.T) {
	now := t0.Add(30 * time.Minute)
	noEffects := func(err error) (Effects, error) { return Effects{}, err }
	finish := func(o Outcome, still bool) func(*Execution) (Effects, error) {
		return func(e *Execution) (Effects, error) {
			return e.Finish(now, Report{Fence: e.Fence, Outcome: o, StillRunning: still}, noRetry)
		}
	}
	sweep := func(lease time.Time) func(*Execution) (Effects, error) {
		return func(e *Execution) (Effects, error) {
			_, fx, err := e.Sweep(now, lease, time.Second, noRetry)
			return fx, err
		}
	}
	for name, row := range map[string]struct {
		move     func(*Execution) (Effects, error)
		returned bool
		refused  Code
	}{
		"succeeded after all":     {finish(OutcomeSucceeded, false), true, ""},
		"failed":                  {finish(OutcomeFailed, false), true, ""},
		"timed out":               {finish(OutcomeTimedOut, false), true, ""},
		"cancelled":               {finish(OutcomeCancelled, false), true, ""},
		"its process died":        {finish(OutcomeUnknown, false), true, ""},
		"never started":           {finish(OutcomeNeverStarted, false), true, ""},
		"still running, repeated": {finish(OutcomeTimedOut, true), false, CodeAlreadyFinished},
		"an older fence": {func(e *Execution) (Effects, error) {
			return e.Finish(now, Report{Fence: e.Fence - 1, Outcome: OutcomeFailed}, noRetry)
		}, false, CodeStaleFence},
		"sweep, no such instance": {sweep(time.Time{}), true, ""},
		"sweep, lease over":       {sweep(now.Add(-LeaseMargin - time.Millisecond)), true, ""},
		"sweep, lease just over":  {sweep(now.Add(-LeaseMargin)), false, ""},
		"sweep, lease lasts":      {sweep(now.Add(time.Second)), false, ""},
		"offer":                   {func(e *Execution) (Effects, error) { return noEffects(e.Offer(now, 1, 2, true, true, noRetry)) }, false, CodeIllegalMove},
		"grant":                   {func(e *Execution) (Effects, error) { return noEffects(e.Grant(now, e.Fence, e.Instance, noRetry)) }, false, CodeIllegalMove},
		"give back":               {func(e *Execution) (Effects, error) { return noEffects(e.GiveBack(now, e.Fence, "", "", 0)) }, false, CodeIllegalMove},
		"refuse":                  {func(e *Execution) (Effects, error) { return noEffects(e.Refuse(now, e.Fence, "", "", 0)) }, false, CodeIllegalMove},
		"started":                 {func(e *Execution) (Effects, error) { return noEffects(e.Started(now, e.Fence, e.Instance, now)) }, false, CodeIllegalMove},
		"wait":                    {func(e *Execution) (Effects, error) { return noEffects(e.Wait(now, ReasonWaitSlot, "", now)) }, false, CodeIllegalMove},
		"wake":                    {func(e *Execution) (Effects, error) { return noEffects(e.Wake(now, time.Second)) }, false, CodeIllegalMove},
		"lose":                    {func(e *Execution) (Effects, error) { return e.Lose(now, ReasonLeaseExpired, "", noRetry) }, false, CodeIllegalMove},
		"expire deadline":         {func(e *Execution) (Effects, error) { return e.ExpireDeadline(now) }, false, CodeIllegalMove},
		"still alive":             {func(e *Execution) (Effects, error) { return noEffects(e.StillAlive(now)) }, false, CodeIllegalMove},
		"request cancel":          {func(e *Execution) (Effects, error) { return e.RequestCancel(now, ReasonKilled, "") }, false, CodeAlreadyFinished},
		"miss":                    {func(e *Execution) (Effects, error) { return e.Miss(now, ReasonPaused, "") }, false, CodeIllegalMove},
		"discard":                 {func(e *Execution) (Effects, error) { return e.Discard(now, ReasonOverlap, "") }, false, CodeIllegalMove},
		"cover":                   {func(e *Execution) (Effects, error) { return e.Cover(now, "") }, false, CodeAlreadyFinished},
		"the handler runs, it says": {func(e *Execution) (Effects, error) {
			if v := (Held{e.ID, e.Fence, HeldRunning}).Reconcile(e, now, e.Instance, noRetry); v != VerdictKeep {
				t.Fatalf("verdict %d", v)
			}
			return Effects{}, nil
		}, false, ""},
	} {
		for _, reported := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				e := lingering(t, reported)
				before := *e
				fx, err := row.move(e)
				if CodeOf(err) != row.refused {
					t.Fatalf("error %v has code %q, want %q", err, CodeOf(err), row.refused)
				}
				want := before
				if row.returned {
					want.Lingers, want.HoldsSlot, want.ReturnedAt, want.WakeAt = false, false, now, time.Time{}
				} else {
					want.WakeAt = e.WakeAt // see TestWhenALingeringRunIsLookedAt
				}
				if diff := cmp.Diff(want, *e); diff != "" {
					t.Fatal(diff)
				}
				if fx != (Effects{ReleaseSlot: row.returned}) {
					t.Fatalf("effects %+v", fx)
				}
			})
		}
	}
}

func checkMove(t *testing.T, e *Execution, move func(*Execution) (Effects, error), legal map[State]State, refused map[State]Code) {
	t.Helper()
	before, held := *e, e.HoldsSlot
	fx, err := move(e)
	want, ok := legal[before.State]
	if !ok {
		code := refused[before.State]
		if code == "" {
			code = CodeIllegalMove
		}
		if CodeOf(err) != code {
			t.Fatalf("error %v has code %q, want %q", err, CodeOf(err), code)
		}
		e.Deadline = before.Deadline // the row "expire deadline" sets it itself
		if diff := cmp.Diff(before, *e); diff != "" {
			t.Fatalf("a refused move changed the execution:\n%s", diff)
		}
		if fx != (Effects{}) {
			t.Fatalf("a refused move has effects: %+v", fx)
		}
		return
	}
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	if e.State != want {
		t.Fatalf("moved to %s, want %s", e.State, want)
	}
	if e.WakeAt.IsZero() != (e.State.Terminal() && !e.Lingers) {
		t.Errorf("state %s with wake-up %v", e.State, e.WakeAt)
	}
	if fx.ReleaseSlot != (held && !e.HoldsSlot) {
		t.Errorf("slot held before %v, after %v, released %v", held, e.HoldsSlot, fx.ReleaseSlot)
	}
	checkAlert(t, before.State, e.State, fx.Alert)
}

// checkAlert: an alert is written exactly when a run gets to a bad end.
func checkAlert(t *testing.T, from, to State, got AlertKind) {
	t.Helper()
	var want AlertKind
	if from != to {
		want = map[State]AlertKind{Failed: AlertRunFailed, TimedOut: AlertRunTimedOut, Lost: AlertRunLost, Missed: AlertRunMissed}[to]
	}
	if got != want {
		t.Errorf("moving from %s to %s alerts %q, want %q", from, to, got, want)
	}
}
