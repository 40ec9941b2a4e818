package engine

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// wakeSuccessors wakes runs that wait for the slots of the jobs. It logs an error instead
// of returning it, because the transaction that freed the slots is committed.
func (s *core) wakeSuccessors(ctx context.Context, jobs []domain.JobID) {
	if len(jobs) == 0 {
		return
	}
	// One waiter of each job.
	ids, err := db.LookColumn[domain.ExecutionID](ctx, s.DB, "find successors",
		"SELECT MIN(execution_id) FROM slot_waiters WHERE job_id IN ("+db.IDList(jobs)+") GROUP BY job_id")
	if err == nil && len(ids) > 0 {
		err = s.RunBatch(ctx, "wake successors", run.Request{Kind: run.Successors, IDs: ids}, func(*Batch) error { return nil })
	}
	if err != nil {
		s.Logger.Warn("successors of ended runs are not woken; they are looked at within 30 s", "jobs", len(jobs), "err", err)
	}
}
