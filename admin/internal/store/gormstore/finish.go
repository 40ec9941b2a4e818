package gormstore

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// FinishAttempts writes results, releases slots, wakes who waits for them,
// archives attempts that are repeated and writes alert events, in one
// transaction.
func (s *Store) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(reports))
	load := loadOptions{slots: true, queue: true}
	for i, r := range reports {
		ids[i] = r.Report.ExecutionID
		if r.Report.StillRunning {
			load.lingering = append(load.lingering, r.Report.ExecutionID)
		}
	}
	var results []store.FinishResult
	err := s.runBatch(ctx, "finish attempts", ids, load, func(b *batch) (err error) {
		results = make([]store.FinishResult, len(reports))
		for i, r := range reports {
			if results[i].Code, err = b.finish(r); err != nil {
				return err
			}
		}
		woken, err := b.wake()
		if err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		for i, r := range reports {
			if results[i].Code == store.FinishNotFound {
				continue
			}
			m := b.moves[r.Report.ExecutionID]
			results[i].Execution = m.e
			if results[i].Code == store.FinishStored || results[i].Code == store.FinishReturned {
				for _, w := range woken[m.e.JobID] {
					results[i].Woken = append(results[i].Woken, w.e)
				}
				delete(woken, m.e.JobID) // once per job
			}
		}
		results[0].Ended = b.parentsEnded()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (b *batch) finish(r store.AttemptReport) (store.FinishCode, error) {
	m := b.find(r.Tenant, r.Report.ExecutionID)
	if m == nil || m.e.Executor != r.Executor {
		return store.FinishNotFound, nil
	}
	was, lingered, occupied := m.e.State, m.e.Lingers, m.e.OccupiesInstance()
	fx, err := m.e.Finish(b.now, r.Report, m.policy())
	switch domain.CodeOf(err) {
	case "":
	case domain.CodeStaleFence:
		return store.FinishStale, b.keepStale(m, r.Report)
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
	if lingered {
		return store.FinishReturned, b.apply(m, fx)
	}
	if !occupied && m.e.OccupiesInstance() {
		b.takeRoom(&m.e) // its handler runs after all, beside others if there is no room
	}
	if was == domain.RetryWait {
		// The attempt was archived when it was given up; its result replaces that.
		b.unarchive = append(b.unarchive, &attemptRow{executionID: int64(m.e.ID), fence: m.e.Fence, tenantID: int64(m.e.TenantID)})
	}
	return store.FinishStored, b.apply(m, fx)
}

// keepStale stores a result that came after a newer attempt was offered: on
// the archived attempt, where it changes nothing but what people can read.
func (b *batch) keepStale(m *move, r domain.Report) error {
	var state domain.State
	switch r.Outcome {
	case domain.OutcomeSucceeded:
		state = domain.Succeeded
	case domain.OutcomeFailed:
		state = domain.Failed
	case domain.OutcomeTimedOut:
		state = domain.TimedOut
	case domain.OutcomeCancelled:
		state = domain.Cancelled
	default:
		return nil // nothing new is known
	}
	if r.Fence > m.e.Fence {
		return nil
	}
	_, err := b.t.exec(b.t.ctx, "UPDATE attempts SET state = ?, output = ?, error_kind = ?, error = ?, stack = ?, log_lines = ?, finished_at = ?"+
		" WHERE execution_id = ? AND fence = ? AND tenant_id = ? AND state = ?",
		int64(state), r.Output, clip(r.ErrorKind, errorKindSize), valid(r.Error), valid(r.Stack), r.LogLines, millis(b.now),
		int64(m.e.ID), r.Fence, int64(m.e.TenantID), int64(domain.Lost))
	if err != nil {
		return fmt.Errorf("store late result: %w", err)
	}
	return nil
}
