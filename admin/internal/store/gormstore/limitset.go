package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
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
		subject, kind := subjectOf(l.LimitKey)
		limits, err := lockLimits(t, []domain.LimitKey{l.LimitKey}, false)
		if err != nil {
			return err
		}
		found := limits[l.LimitKey]
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
			_, err = t.Exec(t.Ctx, "UPDATE limits SET capacity = ?, changed_at = ? WHERE "+whereLimit(found, "")+" AND tenant_id = ?",
				l.Max, db.Millis(now), int64(l.Tenant))
		}
		if err != nil {
			return err
		}
		if l.Max > 0 {
			if err := adopt(t, found); err != nil {
				return err
			}
			return saveLimits(t, map[domain.LimitKey]*run.Limit{l.LimitKey: found})
		}
		if err := loadPlaces(t, found, 1); err != nil || len(found.Queue) > 0 {
			return err // AdmitWaiting lets them go, and then the row
		}
		return removeLimit(t, found)
	})
}

func subjectExists(t *db.Tx, k domain.LimitKey) error {
	if k.Executor != 0 {
		_, err := executorName(t, k.Tenant, k.Executor)
		return err
	}
	var id int64
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT id FROM tenants WHERE id = ?", int64(k.Tenant)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return db.NotFound("tenant", k.Tenant)
	}
	return err
}

// adopt makes holders of the runs that are on instances and were offered when
// nobody, or not everybody, knew of the limit.
func adopt(t *db.Tx, l *run.Limit) error {
	statement, args := fmt.Sprintf("SELECT id FROM executions%s WHERE tenant_id = ? AND %s AND %s",
		t.Dialect.ByIndex("ix_executions_phase"), occupyingPhases, occupiesInstance("")), []any{int64(l.Key.Tenant)}
	if l.Key.Executor != 0 {
		statement, args = statement+" AND executor_id = ?", append(args, int64(l.Key.Executor))
	}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		l.Adopt(id)
		return nil
	}, statement, args...)
	if err != nil {
		return fmt.Errorf("find running executions: %w", err)
	}
	return nil
}

// occupiesInstance is domain.Execution.OccupiesInstance; prefix is "" or "alias.".
func occupiesInstance(prefix string) string {
	return fmt.Sprintf("((%[1]sstate IN (%[2]d, %[3]d, %[4]d) OR %[1]slingers = 1) AND %[1]sstage IN (%[5]d, %[6]d))",
		prefix, domain.Offered, domain.Running, domain.Cancelling, domain.StageNone, domain.StageReady)
}

// occupyingPhases is where such executions are, runs and parts.
var occupyingPhases = fmt.Sprintf("phase IN (%d, %d, %d, %d)", phaseAlive, phaseLingering, phasePart+phaseAlive, phasePart+phaseLingering)

// waits is how an execution that has a place in a queue stands.
var waits = fmt.Sprintf("state IN (%d, %d)", domain.Due, domain.RetryWait)

// ListLimits counts without a lock.
func (s *Limits) ListLimits(ctx context.Context, tenant domain.TenantID) (views []store.LimitView, err error) {
	err = s.Look(ctx, "list limits", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		views = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var v store.LimitView
			key, err := scanKey(rows, &v.Max, &v.ExecutorName, &v.Running, &v.Waiting)
			v.LimitKey = key
			views = append(views, v)
			return err
		}, "SELECT l.subject_id, l.kind, l.tenant_id, l.capacity, COALESCE(x.name, ''),"+
			" (SELECT COUNT(*) FROM limit_holders AS h JOIN executions AS e ON e.id = h.execution_id WHERE h.subject_id = l.subject_id AND h.kind = l.kind AND "+occupiesInstance("e.")+"),"+
			" (SELECT COUNT(*) FROM limit_waiters AS w JOIN executions AS e ON e.id = w.execution_id WHERE w.subject_id = l.subject_id AND w.kind = l.kind AND e."+waits+")"+
			" FROM limits AS l LEFT JOIN executors AS x ON l.kind = ? AND x.id = l.subject_id AND x.tenant_id = l.tenant_id"+
			" WHERE l.tenant_id = ? AND l.capacity > 0 ORDER BY l.kind, x.name", kindExecutor, int64(tenant))
	})
	return views, err
}

// limitsToLook are the limits under which somebody waits, that were taken away,
// or that have changed so lately that not all nodes may have known of it.
func (s *Admission) limitsToLook(ctx context.Context) (keys []domain.LimitKey, err error) {
	err = s.Look(ctx, "find limits", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		keys = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			key, err := scanKey(rows)
			keys = append(keys, key)
			return err
		}, "SELECT subject_id, kind, tenant_id FROM limits AS l WHERE changed_at > "+s.Dialect.ClockNow()+fmt.Sprintf(" - %d", run.LimitSettles.Milliseconds())+
			" OR capacity = 0 OR EXISTS (SELECT 1 FROM limit_waiters AS w WHERE w.subject_id = l.subject_id AND w.kind = l.kind) ORDER BY subject_id, kind")
	})
	return keys, err
}
