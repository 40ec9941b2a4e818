package gormstore

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// FinishAttempts writes results, releases slots, wakes who waits for them,
// archives attempts that are repeated and writes alert events, in one
// transaction.
func (s *Executions) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
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
		if results, err = b.Finish(reports); err != nil {
			return err
		}
		woken, err := b.Wake()
		if err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		b.FinishResults(reports, results, woken)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}
