package domain

import "time"

// Timing of the moves. The first two answer to the limits in proto (an
// executor voids a grant that comes later than 5 s after its acceptance, so
// no grant can be valid once OfferTTL has passed here).
const (
	// OfferTTL is how long an offer may stay unanswered.
	OfferTTL = 3 * time.Second
	// OfferAhead is how long before its time an execution may be offered at most,
	// so that its instance has accepted it when the time comes (docs/adr/0045).
	OfferAhead = 60 * time.Millisecond
	// LeaseTTL is how long an instance may stay silent before its attempts die.
	LeaseTTL = 15 * time.Second
	// LeaseMargin is added before an expired lease is acted upon.
	LeaseMargin = 2 * time.Second
	// PickupGrace is how long after its time a due execution is left to the
	// node that planned it; then any node takes it.
	PickupGrace = time.Second
	// DeadlineGrace is how long after a timeout the executor may take to
	// report it, before the admin decides alone. It exceeds the executor's
	// grace for a handler that ignores its context (10 s).
	DeadlineGrace = 15 * time.Second
	// CancelResend is how often an unanswered cancel is sent again.
	CancelResend = 2 * time.Second
	// StartResend is how often a one-step offer is sent again while nobody has
	// said that its handler started. The first time is after OfferTTL.
	StartResend = 5 * time.Second
)

// Delayed runs.
const (
	// ColdAfter is how far ahead a delayed run has to be for no node to keep it
	// in memory.
	ColdAfter = time.Minute
	// WarmUp is how long before its time a cold run is handed to a timer.
	WarmUp = 5 * time.Second
)

// FirstWake returns the WakeAt of a run that is created now for fireAt.
func FirstWake(now, fireAt time.Time) time.Time {
	if fireAt.Sub(now) > ColdAfter {
		return fireAt.Add(-WarmUp)
	}
	return fireAt.Add(PickupGrace)
}

// Effects is what a move demands beside the changed row itself. The store
// carries it out in the same transaction.
type Effects struct {
	// Archive is the attempt to keep, because another one will follow.
	Archive *Attempt
	// ReleaseSlot: the execution gives back its place in the job's slot row.
	ReleaseSlot bool
	// Alert is the kind of event to write to the outbox, or empty.
	Alert AlertKind
}

// Policy is the part of a job's settings that decides what follows an attempt.
type Policy struct {
	Retry     Retry
	SendRetry SendRetry
	// RetryLost: an attempt with unknown outcome may be repeated.
	RetryLost bool
	Timeout   time.Duration
	// DispatchTimeout bounds each wait for an instance; 0 = DefaultDispatchTimeout.
	DispatchTimeout time.Duration
	// MoveGone: see GoneMove.
	MoveGone bool
	// PartOfSlot marks a part. Its parent holds the job's slot for it.
	PartOfSlot bool
}

// waitEnd returns when a wait for an instance that begins at from is over.
func (p Policy) waitEnd(from time.Time) time.Time {
	if p.DispatchTimeout <= 0 {
		return from.Add(DefaultDispatchTimeout)
	}
	return from.Add(p.DispatchTimeout)
}

// PolicyOf resolves the policy of a spec. idempotent is the handler's promise
// when the attempt was offered (Execution.Idempotent).
func PolicyOf(spec *JobSpec, idempotent bool) Policy {
	lost := spec.OnLost == OnLostRetry || (spec.OnLost != OnLostFail && idempotent)
	return Policy{
		Retry: spec.Retry, SendRetry: spec.SendRetry, RetryLost: lost, Timeout: spec.Timeout, DispatchTimeout: spec.DispatchTimeout,
		MoveGone: spec.Sharding.OnGone == GoneMove, PartOfSlot: spec.PartOfSlot,
	}
}

func (e *Execution) illegal(move string) error {
	return Errorf(CodeIllegalMove, "run %s is %s: cannot %s", e.ID, e.State, move)
}

