package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// A pause or deletion ends what waits, and leaves alone what is on an instance.
// An attempt that comes back from there afterwards without having begun, or to
// be tried again, meets its job's new state when it is offered again (P11).

// findStopped reads the states of the jobs whose runs were offered before, and
// of parts. All
// others were planned by a job that was enabled, or taken back.
func (b *batch) findStopped() error {
	var jobs []domain.JobID
	for _, m := range b.moves {
		if m.e.Fence > 0 || m.e.IsPart() { // a part may have been made while the pause was written
			jobs = append(jobs, m.e.JobID)
		}
	}
	return b.readStopped(jobs)
}

func (b *batch) readStopped(jobs []domain.JobID) error {
	if len(jobs) == 0 {
		return nil
	}
	var err error
	b.stopped, err = stoppedJobs(b.t.ctx, b.t.q, jobs)
	return err
}

// jobStates are jobs that are not enabled.
type jobStates map[domain.JobID]domain.JobState

func stoppedJobs(ctx context.Context, q querier, jobs []domain.JobID) (jobStates, error) {
	stopped := jobStates{}
	err := query(ctx, q, func(rows *sql.Rows) error {
		var id domain.JobID
		var state int64
		err := rows.Scan(&id, &state)
		if domain.JobState(state) != domain.JobEnabled {
			stopped[id] = domain.JobState(state)
		}
		return err
	}, "SELECT id, state FROM jobs WHERE id IN ("+idList(jobs)+")")
	if err != nil {
		return nil, fmt.Errorf("read states of jobs: %w", err)
	}
	return stopped, nil
}

// stopReason says why a run must not start any more, whose job was stopped when
// it was on an instance; empty: it may. began is how many attempts have begun.
func (stopped jobStates) stopReason(e *domain.Execution, began int) domain.Reason {
	scheduled := e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire
	switch state := stopped[e.JobID]; {
	case state == domain.JobDeleted:
		return domain.ReasonDeleted
	case state == domain.JobPaused && scheduled && began == 0:
		return domain.ReasonPaused
	}
	return ""
}

// endStopped ends a run that is to be offered again, as takeBack would have.
func (b *batch) endStopped(m *move) (fx domain.Effects, ended bool, err error) {
	reason := b.stopped.stopReason(&m.e, m.e.Attempt)
	switch {
	case reason == "":
		return fx, false, nil
	case m.e.Attempt > 0:
		fx, err = m.e.RequestCancel(b.now, reason, "the job was deleted before the run was tried again")
	default:
		fx, err = m.e.Miss(b.now, reason, "the job was stopped before the run started")
	}
	return fx, true, err
}

// cancelStopped cancels an attempt that runs, as far as the database knows, and
// of which its instance may not have heard, if its job was stopped meanwhile:
// the instance says whether it ever began.
func (b *batch) cancelStopped(m *move, message string) (cancelled bool, err error) {
	if err := b.readStopped([]domain.JobID{m.e.JobID}); err != nil {
		return false, err
	}
	reason := b.stopped.stopReason(&m.e, m.e.Attempt-1)
	if reason == "" {
		return false, nil
	}
	fx, err := m.e.RequestCancel(b.now, reason, message)
	if err != nil {
		return false, err
	}
	return true, b.apply(m, fx)
}

// grantAgain reports whether a grant may be repeated whose first word was lost.
func (b *batch) grantAgain(m *move) (bool, error) {
	cancelled, err := b.cancelStopped(m, "the job was stopped before its instance heard that it may start")
	return !cancelled && err == nil, err
}

// resend sends a one-step offer again, unless its job was stopped meanwhile.
func (b *batch) resend(m *move, out *sweptMoves) error {
	cancelled, err := b.cancelStopped(m, "the job was stopped before the start of the run was reported")
	if cancelled {
		out.cancel = append(out.cancel, m)
	} else if err == nil {
		out.resend = append(out.resend, m)
	}
	return err
}

// unheard takes a one-step offer from its instance, unless its job was stopped
// meanwhile: then the instance is asked whether it ever began.
func (b *batch) unheard(m *move, g store.GiveBack) (moved bool, err error) {
	cp := m.e
	fx, err := cp.Unheard(b.now, g.Fence, g.Message, m.policy())
	if err != nil {
		return false, nil // it is over, or somebody else's
	}
	if cancelled, err := b.cancelStopped(m, "the job was stopped before the start of the run was reported"); cancelled || err != nil {
		return false, err
	}
	m.e = cp
	return true, b.apply(m, fx)
}

// mayResend leaves out the one-step offers that are not to be sent again,
// because their jobs were stopped: the sweep asks their instances (resend).
func (s *Store) mayResend(ctx context.Context, list []domain.Execution) ([]domain.Execution, error) {
	var jobs []domain.JobID
	for _, e := range list {
		if e.State == domain.Running {
			jobs = append(jobs, e.JobID)
		}
	}
	if len(jobs) == 0 {
		return list, nil
	}
	stopped, err := stoppedJobs(ctx, s.lookup, jobs)
	return slices.DeleteFunc(list, func(e domain.Execution) bool {
		return e.State == domain.Running && stopped.stopReason(&e, e.Attempt-1) != ""
	}), err
}
