package run

import (
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// A pause or deletion ends what waits, and leaves alone what is on an instance.
// An attempt that comes back from there afterwards without having begun, or to
// be tried again, meets its job's new state when it is offered again (P11).

// JobStates are jobs that are not enabled.
type JobStates map[domain.JobID]domain.JobState

// Scheduled reports whether a run was planned by its job's schedule.
func Scheduled(e *domain.Execution) bool {
	return e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire
}

// reason says why a run must not start any more, whose job was stopped when
// it was on an instance; empty: it may. began is how many attempts have begun.
func (stopped JobStates) reason(e *domain.Execution, began int) domain.Reason {
	switch state := stopped[e.JobID]; {
	case state == domain.JobDeleted:
		return domain.ReasonDeleted
	case state == domain.JobPaused && Scheduled(e) && began == 0:
		return domain.ReasonPaused
	}
	return ""
}

// MayResend reports whether a one-step offer may be sent again.
func (stopped JobStates) MayResend(e *domain.Execution) bool {
	return stopped.reason(e, e.Attempt-1) == ""
}

// findStopped reads the states of the jobs whose runs were offered before, and
// of parts. All others were planned by a job that was enabled, or taken back.
func (b *Batch) findStopped() (err error) {
	var jobs []domain.JobID
	for _, m := range b.Moves {
		if m.E.Fence > 0 || m.E.IsPart() { // a part may have been made while the pause was written
			jobs = append(jobs, m.E.JobID)
		}
	}
	if len(jobs) > 0 {
		b.stopped, err = b.Source.Stopped(jobs)
	}
	return err
}

// endStopped ends a run that is to be offered again, as TakeBack would have.
func (t turn) endStopped() (ended bool, err error) {
	reason := t.b.stopped.reason(t.e, t.e.Attempt)
	if reason == "" {
		return false, nil
	}
	message := "the job was stopped before the run started"
	if t.e.Attempt > 0 {
		message = "the job was deleted before the run was tried again"
	}
	return true, t.apply(t.e.RequestCancel(t.b.Now, reason, message))
}

// cancelStopped cancels an attempt that runs, as far as the database knows, and
// of which its instance may not have heard, if its job was stopped meanwhile:
// the instance says whether it ever began.
func (t turn) cancelStopped(message string) (cancelled bool, err error) {
	stopped, err := t.b.Source.Stopped([]domain.JobID{t.e.JobID})
	if err != nil {
		return false, err
	}
	reason := stopped.reason(t.e, t.e.Attempt-1)
	if reason == "" {
		return false, nil
	}
	err = t.apply(t.e.RequestCancel(t.b.Now, reason, message))
	return err == nil, err
}

// grantAgain reports whether a grant may be repeated whose first word was lost.
func (t turn) grantAgain() (bool, error) {
	cancelled, err := t.cancelStopped("the job was stopped before its instance heard that it may start")
	return !cancelled && err == nil, err
}

// unheard takes a one-step offer from its instance, unless its job was stopped
// meanwhile: then the instance is asked whether it ever began.
func (t turn) unheard(g store.GiveBack) (moved bool, err error) {
	after := *t.e
	fx, err := after.Unheard(t.b.Now, g.Fence, g.Message, t.m.Policy())
	if err != nil {
		return false, nil // it is over, or somebody else's
	}
	if cancelled, err := t.cancelStopped("the job was stopped before the start of the run was reported"); cancelled || err != nil {
		return false, err
	}
	*t.e = after
	t.b.apply(t.m, fx)
	return true, nil
}

// TakeBack ends what must not start any more of a job. to is the state the job comes
// into; JobEnabled stands for an edit. Fires planned ahead disappear, so that
// the next revision may plan the same instants: gone are those whose rows are to
// be deleted. They are not among the moves any more.
func (b *Batch) TakeBack(to domain.JobState) (gone []domain.ExecutionID, err error) {
	for _, m := range b.Moves.byID(func(*Move) bool { return true }) {
		b.Deciding = m.E.ID
		is, err := b.turn(m).takeBack(to)
		if err != nil {
			return nil, err
		}
		if is {
			gone = append(gone, m.E.ID)
			delete(b.Moves, m.E.ID)
		}
	}
	return gone, nil
}

func (t turn) takeBack(to domain.JobState) (gone bool, err error) {
	e := t.e
	if Scheduled(e) && domain.MaybeUnplanned(e, t.b.Now) {
		if s := t.b.Slots[e.JobID]; s != nil {
			s.dequeue(e)
			if e.HoldsSlot {
				s.release()
			}
		}
		return true, nil
	}
	waits := e.State == domain.Due || e.State == domain.RetryWait || e.State == domain.Offered
	if to == domain.JobEnabled || !waits || to == domain.JobPaused && (!Scheduled(e) || e.Attempt > 0) {
		return false, nil
	}
	reason, message := domain.ReasonPaused, "the job was paused before the run started"
	if to == domain.JobDeleted {
		reason, message = domain.ReasonDeleted, "the job was deleted before the run started"
	}
	// Nothing has started of an offer: an answer to it finds it gone.
	return false, t.apply(e.RequestCancel(t.b.Now, reason, message))
}
