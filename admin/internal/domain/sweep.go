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
	return sweep{e, now, leaseUntil, hold, p}.look()
}

// sweep is one look at an execution, with the arguments of Sweep.
type sweep struct {
	e               *Execution
	now, leaseUntil time.Time
	hold            time.Duration
	p               Policy
}

func (s sweep) look() (SweepAction, Effects, error) {
	if s.e.OnlyPartsMove() {
		return s.family(), Effects{}, nil
	}
	switch s.e.State {
	case Due, RetryWait:
		if ended, fx, err := s.instanceGone(); ended || err != nil {
			return SweepNothing, fx, err
		}
		if s.e.State == RetryWait && s.now.Before(s.e.NotBefore) && s.p.retryOnlyThere(s.e) {
			s.e.WakeAt = s.p.retryCheck(s.e, s.now)
			return SweepNothing, Effects{}, nil
		}
		if s.e.AwaitsTurn() && !s.e.ExpireAt.IsZero() {
			// Waiting for its turn is not waiting for an instance: that wait
			// begins when the slot is free and the limit has room.
			s.e.ExpireAt = s.p.waitEnd(s.now)
		}
		if s.e.Sends().Spent(s.p.SendRetry) {
			fx, err := s.e.SendFailed(s.now)
			return SweepNothing, fx, err
		}
		if s.e.Expired(s.now) {
			fx, err := s.e.Expire(s.now)
			return SweepNothing, fx, err
		}
		s.e.WakeAt = s.e.NotBefore.Add(PickupGrace)
		if held := s.now.Add(s.hold); s.e.WakeAt.Before(held) {
			s.e.WakeAt = held
		}
		return SweepDispatch, Effects{}, nil
	case Offered:
		if s.now.Before(s.e.offerEnd()) {
			s.e.WakeAt = s.e.offerEnd()
			return SweepNothing, Effects{}, nil
		}
		err := s.e.GiveBack(s.now, s.e.Fence, ReasonOfferExpired, "the instance did not answer the offer in time", s.e.Sends().Wait(s.p.SendRetry, 0))
		if err == nil && s.e.Sends().Spent(s.p.SendRetry) {
			fx, err := s.e.SendFailed(s.now)
			return SweepNothing, fx, err
		}
		s.e.WakeAt = s.e.NotBefore.Add(s.hold)
		return SweepDispatch, Effects{}, err
	case Running, Cancelling:
		return s.running()
	default:
		if s.e.Lingers {
			return s.lingering()
		}
		s.e.WakeAt = time.Time{}
		return SweepNothing, Effects{}, nil
	}
}

func (s sweep) running() (SweepAction, Effects, error) {
	if s.now.After(s.leaseUntil.Add(LeaseMargin)) {
		fx, err := s.e.Lose(s.now, ReasonLeaseExpired, "its instance went silent and its lease ran out", s.p)
		return SweepNothing, fx, err
	}
	if !s.e.Deadline.IsZero() && !s.now.Before(s.e.Deadline) {
		fx, err := s.e.ExpireDeadline(s.now)
		return SweepCancel, fx, err
	}
	err := s.e.StillAlive(s.leaseUntil)
	switch {
	case s.e.State == Cancelling:
		s.e.WakeAt = s.e.nextCheck(s.now.Add(CancelResend))
		return SweepCancel, Effects{}, err
	case s.e.Idempotent && s.e.StartedAt.IsZero() && s.now.Before(s.e.offerEnd()):
		s.e.WakeAt = s.e.nextCheck(s.e.offerEnd())
		return SweepNothing, Effects{}, err
	case s.e.Idempotent && s.e.StartedAt.IsZero():
		// Its offer was the grant, and the connection may have broken before it
		// arrived. An instance takes a fence once, so that one more does no harm.
		s.e.WakeAt = s.e.nextCheck(s.now.Add(StartResend))
		return SweepResend, Effects{}, err
	}
	return SweepNothing, Effects{}, err
}
