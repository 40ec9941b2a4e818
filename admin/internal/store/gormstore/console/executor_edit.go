package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/access"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/retention"
)

// FindExecutorByName compares here too: MySQL does without blanks at the end.
func (s *Executors) FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	row, err := db.FindOne[record.ExecutorRow](ctx, s.DB, "find executor", "tenant_id = ? AND name = ? AND "+record.LivingExecutor, int64(tenant), name)
	if err == nil && row.Name == name || !domain.Is(err, domain.CodeNotFound) && err != nil {
		return row.Executor(), err
	}
	alias, err := db.FindOne[record.AliasRow](ctx, s.DB, "find executor by a former name", "tenant_id = ? AND name = ?", int64(tenant), name)
	if err == nil && alias.Name != name {
		err = domain.Errorf(domain.CodeNotFound, "there is no executor named %q", name)
	}
	if err != nil {
		return domain.Executor{}, err
	}
	return s.FindExecutor(ctx, tenant, domain.ExecutorID(alias.ExecutorID))
}

func (s *Executors) ListExecutorAliases(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) ([]string, error) {
	rows, err := db.FindAll[record.AliasRow](ctx, s.DB, "list former names", "name", "executor_id = ? AND tenant_id = ?", int64(id), int64(tenant))
	return domain.Collect(rows, func(r *record.AliasRow) string { return r.Name }), err
}

// isNoAlias refuses a name that another executor had before. It looks after the name
// was written: whoever gives it up meanwhile has to wait for that, and is seen.
func isNoAlias(t *db.Tx, tenant domain.TenantID, id domain.ExecutorID, name string) error {
	var rows []record.AliasRow
	if err := t.Gorm.Where("tenant_id = ? AND name = ? AND executor_id <> ?", int64(tenant), name, int64(id)).Limit(1).Find(&rows).Error; err != nil || len(rows) == 0 {
		return err
	}
	return domain.Errorf(domain.CodeConflict, "the name %q is a former one of the executor %d, which its processes may still use; remove it there first", name, rows[0].ExecutorID)
}

// lockExecutor locks an executor that is not deleted. version is the one that it has
// to be at; 0: any.
func lockExecutor(t *db.Tx, tenant domain.TenantID, id domain.ExecutorID, version int64) (row record.ExecutorRow, err error) {
	err = t.Gorm.Clauses(t.Locking()...).Where("id = ? AND tenant_id = ? AND "+record.LivingExecutor, int64(id), int64(tenant)).Take(&row).Error
	switch {
	case errors.Is(err, gorm.ErrRecordNotFound):
		err = db.NotFound("executor", id)
	case err == nil && version != 0 && version != row.Version:
		err = domain.Errorf(domain.CodeRevisionMismatch, "executor %s is at version %d, not %d", id, row.Version, version)
	case err == nil && row.BuiltIn:
		err = domain.Errorf(domain.CodeConflict, "the executor %q belongs to the admin nodes: it is neither changed nor deleted", row.Name)
	}
	return row, err
}

func (s *Executors) UpdateExecutor(ctx context.Context, p store.UpdateExecutorParams) (domain.Executor, error) {
	err := s.Run(ctx, "update executor", func(t *db.Tx) error {
		row, err := lockExecutor(t, p.Tenant, p.ID, p.IfVersion)
		if err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		before := row
		if p.Name != nil {
			row.Name = *p.Name
		}
		if p.Description != nil {
			row.Description = record.Clip(*p.Description, record.MessageSize)
		}
		if p.CallbacksTo != nil {
			row.CallbacksTo = strings.Join(*p.CallbacksTo, "\n")
		}
		if row.Name == domain.BuiltInExecutor {
			return domain.Invalid("body.name", "is the name of the executor that the admin nodes are the instances of")
		}
		_, err = t.Exec(t.Ctx, "UPDATE executors SET name = ?, description = ?, callbacks_to = ?, version = version + 1 WHERE id = ? AND tenant_id = ?", row.Name, row.Description, row.CallbacksTo, row.ID, row.TenantID)
		if err != nil {
			return db.NameTaken(err, "executor", row.Name)
		}
		auditExecutor(t, &before, &row)
		if row.Name == before.Name {
			return nil
		}
		return renamed(t, &row, before.Name, db.Millis(now))
	})
	if err != nil {
		return domain.Executor{}, err
	}
	return s.FindExecutor(ctx, p.Tenant, p.ID)
}

