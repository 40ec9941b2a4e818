package engine

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// EndOrphans looks without a lock and moves in batches that look again.
func (s *Sweeps) EndOrphans(ctx context.Context, p store.EndOrphansParams) (out store.EndedOrphans, err error) {
	accepted, ids, err := s.findOrphans(ctx, p)
	if err != nil {
		return out, err
	}
	for part := range slices.Chunk(ids, inventoryBatch) {
		did, err := batchResult(ctx, s.core, "end what an instance does not have", run.Request{Kind: run.Ends, IDs: part}, func(b *Batch) (*store.EndedOrphans, error) {
			return b.EndOrphans(&p, accepted), nil
		})
		if err != nil {
			return out, err
		}
		out.Ended = append(out.Ended, did.Ended...)
		out.Woken = append(out.Woken, did.Woken...)
	}
	return out, nil
}

// findOrphans reads which of the tenant's living and lingering executions may
// have lost their end. Offers are left to the sweep.
func (s *Sweeps) findOrphans(ctx context.Context, p store.EndOrphansParams) (accepted time.Time, ids []domain.ExecutionID, err error) {
	err = s.Look(ctx, "find what an instance does not have", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		ids = nil
		if accepted, err = historyAccepted(ctx, q); err != nil {
			return err
		}
		if accepted.IsZero() || !p.Since.Before(accepted) || p.Taken.Before(accepted) {
			return nil
		}
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var e domain.Execution
			if err := rows.Scan(&e.ID, &e.Fence); err != nil {
				return err
			}
			if !run.Has(p.Has, &e) {
				ids = append(ids, e.ID)
			}
			return nil
		}, fmt.Sprintf("SELECT id, fence FROM executions%s WHERE tenant_id = %d AND %s AND (state IN (%d, %d) OR lingers = 1)"+
			" AND executor_id = %d AND instance_id = %d AND offered_at < %d",
			s.Dialect.ByIndex("ix_executions_phase"), p.Tenant, occupyingPhases, domain.Running, domain.Cancelling,
			p.Executor, p.Instance, db.Millis(accepted)))
	})
	return accepted, ids, err
}

func historyAccepted(ctx context.Context, q db.Querier) (at time.Time, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		var value string
		if err := rows.Scan(&value); err != nil || value == "" {
			return err
		}
		ms, err := strconv.ParseInt(value, 10, 64)
		at = db.Instant(ms)
		return err
	}, "SELECT value FROM cluster_values WHERE name = '"+domain.HistoryAcceptedValue+"'")
	return at, err
}
