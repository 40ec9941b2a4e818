package domain

import (
	"fmt"
	"strings"
	"time"
)

// OnlyPartsMove reports whether the execution is a running parent: no instance
// has it, and its parts say what becomes of it.
func (e *Execution) OnlyPartsMove() bool {
	return e.Stage == StageBefore || e.Stage == StageShards || e.Stage == StageAfter
}

// Family is what a parent's parts say, as they are in the database.
type Family struct {
	Living        int           // parts that have not ended, of all kinds
	Lingering     int           // parts that have ended while their handler still runs
	Shards        map[State]int // ended shards
	Before, After State         // 0: there is none
}

// count returns how many shards there are, and how many of them succeeded.
func (f Family) count() (all, succeeded int) {
	for s, n := range f.Shards {
		all += n
		if s == Succeeded {
			succeeded += n
		}
	}
	return all, succeeded
}

// Results says how the shards ended, for people: "3 of 5 shards succeeded, 1
// failed, 1 lost".
func (f Family) Results() string {
	all, succeeded := f.count()
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d shards succeeded", succeeded, all)
	for _, s := range States {
		if n := f.Shards[s]; n > 0 && s != Succeeded {
			fmt.Fprintf(&b, ", %d %s", n, s)
		}
	}
	return b.String()
}

// Step is what has to follow when a parent's parts have ended.
type Step uint8

const (
	StepNone     Step = iota
	StepReady         // the shards are to be made: dispatch it
	StepAfter         // the after hook is to be made in this transaction: BearAfter
	StepEnded         // it has ended
	StepReturned      // it had ended, and none of its handlers runs any more
)

// Advance moves a running parent on when none of its parts lives. A parent that
// ends while a part lingers does so, too: it keeps the slot.
func (e *Execution) Advance(now time.Time, f Family, spec *JobSpec) (Step, Effects) {
	switch {
	case !e.OnlyPartsMove():
		return StepNone, Effects{}
	case e.Lingers && f.Lingering == 0:
		return StepReturned, e.returned(now)
	case e.State.Terminal():
		if e.Lingers {
			e.WakeAt = now.Add(FamilyCheck)
		}
		return StepNone, Effects{}
	case f.Living > 0:
		return StepNone, Effects{}
	}
	if step := e.nextStage(now, f, spec); step != StepEnded {
		return step, Effects{}
	}
	state, reason, message := e.verdict(f)
	fx := e.end(now, state, reason, message)
	if f.Lingering > 0 {
		fx = e.linger(now, fx)
		e.WakeAt = now.Add(FamilyCheck)
	}
	return StepEnded, fx
}

// nextStage moves a parent without living parts to its next stage, if there is
// one: StepEnded if not. What has no parts, which cannot be, gets them again.
func (e *Execution) nextStage(now time.Time, f Family, spec *JobSpec) Step {
	all, _ := f.count()
	switch {
	case e.State == Cancelling:
		return StepEnded
	case e.Stage == StageBefore && f.Before == 0:
		e.dueAgain(now, StageNone, spec)
		return StepReady
	case e.Stage == StageBefore && f.Before == Succeeded, e.Stage == StageShards && all == 0:
		e.dueAgain(now, StageReady, spec)
		return StepReady
	case e.Stage == StageShards && spec.Sharding.After != "", e.Stage == StageAfter && f.After == 0:
		e.Stage = StageAfter
		e.WakeAt = e.nextCheck(now.Add(FamilyCheck))
		return StepAfter
	}
	return StepEnded
}

func (e *Execution) dueAgain(now time.Time, stage Stage, spec *JobSpec) {
	e.State, e.Stage, e.NotBefore = Due, stage, now
	e.WakeAt, e.ExpireAt = now.Add(PickupGrace), PolicyOf(spec, false).waitEnd(now)
}

// verdict says how a parent ends whose parts have.
func (e *Execution) verdict(f Family) (State, Reason, string) {
	all, succeeded := f.count()
	switch {
	case e.State == Cancelling && e.Reason == ReasonTimeout:
		return TimedOut, ReasonTimeout, e.Message
	case e.State == Cancelling:
		return Cancelled, e.Reason, e.Message
	case e.Stage == StageBefore:
		return Failed, ReasonBeforeHook, "the hook before the shards ended as " + f.Before.String()
	case e.Stage == StageAfter && f.After != Succeeded:
		return Failed, ReasonAfterHook, f.Results() + "; the hook after them ended as " + f.After.String()
	case succeeded < all:
		return Failed, ReasonShards, f.Results()
	}
	return Succeeded, "", f.Results()
}

// BearAfter returns the after hook of a parent, with the shards' results as its input.
func (e *Execution) BearAfter(now time.Time, spec *JobSpec, results []byte, newID func() (ExecutionID, error)) (Execution, error) {
	part := Execution{Part: PartAfter, Input: results}
	err := e.bear(now, &part, spec, newID)
	return part, err
}

// sweepFamily looks after a running parent: past its deadline its parts are to
// be cancelled. The caller lets it Advance by what its parts say.
func (e *Execution) sweepFamily(now time.Time) SweepAction {
	if e.State == Running && !e.Deadline.IsZero() && !now.Before(e.Deadline) {
		e.State, e.Reason, e.Message = Cancelling, ReasonTimeout, "the shards had not ended when the time for all of them was over"
		e.stopping(now, e.Reason, e.Message)
		e.Deadline = time.Time{}
	}
	if e.State == Cancelling {
		e.WakeAt = now.Add(CancelResend)
		return SweepCancel
	}
	e.WakeAt = e.nextCheck(now.Add(FamilyCheck))
	return SweepNothing
}

// instanceGone ends or frees a waiting part of a broadcast whose instance is
// dead: its lease ended at leaseUntil. Retries go to the same instance, too.
func (e *Execution) instanceGone(now, leaseUntil time.Time, p Policy) (ended bool, fx Effects, err error) {
	if e.Bound == 0 || !now.After(leaseUntil.Add(LeaseMargin)) {
		return false, Effects{}, nil
	}
	if p.MoveGone {
		e.delayed(now, ReasonInstanceGone, "another instance takes the shard", e.Bound)
		e.Bound = 0
		return false, Effects{}, nil
	}
	fx, err = e.missGone(now)
	return true, fx, err
}

func (e *Execution) missGone(now time.Time) (Effects, error) {
	return e.Miss(now, ReasonInstanceGone, "the instance that the shard was for has gone")
}

// retryOnlyThere reports whether a retry can run on the instance of the attempt
// before and on no other.
func (e *Execution) retryOnlyThere(p Policy) bool { return e.Bound != 0 && !p.MoveGone }

// retryCheck is when the sweep looks at what waits for its retry: when nobody
// has taken it, and before that where it is given up with its instance.
func (e *Execution) retryCheck(now time.Time, p Policy) time.Time {
	taken := e.NotBefore.Add(PickupGrace)
	if check := now.Add(FamilyCheck); e.retryOnlyThere(p) && check.Before(e.NotBefore) {
		return check
	}
	return taken
}

// Add counts a part.
func (f *Family) Add(e *Execution) {
	if e.Lingers {
		f.Lingering++
	}
	switch {
	case !e.State.Terminal():
		f.Living++
	case e.Part == PartShard:
		f.Shards[e.State]++
	}
	switch e.Part {
	case PartBefore:
		f.Before = e.State
	case PartAfter:
		f.After = e.State
	}
}