// auditExecutor tells the audit log of a change. after is nil: it is deleted.
func auditExecutor(t *db.Tx, before, after *record.ExecutorRow) {
	db.AuditedRow(t, before, after, func(r *record.ExecutorRow) domain.AuditObject {
		return domain.AuditObject{Kind: "executor", ID: domain.ExecutorID(r.ID).String(), Name: r.Name}
	}, func(r *record.ExecutorRow) db.Facts {
		return db.Facts{"name": r.Name, "description": r.Description, "state": domain.ExecutorState(r.State).String(), "note": r.Note, "callbacksTo": db.Lines(r.CallbacksTo)}
	})
}

// renamed keeps the former name for those who use it, and gives API keys that are
// bound to it the new one too.
func renamed(t *db.Tx, row *record.ExecutorRow, before string, now int64) error {
	tenant, id := domain.TenantID(row.TenantID), domain.ExecutorID(row.ID)
	if err := isNoAlias(t, tenant, id, row.Name); err != nil {
		return err
	}
	if _, err := t.Exec(t.Ctx, "DELETE FROM executor_aliases WHERE tenant_id = ? AND name = ?", row.TenantID, row.Name); err != nil { // it was its own once
		return err
	}
	var n int64
	if err := t.Gorm.Model(&record.AliasRow{}).Where("executor_id = ?", row.ID).Count(&n).Error; err != nil {
		return err
	}
	if n >= domain.MaxExecutorAliases {
		return domain.Errorf(domain.CodeConflict, "the executor keeps %d former names, which is the most; remove one that nobody uses any more", n)
	}
	if err := t.Gorm.Create(&record.AliasRow{TenantID: row.TenantID, Name: before, ExecutorID: row.ID, CreatedAt: now}).Error; err != nil {
		return fmt.Errorf("keep the former name: %w", err)
	}
	return access.ChangeScopes(t, row.TenantID, before, func(list []string, from string) []string {
		to := row.Name + strings.TrimPrefix(from, before)
		if !slices.Contains(list, from) || slices.Contains(list, to) {
			return list
		}
		return append(list, to)
	})
}

func (s *Executors) DeleteExecutorAlias(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID, name string) error {
	return s.Run(ctx, "forget former name", func(t *db.Tx) error {
		if _, err := lockExecutor(t, tenant, id, 0); err != nil {
			return err
		}
		n, err := t.Exec(t.Ctx, "DELETE FROM executor_aliases WHERE tenant_id = ? AND name = ? AND executor_id = ?", int64(tenant), name, int64(id))
		if err != nil {
			return err
		}
		if n == 0 {
			return domain.Errorf(domain.CodeNotFound, "the executor has no former name %q", name)
		}
		t.AuditedChange(domain.AuditObject{Name: name}, db.Facts{"executor": id}, nil)
		// Each entry has one of the new name beside it, so that none becomes empty,
		// which would be all of the tenant.
		return access.ChangeScopes(t, int64(tenant), name, func(list []string, entry string) []string {
			if len(list) == 1 {
				return list
			}
			return slices.DeleteFunc(list, func(e string) bool { return e == entry })
		})
	})
}

func (s *Executors) ExecutorUse(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (use store.ExecutorUse, err error) {
	err = s.Look(ctx, "count what an executor has", func(ctx context.Context, q db.Querier, _ *gorm.DB) (err error) {
		use, err = executorUse(ctx, q, s.Dialect, tenant, id)
		return err
	})
	return use, err
}

func executorUse(ctx context.Context, q db.Querier, d db.Dialect, tenant domain.TenantID, id domain.ExecutorID) (use store.ExecutorUse, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error {
		return rows.Scan(&use.Jobs, &use.HandlerJobs, &use.Timers, &use.Instances, &use.Callbacks)
	},
		"SELECT (SELECT COUNT(*) FROM jobs WHERE tenant_id = ? AND executor_id = ? AND state <> ? AND kind = ?),"+
			" (SELECT COUNT(*) FROM jobs WHERE tenant_id = ? AND executor_id = ? AND state <> ? AND kind <> ?),"+
			" (SELECT COALESCE(SUM(c.pending), 0) FROM jobs AS j JOIN timer_counts AS c ON c.tenant_id = j.tenant_id AND c.job_id = j.id"+
			" WHERE j.tenant_id = ? AND j.executor_id = ? AND j.kind = ?),"+
			" (SELECT COUNT(*) FROM instances"+d.ByIndex("ix_instances_executor")+" WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0),"+
			" (SELECT COUNT(*) FROM job_callbacks WHERE target_id = ? AND tenant_id = ?)",
		int64(tenant), int64(id), int64(domain.JobDeleted), int64(domain.JobPlain),
		int64(tenant), int64(id), int64(domain.JobDeleted), int64(domain.JobPlain),
		int64(tenant), int64(id), int64(domain.JobTimer), int64(tenant), int64(id), int64(id), int64(tenant))
	return use, err
}

