package domain

import "time"

// A run lingers when it has ended and its handler still runs: the handler
// ignores that its context was cancelled, or nobody has heard of its end. The
// outcome stands, but what the run holds (the slot of its job, its place under
// limits) stays with it: giving it away would let the next run start beside the
// handler that still runs.
//
//	running, cancelling ── result: still running ──▶ ended, lingers ──▶ ended
//	          └─────────── deadline passed ─────────▶     │
//	                                                      ├ result of the same fence: the handler has returned
//	                                                      └ lease over: the process is dead, or has given up

// linger lets the run that fx has just ended keep what it held. Somebody looks
// at it at the lease's end, like at a running one.
func (e *Execution) linger(now time.Time, fx Effects) Effects {
	e.Lingers, e.HoldsSlot = true, fx.ReleaseSlot
	e.WakeAt = now.Add(LeaseTTL + LeaseMargin)
	fx.ReleaseSlot = false
	return fx
}

// returned ends the lingering: the handler is known to run no more. State,
// reason and outcome stay.
func (e *Execution) returned(now time.Time) Effects {
	fx := Effects{ReleaseSlot: e.HoldsSlot}
	e.Lingers, e.HoldsSlot = false, false
	e.ReturnedAt, e.WakeAt = now, time.Time{}
	return fx
}

// hearsOf applies a report to a run that lingers. Every report but one that
// the handler still runs proves that it does not: it has returned, has never
// started, or has died with its process.
func (e *Execution) hearsOf(now time.Time, r Report) (Effects, error) {
	if r.StillRunning {
		return Effects{}, Errorf(CodeAlreadyFinished, "execution %s is %s already", e.ID, e.State)
	}
	return e.returned(now), nil
}

// sweepLingering ends the lingering when the instance is dead, by the same
// rule by which a running attempt is lost. A run that the admin ended by itself
// gets its cancel again and again: an instance that has never seen the attempt
// says so in answer to that.
func (e *Execution) sweepLingering(now, leaseUntil time.Time) (SweepAction, Effects) {
	over := leaseUntil.Add(LeaseMargin)
	if now.After(over) {
		return SweepNothing, e.returned(now)
	}
	e.WakeAt = over
	if e.reported() {
		return SweepNothing, Effects{}
	}
	if again := now.Add(StartResend); again.Before(over) {
		e.WakeAt = again
	}
	return SweepCancel, Effects{}
}

// OccupiesInstance reports whether a handler of the execution runs on an
// instance, or may be about to: what counts under limits. Of a family the parts
// do.
func (e *Execution) OccupiesInstance() bool {
	return (e.State.OnInstance() || e.Lingers) && !e.OnlyPartsMove()
}