// Offer moves a due execution to an instance (arrow 3), or straight to
// running when granted is set, which takes a handler registered as idempotent:
// one offer may then reach the instance twice, or not at all (see Sweep). One
// that still needs its grant may come before the execution's time, which Grant
// waits for.
//
// idempotent is the handler's promise at this moment; it decides, unless the
// job says otherwise, whether a lost attempt may be repeated.
func (e *Execution) Offer(now time.Time, node NodeID, instance InstanceID, idempotent, granted bool, p Policy) error {
	if e.State != Due && e.State != RetryWait {
		return e.illegal("offer it")
	}
	if granted && !idempotent {
		return Errorf(CodeIllegalMove, "run %s: only the offer to an idempotent handler can be its grant", e.ID)
	}
	if now.Before(e.NotBefore) && (granted || !e.Ahead(now)) {
		return Errorf(CodeIllegalMove, "run %s is not due before %s", e.ID, e.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	if e.Sends().Spent(p.SendRetry) {
		return e.illegal("send it again")
	}
	e.State, e.Reason, e.Message = Offered, "", ""
	e.Fence++
	e.Node, e.Instance, e.Idempotent = node, instance, idempotent
	e.OfferedAt, e.GrantedAt, e.StartedAt, e.FinishedAt = now, time.Time{}, time.Time{}, time.Time{}
	e.Took = 0
	e.Output, e.ErrorKind, e.Error, e.Stack, e.LogLines = nil, "", "", "", -1
	if granted {
		e.start(now, p)
	}
	e.lookBy(now, e.offerEnd()) // has it arrived?
	return nil
}

// offerEnd is when the offer's time is over.
func (e *Execution) offerEnd() time.Time { return e.OfferedAt.Add(OfferTTL) }

// lookBy lets somebody look at the execution at t at the latest. An earlier
// look that is still to come stays: most runs are over by then, and moving it
// would cost them an entry of the index that the sweep reads. A sweep that
// comes early finds the right instant by itself (docs/adr/0010).
func (e *Execution) lookBy(now, t time.Time) {
	if !e.WakeAt.After(now) || e.WakeAt.After(t) {
		e.WakeAt = t
	}
}

// Ahead reports whether the execution's time is still to come, and so close that
// it may be offered already. What is further away was put there by a clock that
// was set back.
func (e *Execution) Ahead(now time.Time) bool {
	left := e.NotBefore.Sub(now)
	return left > 0 && left <= OfferAhead
}

// MaybeUnplanned reports whether the execution, which a schedule made, has not
// come to its time: whoever changes the schedule may plan its instant anew. One
// that was offered ahead gets no grant then.
func MaybeUnplanned(e *Execution, now time.Time) bool {
	waits := e.State == Due || e.State == Offered
	return waits && e.FireAt.After(now) && !e.IsPart() && (e.Fence == 0 || e.Attempt == 0 && e.OfferedAt.Before(e.FireAt))
}

// Grant lets the offered attempt start (arrow 4). It fails before the
// execution's time, and once the offer's time is over: then the executor will
// not start it either.
func (e *Execution) Grant(now time.Time, fence int64, instance InstanceID, p Policy) error {
	if e.Fence != fence || e.Instance != instance {
		return Errorf(CodeStaleFence, "run %s was offered again", e.ID)
	}
	if e.State != Offered || e.Ahead(now) || !now.Before(e.offerEnd()) {
		return e.illegal("grant it")
	}
	e.start(now, p)
	return nil
}

// Has reports whether the attempt with this fence has its grant on the
// instance: granting it again changes nothing.
func (e *Execution) Has(fence int64, instance InstanceID) bool {
	return e.State == Running && e.Fence == fence && e.Instance == instance
}

func (e *Execution) start(now time.Time, p Policy) {
	e.State = Running
	e.Attempt++
	e.GrantedAt = now
	e.Deadline = time.Time{}
	if timeout := TimeoutOf(e, p.Timeout); timeout > 0 {
		e.Deadline = now.Add(timeout + DeadlineGrace)
	}
	e.lookBy(now, e.nextCheck(now.Add(LeaseTTL+LeaseMargin)))
}

// nextCheck returns the earlier of t and the deadline.
func (e *Execution) nextCheck(t time.Time) time.Time {
	if !e.Deadline.IsZero() && e.Deadline.Before(t) {
		return e.Deadline
	}
	return t
}

// GiveBack returns an offer that was refused, expired or could not be sent
// (arrow 5). The slot stays with the execution, so that order is kept.
// wait postpones the next offer, for example after a refusal because of load.
func (e *Execution) GiveBack(now time.Time, fence int64, reason Reason, message string, wait time.Duration) error {
	if e.Fence != fence {
		return Errorf(CodeStaleFence, "run %s was offered again", e.ID)
	}
	if e.State != Offered {
		return e.illegal("take its offer back")
	}
	e.backToDue(now, reason, message, wait)
	return nil
}

// Refuse returns an offer that the instance said no to (arrow 5). Unlike other
// ways to give back it takes a running one-step attempt too: who refuses an
// offer has not taken it, and starts nothing for it.
func (e *Execution) Refuse(now time.Time, fence int64, reason Reason, message string, wait time.Duration) error {
	if e.Fence != fence || e.State != Running || !e.Idempotent {
		return e.GiveBack(now, fence, reason, message, wait)
	}
	e.Attempt--
	e.backToDue(now, reason, message, wait)
	return nil
}

// Started notes when the handler of a running attempt was called, by the
// executor's clock. WakeAt stays: it may be early because the instance was
// found dead meanwhile.
func (e *Execution) Started(now time.Time, fence int64, instance InstanceID, at time.Time) error {
	if e.Fence != fence || e.Instance != instance {
		return Errorf(CodeStaleFence, "run %s was offered again", e.ID)
	}
	if e.State != Running && e.State != Cancelling {
		return e.illegal("note its start")
	}
	e.StartedAt = clampTime(at, e.GrantedAt, now)
	return nil
}

func (e *Execution) backToDue(now time.Time, reason Reason, message string, wait time.Duration) {
	e.Delays.add(now, reason, message, e.Instance)
	e.State, e.Reason, e.Message = Due, reason, message
	e.Instance = 0
	if at := now.Add(wait); !e.Ahead(now) || at.After(e.NotBefore) {
		e.NotBefore = at
	}
	e.WakeAt = e.NotBefore.Add(PickupGrace)
	e.Deadline = time.Time{}
}

// Wait records why a due execution cannot be offered now, and when somebody
// has to look again: when its wait for an instance ends, at the latest.
func (e *Execution) Wait(now time.Time, reason Reason, message string, until time.Time) error {
	if e.State != Due && e.State != RetryWait {
		return e.illegal("wait")
	}
	if reason == ReasonWaitInstance && !e.ExpireAt.IsZero() && until.After(e.ExpireAt) {
		until = e.ExpireAt
	}
	e.Reason, e.Message, e.WakeAt = reason, message, until
	e.Delays.add(now, reason, message, 0)
	return nil
}

// AwaitsTurn reports whether the execution waits for its job's slot, for room under
// a limit or for the end of maintenance. That wait does not count against its
// dispatch timeout.
func (e *Execution) AwaitsTurn() bool {
	waits := e.Reason == ReasonWaitSlot || e.Reason == ReasonWaitLimit || e.Reason == ReasonMaintenance
	return waits && (e.State == Due || e.State == RetryWait)
}

// AwaitsStart reports whether the execution waits for an instance, or for the end of
// maintenance, and its row says so.
func AwaitsStart(e *Execution) bool {
	return (e.State == Due || e.State == RetryWait) && (e.Reason == ReasonWaitInstance || e.Reason == ReasonMaintenance)
}

// Wake makes an execution that waited for its turn ready to be offered: its
// job's slot is free now, the limit that it waited for has room, or the maintenance
// is over. The wait for
// an instance begins here, so ExpireAt is set anew, to patience from now (0 = it
// never expires). One whose wait for an instance has begun already is not woken:
// it would wait for longer than its dispatch timeout, once more for each run
// before it that gives up.
func (e *Execution) Wake(now time.Time, patience time.Duration) error {
	if !e.AwaitsTurn() {
		return e.illegal("wake it")
	}
	e.Reason, e.Message = "", ""
	e.WakeAt = now.Add(PickupGrace)
	if !e.ExpireAt.IsZero() && patience > 0 {
		e.ExpireAt = now.Add(patience)
	}
	return nil
}

// Expired reports whether the execution has waited for an instance for as long
// as it may. It is not offered any more; the sweep ends it.
func (e *Execution) Expired(now time.Time) bool {
	return !e.ExpireAt.IsZero() && !now.Before(e.ExpireAt) && !e.AwaitsTurn()
}

// Unattended reports whether no node has looked for an instance for a run that is due and
// has not begun, or its row does not say so.
func (e *Execution) Unattended() bool {
	return e.State == Due && !e.begun() && !e.IsPart() && e.Fence == 0 && len(e.Delays) == 0
}

// ExpireDeadline ends a running attempt whose executor did not enforce the
// timeout in time. It is never repeated, and lingers: the handler may still be
// running.
func (e *Execution) ExpireDeadline(now time.Time) (Effects, error) {
	if e.State != Running && e.State != Cancelling || e.Deadline.IsZero() || now.Before(e.Deadline) {
		return Effects{}, e.illegal("time it out")
	}
	e.FinishedAt = now
	fx := e.end(now, TimedOut, ReasonTimeout, "the executor did not report the timeout; the handler may still be running")
	return e.linger(now, fx), nil
}

// StillAlive postpones the next check of a running attempt: its instance's
// lease lasts until leaseUntil.
func (e *Execution) StillAlive(leaseUntil time.Time) error {
	if e.State != Running && e.State != Cancelling {
		return e.illegal("keep it alive")
	}
	e.WakeAt = e.nextCheck(leaseUntil.Add(LeaseMargin))
	return nil
}

// RequestCancel ends an execution that has not started, or asks a running one
// to stop (arrow 11).
func (e *Execution) RequestCancel(now time.Time, reason Reason, message string) (Effects, error) {
	switch e.State {
	case Due, RetryWait, Offered:
		return e.end(now, Cancelled, reason, message), nil
	case Running:
		e.State, e.Reason, e.Message = Cancelling, reason, message
		e.Delays.addStop(now, reason, message)
		e.WakeAt = now.Add(CancelResend)
		return Effects{}, nil
	case Cancelling:
		return Effects{}, nil
	default:
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s is %s already", e.ID, e.State)
	}
}

// Miss ends an execution that found no instance in time, or must not start any
// more (arrow 2). One that was tried before has failed.
func (e *Execution) Miss(now time.Time, reason Reason, message string) (Effects, error) {
	if e.State != Due && e.State != RetryWait {
		return Effects{}, e.illegal("call it missed")
	}
	if e.begun() {
		return e.end(now, Failed, reason, message), nil
	}
	return e.end(now, Missed, reason, message), nil
}

// Expire ends an execution whose wait for an instance is over.
func (e *Execution) Expire(now time.Time) (Effects, error) {
	return e.Miss(now, ReasonNoExecutor, "no instance took it before the deadline for dispatch")
}

// begun reports whether a handler may have been called for the execution.
func (e *Execution) begun() bool { return e.Attempt > 0 || e.Stage != StageNone }

// Discard ends a due execution because of earlier runs of its job: ReasonOverlap or
// ReasonQueueFull.
func (e *Execution) Discard(now time.Time, reason Reason, message string) (Effects, error) {
	if e.State != Due {
		return Effects{}, e.illegal("discard it")
	}
	return e.end(now, Discarded, reason, message), nil
}

// Cover ends a run whose place a later run of the job takes (blocking strategy
// cover early), or asks it to stop: a running attempt keeps its slot until it
// has ended, or until its cancel was forced. A run that was never started is
// discarded; one whose earlier attempt ran is cancelled.
func (e *Execution) Cover(now time.Time, message string) (Effects, error) {
	switch e.State {
	case Offered: // nothing has started: an answer to the offer finds it gone
		e.backToDue(now, ReasonCovered, message, 0)
	case Due, RetryWait:
	default:
		return e.RequestCancel(now, ReasonCovered, message)
	}
	if e.begun() {
		return e.end(now, Cancelled, ReasonCovered, message), nil
	}
	return e.end(now, Discarded, ReasonCovered, message), nil
}
