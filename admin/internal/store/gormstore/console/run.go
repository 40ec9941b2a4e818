package console

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ListParts reads the range of the parts twice: some of the rows, and the states
// of all.
func (s *Runs) ListParts(ctx context.Context, tenant domain.TenantID, parent domain.ExecutionID, limit int) (views []store.ExecutionView, family domain.Family, err error) {
	err = s.Look(ctx, "list parts", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		views, family = nil, domain.Family{Shards: map[domain.State]int{}}
		row, err := record.ExecutionByID(ctx, q, tenant, parent)
		if err != nil {
			return err
		}
		if row == nil {
			return db.NotFound("execution", parent)
		}
		e := row.Execution()
		condition, args := engine.PartsOf(&e)
		from := " FROM executions" + s.Dialect.ByIndex("uq_executions_occurrence") + " WHERE " + condition
		err = db.Query(ctx, q, func(rows *sql.Rows) error {
			var e domain.Execution
			if err := rows.Scan(&e.Part, &e.State, &e.Lingers); err != nil {
				return err
			}
			family.Add(&e)
			return nil
		}, "SELECT role, state, lingers"+from, args...)
		if err != nil {
			return err
		}
		parts, err := record.ScanExecutions(ctx, q, "SELECT "+record.ExecutionListColumns+from+fmt.Sprintf(" ORDER BY occurrence_key LIMIT %d", limit), args...)
		if err != nil {
			return err
		}
		views, err = s.executionViews(ctx, q, parts)
		return err
	})
	return views, family, err
}

// maxHolders bounds how many holders of a slot are told.
const maxHolders = 20

// ListSlotHolders goes through the job's living runs: whoever holds a slot has a
// WakeAt.
func (s *Runs) ListSlotHolders(ctx context.Context, tenant domain.TenantID, job domain.JobID) (views []store.ExecutionView, err error) {
	err = s.Look(ctx, "list slot holders", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		living, err := record.LivingOf(ctx, q, tenant, job)
		if err != nil {
			return err
		}
		rows, err := record.ScanExecutions(ctx, q, "SELECT "+record.ExecutionListColumns+" FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+
			" WHERE "+living+" AND holds_slot = 1 LIMIT ?", maxHolders)
		if err != nil {
			return err
		}
		views, err = s.executionViews(ctx, q, rows)
		return err
	})
	return views, err
}

func (s *Runs) FindProgress(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Progress, error) {
	r, err := db.FindOne[record.ProgressRow](ctx, s.DB, "find progress", "execution_id = ? AND tenant_id = ?", int64(id), int64(tenant))
	return domain.Progress{
		ExecutionID: domain.ExecutionID(r.ExecutionID), Fence: r.Fence, Seq: r.Seq, Permille: int(r.Permille), Message: r.Message, UpdatedAt: db.Instant(r.UpdatedAt),
	}, err
}

func (s *Runs) ListSteps(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) ([]domain.StoredStep, error) {
	rows, err := db.FindAll[record.StepRow](ctx, s.DB, "list steps", "stored_at, name", "execution_id = ? AND tenant_id = ?", int64(id), int64(tenant))
	out := make([]domain.StoredStep, len(rows))
	for i, r := range rows {
		out[i] = domain.StoredStep{Name: r.Name, Fence: r.Fence, Output: r.Output, StoredAt: db.Instant(r.StoredAt)}
	}
	return out, err
}
