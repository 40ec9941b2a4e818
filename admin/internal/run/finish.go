package run

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Finish takes results, and says for each what the executor is told.
func (b *Batch) Finish(reports []store.AttemptReport) ([]store.FinishResult, error) {
	results := make([]store.FinishResult, len(reports))
	for i, r := range reports {
		code, err := b.finish(r)
		if err != nil {
			return nil, err
		}
		results[i].Code = code
	}
	if len(results) > 0 {
		b.onceStored(func() { b.finishResults(reports, results) })
	}
	return results, nil
}

// finishResults adds to results the executions, the woken runs, once for each job, and
// the parents that ended.
func (b *Batch) finishResults(reports []store.AttemptReport, results []store.FinishResult) {
	told := map[domain.JobID]bool{}
	for i, r := range reports {
		if results[i].Code == store.FinishNotFound {
			continue
		}
		m := b.Moves[r.Report.ExecutionID]
		results[i].Execution = m.E
		if !told[m.E.JobID] && (results[i].Code == store.FinishStored || results[i].Code == store.FinishReturned) {
			results[i].Woken = executions(b.Woken[m.E.JobID])
			told[m.E.JobID] = true
		}
	}
	results[0].Ended = executions(b.Ended)
}

func (b *Batch) finish(r store.AttemptReport) (store.FinishCode, error) {
	m := b.Find(r.Tenant, r.Report.ExecutionID)
	if m == nil || m.E.Executor != r.Executor {
		return store.FinishNotFound, nil
	}
	was, lingered, occupied := m.E.State, m.E.Lingers, m.E.OccupiesInstance()
	archived := AttemptKey{m.E.TenantID, m.E.ID, m.E.Fence}
	fx, err := m.E.Finish(b.Now, r.Report, m.Policy())
	switch domain.CodeOf(err) {
	case "":
	case domain.CodeStaleFence:
		b.keepLate(m, r.Report)
		return store.FinishStale, nil
	case domain.CodeAlreadyFinished:
		return store.FinishDuplicate, nil
	case domain.CodeIllegalMove:
		if r.Report.Outcome == domain.OutcomeNeverStarted && was == domain.Due {
			return store.FinishDuplicate, nil // it came back already
		}
		return store.FinishStale, nil
	default:
		return "", err
	}
	if was == domain.RetryWait {
		// The attempt was archived when it was given up, perhaps in this batch; its
		// result replaces that.
		b.Archived = slices.DeleteFunc(b.Archived, func(a *domain.Attempt) bool { return AttemptKey{a.TenantID, a.ExecutionID, a.Fence} == archived })
		b.Unarchive = append(b.Unarchive, archived)
	}
	b.apply(m, fx)
	if lingered {
		return store.FinishReturned, nil
	}
	b.turn(m).pilesUp()
	if !occupied && m.E.OccupiesInstance() {
		b.Limits.take(&m.E) // its handler runs after all, beside others if there is no room
	}
	return store.FinishStored, nil
}

// keepLate keeps a result that came after a newer attempt was offered: on
// the archived attempt, where it changes nothing but what people can read.
func (b *Batch) keepLate(m *Move, r domain.Report) {
	state := map[domain.Outcome]domain.State{
		domain.OutcomeSucceeded: domain.Succeeded, domain.OutcomeFailed: domain.Failed,
		domain.OutcomeTimedOut: domain.TimedOut, domain.OutcomeCancelled: domain.Cancelled,
	}[r.Outcome]
	if state != 0 && r.Fence <= m.E.Fence {
		b.Late = append(b.Late, LateResult{AttemptKey{m.E.TenantID, m.E.ID, r.Fence}, state, r})
	}
}
