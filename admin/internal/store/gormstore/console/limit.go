package console

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// SetLimit counts in what runs already.
func (s *Limits) SetLimit(ctx context.Context, l domain.Limit) error {
	if l.Max < 0 || l.Max > domain.MaxLimit {
		return domain.Invalid("body.maxRunning", "must be from 0 (no limit) to %d", domain.MaxLimit)
	}
	defer s.engine.ForgetLimits()
	return s.RunRepeatable(ctx, "set limit", func(t *db.Tx) error {
		if err := subjectExists(t, l.LimitKey); err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		subject, kind := engine.SubjectOf(l.LimitKey)
		limits, err := engine.LockLimits(t, []domain.LimitKey{l.LimitKey}, false)
		if err != nil {
			return err
		}
		found := limits[l.LimitKey]
		was := int64(0)
		if found != nil {
			was = found.Capacity
		}
		t.AuditedChange(domain.AuditObject{}, db.Facts{"maxRunning": was}, db.Facts{"maxRunning": l.Max})
		switch {
		case found == nil && l.Max == 0:
			return nil
		case found == nil:
			// Another node that sets it first makes this a conflict, and the
			// repetition finds its row.
			_, err = t.Exec(t.Ctx, "INSERT INTO limits (subject_id, kind, tenant_id, capacity, changed_at) VALUES (?, ?, ?, ?, ?)",
				subject, kind, int64(l.Tenant), l.Max, db.Millis(now))
			found = run.NewLimit(l.LimitKey)
			found.Capacity = int64(l.Max)
		default:
			_, err = t.Exec(t.Ctx, "UPDATE limits SET capacity = ?, changed_at = ? WHERE "+engine.WhereLimit(found, "")+" AND tenant_id = ?",
				l.Max, db.Millis(now), int64(l.Tenant))
		}
		if err != nil {
			return err
		}
		if l.Max > 0 {
			if err := engine.Adopt(t, found); err != nil {
				return err
			}
			return engine.SaveLimits(t, map[domain.LimitKey]*run.Limit{l.LimitKey: found})
		}
		if err := engine.LoadPlaces(t, found, 1); err != nil || len(found.Queue) > 0 {
			return err // AdmitWaiting lets them go, and then the row
		}
		return engine.RemoveLimit(t, found)
	})
}

func subjectExists(t *db.Tx, k domain.LimitKey) error {
	if k.Executor != 0 {
		_, err := record.ExecutorName(t, k.Tenant, k.Executor)
		return err
	}
	var id int64
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT id FROM tenants WHERE id = ?", int64(k.Tenant)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return db.NotFound("tenant", k.Tenant)
	}
	return err
}

// ListLimits counts without a lock.
func (s *Limits) ListLimits(ctx context.Context, tenant domain.TenantID) (views []store.LimitView, err error) {
	err = s.Look(ctx, "list limits", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		views = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var v store.LimitView
			key, err := engine.ScanKey(rows, &v.Max, &v.ExecutorName, &v.Running, &v.Waiting)
			v.LimitKey = key
			views = append(views, v)
			return err
		}, "SELECT l.subject_id, l.kind, l.tenant_id, l.capacity, COALESCE(x.name, ''),"+
			" (SELECT COUNT(*) FROM limit_holders AS h JOIN executions AS e ON e.id = h.execution_id WHERE h.subject_id = l.subject_id AND h.kind = l.kind AND "+engine.OccupiesInstance("e.")+"),"+
			" (SELECT COUNT(*) FROM limit_waiters AS w JOIN executions AS e ON e.id = w.execution_id WHERE w.subject_id = l.subject_id AND w.kind = l.kind AND e."+engine.Waits+")"+
			" FROM limits AS l LEFT JOIN executors AS x ON l.kind = ? AND x.id = l.subject_id AND x.tenant_id = l.tenant_id"+
			" WHERE l.tenant_id = ? AND l.capacity > 0 AND COALESCE(x.state, 0) <> ? ORDER BY l.kind, x.name", engine.KindExecutor, int64(tenant), int64(domain.ExecutorDeleted))
	})
	return views, err
}
