package gormstore

import (
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// A pause or deletion ends what waits, and leaves alone what is on an instance.
// An attempt that comes back from there afterwards without having begun, or to
// be tried again, meets its job's new state when it is offered again (P11).

// findStopped reads the states of the jobs whose runs were offered before. All
// others were planned by a job that was enabled, or taken back.
func (b *batch) findStopped() error {
	var jobs []domain.JobID
	for _, m := range b.moves {
		if m.e.Fence > 0 {
			jobs = append(jobs, m.e.JobID)
		}
	}
	return b.readStopped(jobs)
}

func (b *batch) readStopped(jobs []domain.JobID) error {
	if len(jobs) == 0 {
		return nil
	}
	b.stopped = map[domain.JobID]domain.JobState{}
	err := query(b.t.ctx, b.t.tx, func(rows *sql.Rows) error {
		var id domain.JobID
		var state int64
		err := rows.Scan(&id, &state)
		if domain.JobState(state) != domain.JobEnabled {
			b.stopped[id] = domain.JobState(state)
		}
		return err
	}, "SELECT id, state FROM jobs WHERE id IN ("+idList(jobs)+")")
	if err != nil {
		return fmt.Errorf("read states of jobs: %w", err)
	}
	return nil
}

// stopReason says why a run must not start any more, whose job was stopped when
// it was on an instance; empty: it may. began is how many attempts have begun.
func (b *batch) stopReason(e *domain.Execution, began int) domain.Reason {
	scheduled := e.Cause == domain.CauseSchedule || e.Cause == domain.CauseMisfire
	switch state := b.stopped[e.JobID]; {
	case state == domain.JobDeleted:
		return domain.ReasonDeleted
	case state == domain.JobPaused && scheduled && began == 0:
		return domain.ReasonPaused
	}
	return ""
}

// endStopped ends a run that is to be offered again, as takeBack would have.
func (b *batch) endStopped(m *move) (fx domain.Effects, ended bool, err error) {
	reason := b.stopReason(&m.e, m.e.Attempt)
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

// resend sends a one-step offer again, unless its job was stopped meanwhile:
// then the instance is told to stop, and says whether it ever began.
func (b *batch) resend(m *move, out *sweptMoves) error {
	if err := b.readStopped([]domain.JobID{m.e.JobID}); err != nil {
		return err
	}
	reason := b.stopReason(&m.e, m.e.Attempt-1)
	if reason == "" {
		out.resend = append(out.resend, m)
		return nil
	}
	fx, err := m.e.RequestCancel(b.now, reason, "the job was stopped before the start of the run was reported")
	if err != nil {
		return err
	}
	out.cancel = append(out.cancel, m)
	return b.apply(m, fx)
}
