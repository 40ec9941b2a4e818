package engine

import (
	"context"
	"database/sql"
	"slices"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// runAndWake is RunBatch for moves that seldom free a slot: an offer that comes too late
// ends its run, and so does a recorded wait or a spread. They lock no queue, because that
// costs a read for each of them. If one has freed a slot, its successor is woken in a
// transaction of its own. If the process ends in between, the successor is looked at 30 s
// after it began to wait.
func (s *core) runAndWake(ctx context.Context, step string, ids []domain.ExecutionID, o LoadOptions, move func(*Batch) error) error {
	freed, err := batchValue(ctx, s.RunBatch, step, ids, o, func(b *Batch) ([]domain.JobID, error) {
		err := move(b)
		return b.Freed(), err
	})
	if err == nil {
		s.wakeSuccessors(ctx, freed)
	}
	return err
}

// wakeSuccessors wakes runs that wait for the slots of the jobs. It logs an error instead
// of returning it, because the transaction that freed the slots is committed.
func (s *core) wakeSuccessors(ctx context.Context, jobs []domain.JobID) {
	if len(jobs) == 0 {
		return
	}
	err := func() error {
		var ids []domain.ExecutionID // one waiter of each job
		err := s.Look(ctx, "find successors", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
			ids = nil
			return db.Query(ctx, q, func(rows *sql.Rows) error {
				var id domain.ExecutionID
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			}, "SELECT MIN(execution_id) FROM slot_waiters WHERE job_id IN ("+db.IDList(slices.Clone(jobs))+") GROUP BY job_id")
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		return s.RunBatch(ctx, "wake successors", ids, LoadOptions{Slots: true, readSlots: true, queue: true}, func(b *Batch) error {
			if _, err := b.WakeAll(); err != nil {
				return err
			}
			return b.Save()
		})
	}()
	if err != nil {
		s.Logger.Warn("successors of ended runs are not woken; they are looked at within 30 s", "jobs", len(jobs), "err", err)
	}
}
