package console

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Executors) SetExecutorState(ctx context.Context, p store.SetExecutorStateParams) (domain.Executor, error) {
	err := s.RunRepeatable(ctx, "set executor state", func(t *db.Tx) error {
		row, err := lockExecutor(t, p.Tenant, p.ID, p.IfVersion)
		if err != nil {
			return err
		}
		note := ""
		if p.State == domain.ExecutorDisabled {
			note = record.Clip(p.Note, record.MessageSize)
		}
		if row.State == int64(p.State) && row.Note == note {
			return nil
		}
		after := row
		after.State, after.Note = int64(p.State), note
		auditExecutor(t, &row, &after)
		now, err := t.Clock()
		if err != nil {
			return err
		}
		_, err = t.Exec(t.Ctx, "UPDATE executors SET state = ?, note = ?, version = version + 1, changed_at = ? WHERE id = ? AND tenant_id = ?",
			int64(p.State), note, db.Millis(now), row.ID, row.TenantID)
		return err
	})
	if err != nil {
		return domain.Executor{}, err
	}
	return s.FindExecutor(ctx, p.Tenant, p.ID)
}

func (s *Executors) ListDisabled(ctx context.Context) (out store.Disabled, err error) {
	err = s.Look(ctx, "list what is disabled", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		out = store.Disabled{Tenants: map[domain.TenantID]bool{}, Executors: map[domain.ExecutorID]bool{}}
		err := db.Query(ctx, q, func(rows *sql.Rows) error {
			var id, tenant int64
			err := rows.Scan(&tenant, &id)
			if id == 0 {
				out.Tenants[domain.TenantID(tenant)] = true
			} else {
				out.Executors[domain.ExecutorID(id)] = true
			}
			return err
		}, fmt.Sprintf("SELECT id, 0 FROM tenants%s WHERE state > %d UNION ALL SELECT tenant_id, id FROM executors%s WHERE state = %d",
			s.Dialect.ByIndex("ix_tenants_state"), domain.TenantEnabled, s.Dialect.ByIndex("ix_executors_state"), domain.ExecutorDisabled))
		if err != nil || len(out.Tenants) == 0 {
			return err
		}
		tenants, cells, err := readPlaces(g)
		for _, t := range tenants {
			if out.NotHere == nil {
				out.NotHere = map[domain.TenantID]store.TenantPlace{}
			}
			cell := cells[t.Cell]
			cell.Name = t.Cell
			out.NotHere[domain.TenantID(t.ID)] = store.TenantPlace{State: domain.TenantState(t.State), Cell: cell}
			out.Tenants[domain.TenantID(t.ID)] = true // it may have begun to move since the first statement
		}
		return err
	})
	return out, err
}

func (s *Executors) ListBusyBoots(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, boots []string) (busy map[string]bool, err error) {
	busy = map[string]bool{}
	err = s.Look(ctx, "find busy instances", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		for some := range slices.Chunk(boots, db.ListOnce) {
			args := []any{int64(tenant), int64(executor)}
			for _, b := range some {
				args = append(args, b)
			}
			found, err := db.Set[string](ctx, q, "SELECT boot_id FROM instances"+s.Dialect.ByIndex("uq_instances_boot")+
				" WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND running > 0 AND boot_id IN ("+db.Placeholders(len(some))+")", args...)
			if err != nil {
				return err
			}
			maps.Copy(busy, found)
		}
		return nil
	})
	return busy, err
}

// ListJobsToHold finds enabled jobs of what is disabled through the jobs of each, and
// held ones whose holder is not disabled any more: of each holder at most limit.
func (s *Executors) ListJobsToHold(ctx context.Context, limit int) (hold, release []store.HeldJob, err error) {
	err = s.Look(ctx, "find jobs of what is disabled", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		hold, release = nil, nil
		scan := func(into *[]store.HeldJob) func(*sql.Rows) error {
			return func(rows *sql.Rows) error {
				var j store.HeldJob
				err := rows.Scan(&j.Tenant, &j.ID, &j.By, &j.Note)
				*into = append(*into, j)
				return err
			}
		}
		if err := db.Query(ctx, q, scan(&hold), JobsToHold(s.Dialect), limit, limit); err != nil {
			return err
		}
		for last := int64(0); len(release) < limit; {
			var by int64
			err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&by) }, "SELECT COALESCE(MIN(held_by), 0) FROM jobs"+s.Dialect.ByIndex("ix_jobs_held")+" WHERE held_by > ?", last)
			if err != nil || by == 0 {
				return err
			}
			last = by
			disabled, err := isDisabled(ctx, q, by)
			if err != nil {
				return err
			}
			if disabled {
				continue
			}
			err = db.Query(ctx, q, scan(&release), "SELECT tenant_id, id, held_by, '' FROM jobs"+s.Dialect.ByIndex("ix_jobs_held")+" WHERE held_by = ? ORDER BY id LIMIT ?", by, limit)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return hold, release, err
}

