package console

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ListOverdue looks at the triggers by their next fire time and at the living runs by
// their id, which grows with the time at which they were planned.
func (s *Jobs) ListOverdue(ctx context.Context, p store.ListOverdueParams) (list []store.Overdue, more bool, err error) {
	limit := record.PageSize(p.Limit)
	err = s.Look(ctx, "list overdue jobs", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		list = nil
		var ms int64
		if err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&ms) }, "SELECT "+s.Dialect.ClockNow()); err != nil {
			return err
		}
		now := db.Instant(ms)
		for _, statement := range OverdueStatements(s.Dialect, p.Tenant, p.Within, now.Add(-p.By), limit+1) {
			var found []store.Overdue
			err := db.Query(ctx, q, func(rows *sql.Rows) error {
				var o store.Overdue
				var at int64
				err := rows.Scan(&o.Job, &o.Executor, &at, &o.Run, &o.Reason)
				o.FireAt, o.By = db.Instant(at), now.Sub(db.Instant(at)).Truncate(time.Millisecond)
				found = append(found, o)
				return err
			}, statement)
			if err != nil {
				return err
			}
			slices.SortStableFunc(found, func(a, b store.Overdue) int { return a.FireAt.Compare(b.FireAt) })
			list = append(list, found...)
		}
		more = len(list) > limit
		list = list[:min(len(list), limit)]
		jobs, err := namesOf(ctx, q, "jobs", domain.Collect(list, func(o *store.Overdue) int64 { return int64(o.Job) }))
		if err != nil {
			return err
		}
		executors, err := executorNames(ctx, q, domain.Collect(list, func(o *store.Overdue) int64 { return int64(o.Executor) }))
		for i := range list {
			list[i].JobName, list[i].ExecutorName = jobs[int64(list[i].Job)], executors[int64(list[i].Executor)]
		}
		return err
	})
	return list, more, err
}

// OverdueStatements find fire times before an instant that are not planned, and then runs
// of which no attempt has begun.
func OverdueStatements(d db.Dialect, tenant domain.TenantID, within domain.Reach, before time.Time, limit int) [2]string {
	ms := db.Millis(before)
	return [2]string{
		fmt.Sprintf("SELECT job_id, executor_id, next_fire_at, 0, '' FROM triggers%s WHERE tenant_id = %d AND next_fire_at < %d AND %s ORDER BY next_fire_at LIMIT %d",
			d.ByIndex("ix_triggers_next"), tenant, ms, db.InReach("executor_id", within), limit),
		fmt.Sprintf("SELECT job_id, executor_id, fire_at, id, reason FROM executions%s WHERE tenant_id = %d AND phase = %d AND state IN (%d, %d) AND attempt = 0 AND fire_at < %d AND %s ORDER BY id LIMIT %d",
			d.ByIndex("ix_executions_phase"), tenant, record.PhaseAlive, domain.Due, domain.Offered, ms, db.InReach("executor_id", within), limit),
	}
}
