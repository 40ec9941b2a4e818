package benchdata

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// CountLiving returns how many executions wait or run, of all tenants: those
// that somebody will look at again.
func CountLiving(ctx context.Context, s *db.DB) (n int64, err error) {
	parts := make([]string, domain.Partitions)
	for i := range parts {
		parts[i] = fmt.Sprint(i)
	}
	err = s.Look(ctx, "count living executions", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&n) },
			"SELECT COUNT(*) FROM executions"+s.Dialect.ByIndex("ix_executions_wake")+" WHERE part IN ("+strings.Join(parts, ",")+") AND wake_at > 0")
	})
	return n, err
}

// MeasuredRun is what a measurement looks at in an execution's row.
type MeasuredRun struct {
	ID         domain.ExecutionID
	Job        domain.JobID
	State      domain.State
	Fence      int64
	FireAt     time.Time
	FinishedAt time.Time
}

// ReadRuns calls seen for every execution of an executor, oldest first. It
// reads them in one go.
func ReadRuns(ctx context.Context, s *db.DB, tenant domain.TenantID, executor domain.ExecutorID, seen func(MeasuredRun)) error {
	return db.Query(ctx, s.Read, func(rows *sql.Rows) error {
		var r MeasuredRun
		var state, fire, finished int64
		if err := rows.Scan(&r.ID, &r.Job, &state, &r.Fence, &fire, &finished); err != nil {
			return err
		}
		r.State, r.FireAt, r.FinishedAt = domain.State(state), db.Instant(fire), db.Instant(finished)
		seen(r)
		return nil
	}, "SELECT id, job_id, state, fence, fire_at, finished_at FROM executions"+s.Dialect.ByIndex("ix_executions_executor")+
		" WHERE tenant_id = ? AND executor_id = ? ORDER BY id", int64(tenant), int64(executor))
}
