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

// CountUnplanned returns how many triggers have a next fire time, of all tenants.
func CountUnplanned(ctx context.Context, s *db.DB) (n int64, err error) {
	err = db.Query(ctx, s.Read, func(rows *sql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM triggers WHERE next_fire_at < ?", db.Millis(domain.Never))
	return n, err
}

// Living counts the executions that wait or run by state and reason, of all tenants.
func Living(ctx context.Context, s *db.DB) (map[string]int, error) {
	found := map[string]int{}
	err := db.Query(ctx, s.Read, func(rows *sql.Rows) error {
		var state int64
		var reason string
		var n int
		if err := rows.Scan(&state, &reason, &n); err != nil {
			return err
		}
		found[strings.TrimSpace(domain.State(state).String()+" "+reason)] = n
		return nil
	}, "SELECT state, reason, COUNT(*) FROM executions WHERE wake_at > 0 GROUP BY state, reason")
	return found, err
}

// MeasuredRun is what a measurement looks at in an execution's row.
type MeasuredRun struct {
	ID         domain.ExecutionID
	Job        domain.JobID
	State      domain.State
	Reason     domain.Reason
	Fence      int64
	FireAt     time.Time
	PlannedAt  time.Time
	NotBefore  time.Time
	FinishedAt time.Time
	// Parent is the run that it is a part of; 0 = none. Shards are those of a parent, which
	// runs on no instance.
	Parent domain.ExecutionID
	Shards int
}

// ReadRuns calls seen for every execution of an executor, oldest first. It
// reads them in one go.
func ReadRuns(ctx context.Context, s *db.DB, tenant domain.TenantID, executor domain.ExecutorID, seen func(MeasuredRun)) error {
	return db.Query(ctx, s.Read, func(rows *sql.Rows) error {
		var r MeasuredRun
		var state, fire, planned, notBefore, finished int64
		if err := rows.Scan(&r.ID, &r.Job, &state, &r.Reason, &r.Fence, &fire, &planned, &notBefore, &finished, &r.Parent, &r.Shards); err != nil {
			return err
		}
		r.State, r.FireAt, r.FinishedAt = domain.State(state), db.Instant(fire), db.Instant(finished)
		r.PlannedAt, r.NotBefore = db.Instant(planned), db.Instant(notBefore)
		seen(r)
		return nil
	}, "SELECT id, job_id, state, reason, fence, fire_at, planned_at, not_before, finished_at, parent_id, shard_total FROM executions"+s.Dialect.ByIndex("ix_executions_executor")+
		" WHERE tenant_id = ? AND executor_id = ? ORDER BY id", int64(tenant), int64(executor))
}