// JobsToHold finds enabled jobs of executors and tenants that are disabled.
func JobsToHold(d db.Dialect) string {
	of := func(from, by string) string {
		return d.Bounded("SELECT j.tenant_id, j.id, " + by + ".id, " + by + ".note FROM " + from +
			fmt.Sprintf(" AND j.state = %d AND j.kind = %d", domain.JobEnabled, domain.JobPlain) + " LIMIT ?")
	}
	return of(fmt.Sprintf("executors AS x%s JOIN jobs AS j%s ON j.tenant_id = x.tenant_id AND j.executor_id = x.id WHERE x.state = %d",
		d.ByIndex("ix_executors_state"), d.ByIndex("ix_jobs_executor"), domain.ExecutorDisabled), "x") + " UNION ALL " +
		of(fmt.Sprintf("tenants AS n%s JOIN jobs AS j%s ON j.tenant_id = n.id WHERE n.state IN (%d, %d)",
			d.ByIndex("ix_tenants_state"), d.ByIndex("ix_jobs_kind"), domain.TenantDisabled, domain.TenantDeleted), "n")
}

// isDisabled tells of an executor or a tenant whether its jobs stay paused; what is
// gone holds nothing.
func isDisabled(ctx context.Context, q db.Querier, id int64) (disabled bool, err error) {
	err = db.Query(ctx, q, func(rows *sql.Rows) error { disabled = true; return nil },
		"SELECT 1 FROM executors WHERE id = ? AND state = ? UNION ALL SELECT 1 FROM tenants WHERE id = ? AND state IN (?, ?)",
		id, int64(domain.ExecutorDisabled), id, int64(domain.TenantDisabled), int64(domain.TenantDeleted))
	return disabled, err
}

// held applies SetJobStateParams.Hold and Release to a locked job. skip: there is
// nothing to do.
func held(t *db.Tx, job *record.JobRow, p *store.SetJobStateParams) (skip bool, err error) {
	if p.Hold != 0 {
		disabled, err := isDisabled(t.Ctx, t.Conn, p.Hold) // it may have been enabled since it was listed
		return !disabled || domain.JobState(job.State) != domain.JobEnabled, err
	}
	if p.Release != 0 && (job.HeldBy != p.Release || domain.JobState(job.State) != domain.JobPaused) {
		return true, nil
	}
	if p.State != domain.JobEnabled {
		return false, nil
	}
	for _, by := range []int64{job.ExecutorID, job.TenantID} {
		disabled, err := isDisabled(t.Ctx, t.Conn, by)
		if err != nil {
			return false, fmt.Errorf("look whether it is disabled: %w", err)
		}
		if !disabled {
			continue
		}
		if p.Release == 0 {
			return false, domain.Errorf(domain.CodeExecutorDisabled, "the job's executor is disabled; enable it first: the job goes on then by itself if it was running before")
		}
		_, err = t.Exec(t.Ctx, "UPDATE jobs SET held_by = ? WHERE id = ? AND tenant_id = ?", by, job.ID, job.TenantID)
		return true, err
	}
	return false, nil
}

// releasedAt is from when on a job goes on that was held: since its executor and its
// tenant are enabled, or since it changed last. Jobs are released one after another, by
// whichever node comes to it: what the schedule says in between is planned late, and
// not lost.
func releasedAt(t *db.Tx, job *record.JobRow, now time.Time) (time.Time, error) {
	at := job.UpdatedAt
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var changed int64
		err := rows.Scan(&changed)
		at = max(at, changed)
		return err
	}, "SELECT changed_at FROM executors WHERE id = ? UNION ALL SELECT changed_at FROM tenants WHERE id = ?", job.ExecutorID, job.TenantID)
	if err != nil {
		return now, fmt.Errorf("look since when it is enabled: %w", err)
	}
	return db.Instant(min(at, db.Millis(now))), nil
}
