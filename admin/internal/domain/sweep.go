package domain

import "time"

// SweepAction tells the caller of Sweep what to do outside the database.
type SweepAction uint8

const (
	SweepNothing  SweepAction = iota
	SweepDispatch             // put it into the local timer: it is due now or soon
	SweepCancel               // send the cancel again, if a local session serves its instance
	SweepResend               // send the one-step offer again, likewise
)

// Sweep moves an execution that nobody has touched until its WakeAt.
// leaseUntil is the end of the lease of its instance, or of the one that it
// waits for (zero: no such instance); hold is how long the caller keeps a due
// execution to itself.
func (e *Execution) Sweep(now, leaseUntil time.Time, hold time.Duration, p Policy) (SweepAction, Effects, error) {
	if e.OnlyPartsMove() {
		return e.sweepFamily(now), Effects{}, nil
	}
	switch e.State {
	case Due, RetryWait:
		if ended, fx, err := e.instanceGone(now, leaseUntil, p); ended || err != nil {
			return SweepNothing, fx, err
		}
		if e.State == RetryWait && now.Before(e.NotBefore) && e.retryOnlyThere(p) {
			e.WakeAt = e.retryCheck(now, p)
			return SweepNothing, Effects{}, nil
		}
		if e.AwaitsTurn() && !e.ExpireAt.IsZero() {
			// Waiting for its turn is not waiting for an instance: that wait
			// begins when the slot is free and the limit has room.
			e.ExpireAt = p.waitEnd(now)
		}
		if e.SendsSpent(p.SendRetry) {
			fx, err := e.SendFailed(now)
			return SweepNothing, fx, err
		}
		if e.Expired(now) {
			fx, err := e.Expire(now)
			return SweepNothing, fx, err
		}
		e.WakeAt = e.NotBefore.Add(PickupGrace)
		if held := now.Add(hold); e.WakeAt.Before(held) {
			e.WakeAt = held
		}
		return SweepDispatch, Effects{}, nil
	case Offered:
		if now.Before(e.offerEnd()) {
			e.WakeAt = e.offerEnd()
			return SweepNothing, Effects{}, nil
		}
		err := e.GiveBack(now, e.Fence, ReasonOfferExpired, "the instance did not answer the offer in time", e.SendWait(p.SendRetry, 0))
		if err == nil && e.SendsSpent(p.SendRetry) {
			fx, err := e.SendFailed(now)
			return SweepNothing, fx, err
		}
		e.WakeAt = e.NotBefore.Add(hold)
		return SweepDispatch, Effects{}, err
	case Running, Cancelling:
		return e.sweepRunning(now, leaseUntil, p)
	default:
		if e.Lingers {
			action, fx := e.sweepLingering(now, leaseUntil)
			return action, fx, nil
		}
		e.WakeAt = time.Time{}
		return SweepNothing, Effects{}, nil
	}
}

func (e *Execution) sweepRunning(now, leaseUntil time.Time, p Policy) (SweepAction, Effects, error) {
	if now.After(leaseUntil.Add(LeaseMargin)) {
		fx, err := e.Lose(now, ReasonLeaseExpired, "its instance went silent and its lease ran out", p)
		return SweepNothing, fx, err
	}
	if !e.Deadline.IsZero() && !now.Before(e.Deadline) {
		fx, err := e.ExpireDeadline(now)
		return SweepCancel, fx, err
	}
	err := e.StillAlive(leaseUntil)
	switch {
	case e.State == Cancelling:
		e.WakeAt = e.nextCheck(now.Add(CancelResend))
		return SweepCancel, Effects{}, err
	case e.Idempotent && e.StartedAt.IsZero() && now.Before(e.offerEnd()):
		e.WakeAt = e.nextCheck(e.offerEnd())
		return SweepNothing, Effects{}, err
	case e.Idempotent && e.StartedAt.IsZero():
		// Its offer was the grant, and the connection may have broken before it
		// arrived. An instance takes a fence once, so that one more does no harm.
		e.WakeAt = e.nextCheck(now.Add(StartResend))
		return SweepResend, Effects{}, err
	}
	return SweepNothing, Effects{}, err
}