// DeleteExecutor locks the executor's row, which whoever adds to it has to share.
func (s *Executors) DeleteExecutor(ctx context.Context, p store.DeleteExecutorParams) error {
	return s.RunRepeatable(ctx, "delete executor", func(t *db.Tx) error {
		row, err := lockExecutor(t, p.Tenant, p.ID, p.IfVersion)
		if err != nil {
			return err
		}
		use, err := executorUse(t.Ctx, t.Conn, t.Dialect, p.Tenant, p.ID)
		if err != nil {
			return err
		}
		if err := use.InTheWay(row.Name, p.EndInstances); err != nil {
			return err
		}
		auditExecutor(t, &row, nil)
		now, err := t.Clock()
		if err != nil {
			return err
		}
		if err := retention.PurgeExecutor(t, row.TenantID, row.ID); err != nil {
			return err
		}
		_, err = t.Exec(t.Ctx, "UPDATE instances SET gone_at = ?, lease_until = ?, gone_reason = 'the executor was deleted' WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0",
			db.Millis(now), db.Millis(now), row.TenantID, row.ID)
		if err != nil {
			return fmt.Errorf("end instances: %w", err)
		}
		_, err = t.Exec(t.Ctx, "UPDATE executors SET state = ?, version = version + 1, changed_at = ? WHERE id = ? AND tenant_id = ?",
			int64(domain.ExecutorDeleted), db.Millis(now), row.ID, row.TenantID)
		return err
	})
}

// RestoreExecutor implements store.Executors. The row of a deleted executor stays as long as a job
// or a run names it, and at least as long as it can be restored.
func (s *Executors) RestoreExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID, since time.Time) (domain.Executor, error) {
	err := s.Run(ctx, "restore executor", func(t *db.Tx) error {
		var row record.ExecutorRow
		err := t.Gorm.Clauses(t.Locking()...).Where("id = ? AND tenant_id = ? AND built_in = 0 AND state = ? AND changed_at >= ?",
			int64(id), int64(tenant), int64(domain.ExecutorDeleted), db.Millis(since)).Take(&row).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			return domain.Errorf(domain.CodeNotFound, "there is no deleted executor %s", id)
		} else if err != nil {
			return err
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		if err := record.Grow(t, tenant, record.Growth{Kind: domain.QuotaExecutors, By: 1}); err != nil {
			return err
		}
		before := row
		row.State, row.Note = int64(domain.ExecutorEnabled), ""
		_, err = t.Exec(t.Ctx, "UPDATE executors SET state = ?, note = '', version = version + 1, changed_at = ? WHERE id = ? AND tenant_id = ?", row.State, db.Millis(now), row.ID, row.TenantID)
		if err != nil {
			return db.NameTaken(err, "executor", row.Name)
		}
		auditExecutor(t, &before, &row)
		return isNoAlias(t, tenant, id, row.Name)
	})
	if err != nil {
		return domain.Executor{}, err
	}
	return s.FindExecutor(ctx, tenant, id)
}

// ListDeletedExecutors implements store.Executors. It reads along ix_executors_state: few are deleted.
func (s *Executors) ListDeletedExecutors(ctx context.Context, p store.ListDeletedParams) ([]store.Deleted, error) {
	rows, err := db.FindBy[record.ExecutorRow](ctx, s.DB, "list deleted executors", func(g *gorm.DB) *gorm.DB {
		return within(g.Table("executors"+s.Dialect.ByIndex("ix_executors_state")), "id", p.Within).
			Where("state = ? AND changed_at >= ? AND tenant_id = ? AND built_in = 0", int64(domain.ExecutorDeleted), db.Millis(p.Since), int64(p.Tenant)).
			Order("changed_at DESC, id DESC").Limit(record.PageSize(p.Limit))
	})
	return domain.Collect(rows, func(r *record.ExecutorRow) store.Deleted {
		return store.Deleted{ID: r.ID, Version: r.Version, Name: r.Name, At: db.Instant(r.ChangedAt)}
	}), err
}
