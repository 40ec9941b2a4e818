package console

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// StartMaintenance ends what is on for the scope at the instant at which the new one
// begins. Two that are begun at once may both be on: they hold together, and end
// together.
func (s *Maintenance) StartMaintenance(ctx context.Context, m domain.Maintenance) (domain.Maintenance, error) {
	if !m.Mode.Valid() {
		return domain.Maintenance{}, domain.Invalid("body.mode", "must be wait, skip or continue")
	}
	id, err := s.NewID()
	if err != nil {
		return domain.Maintenance{}, err
	}
	m.ID, m.EndedBy = id, ""
	m.Reason, m.By = record.Clip(m.Reason, domain.MaxMaintenanceReason), record.Clip(m.By, record.NameSize)
	defer s.engine.ForgetMaintenance()
	return db.Value(ctx, s.RunRepeatable, "start maintenance", func(t *db.Tx) (domain.Maintenance, error) {
		m := m
		if m.Tenant != 0 {
			if err := subjectExists(t, domain.LimitKey{Tenant: m.Tenant, Executor: m.Executor}); err != nil {
				return m, err
			}
		}
		now, err := t.Clock()
		if err != nil {
			return m, err
		}
		if m.EndsAt.IsZero() || m.EndsAt.After(domain.Never) {
			m.EndsAt = domain.Never
		}
		if !m.EndsAt.After(now) {
			return m, domain.Invalid("body.until", "must be in the future")
		}
		m.Since = now
		t.AuditedChange(domain.AuditObject{}, nil, maintenanceFacts(&m))
		if _, err := t.Exec(t.Ctx, "DELETE FROM maintenance WHERE id = ?", m.ID); err != nil { // of a commit whose answer was lost
			return m, err
		}
		if _, err := s.end(t, now, m.MaintenanceScope, m.By); err != nil {
			return m, err
		}
		_, err = t.Exec(t.Ctx, "INSERT INTO maintenance (id, tenant_id, executor_id, mode, reason, created_by, since, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
			m.ID, int64(m.Tenant), int64(m.Executor), string(m.Mode), m.Reason, m.By, db.Millis(m.Since), db.Millis(m.EndsAt))
		return m, err
	})
}

func maintenanceFacts(m *domain.Maintenance) db.Facts {
	return db.Facts{"mode": m.Mode, "reason": m.Reason, "since": m.Since, "until": m.EndsAt}
}

// end ends what is on for the scope.
func (s *Maintenance) end(t *db.Tx, now time.Time, scope domain.MaintenanceScope, by string) (int64, error) {
	return t.Exec(t.Ctx, "UPDATE maintenance SET ends_at = ?, ended_by = ? WHERE tenant_id = ? AND executor_id = ? AND ends_at > ?",
		db.Millis(now), by, int64(scope.Tenant), int64(scope.Executor), db.Millis(now))
}

// EndMaintenance implements store.Maintenance.
func (s *Maintenance) EndMaintenance(ctx context.Context, scope domain.MaintenanceScope, by string) (domain.Maintenance, error) {
	by = record.Clip(by, record.NameSize)
	defer s.engine.ForgetMaintenance()
	return db.Value(ctx, s.Run, "end maintenance", func(t *db.Tx) (ended domain.Maintenance, err error) {
		now, err := t.Clock()
		if err != nil {
			return ended, err
		}
		err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
			ended, err = engine.ScanMaintenance(rows)
			return err
		}, fmt.Sprintf("SELECT %s FROM maintenance WHERE tenant_id = %d AND executor_id = %d AND ends_at > %d ORDER BY id",
			engine.MaintenanceColumns, scope.Tenant, scope.Executor, db.Millis(now)))
		if err != nil {
			return ended, err
		}
		if ended.ID == 0 {
			return ended, domain.Errorf(domain.CodeNotFound, "the %s is not under maintenance", scope.Kind())
		}
		t.AuditedChange(domain.AuditObject{}, maintenanceFacts(&ended), nil)
		ended.EndsAt, ended.EndedBy = now, by
		_, err = s.end(t, now, scope, by)
		return ended, err
	})
}

// ListMaintenance implements store.Maintenance.
func (s *Maintenance) ListMaintenance(ctx context.Context, p store.ListMaintenanceParams) (list []store.MaintenanceEntry, err error) {
	columns := "m.id, m.tenant_id, m.executor_id, m.mode, m.reason, m.created_by, m.since, m.ends_at, m.ended_by"
	now := s.Dialect.ClockNow()
	where := "1 = 1"
	if p.Tenant != 0 {
		where = fmt.Sprintf("m.tenant_id IN (0, %d)", p.Tenant)
	}
	if !p.Ended {
		where += " AND m.ends_at > " + now
	}
	err = s.Look(ctx, "list maintenance", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		list = nil
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var e store.MaintenanceEntry
			e.Maintenance, err = engine.ScanMaintenance(rows, &e.TenantName, &e.ExecutorName, &e.Active)
			list = append(list, e)
			return err
		}, fmt.Sprintf("SELECT %s, COALESCE(t.name, ''), COALESCE(x.name, ''), m.ends_at > %s FROM maintenance AS m"+
			" LEFT JOIN tenants AS t ON t.id = m.tenant_id LEFT JOIN executors AS x ON x.id = m.executor_id AND x.tenant_id = m.tenant_id"+
			" WHERE %s ORDER BY m.id DESC LIMIT %d", columns, now, where, p.Limit))
	})
	return list, err
}
