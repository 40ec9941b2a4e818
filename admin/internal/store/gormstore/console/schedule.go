package console

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// ListScheduled implements store.Schedules. It reads a page along ix_jobs_kind.
func (s *Jobs) ListScheduled(ctx context.Context, p store.ListJobsParams, after domain.JobID) (out []store.ScheduledJob, err error) {
	p.State, p.Kind, p.AllKinds, p.NeverFires = domain.JobEnabled, domain.JobPlain, false, false
	err = s.Look(ctx, "list scheduled jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.JobRow
		g = filterJobs(g.Table("jobs AS j"+s.Dialect.ByIndex("ix_jobs_kind")).Select("j.id, j.revision, j.name, j.executor_id"), p)
		if err := g.Where("j.id > ?", int64(after)).Order("j.id").Limit(record.PageSize(p.Limit)).Find(&rows).Error; err != nil {
			return err
		}
		names, err := executorNames(ctx, q, domain.Collect(rows, func(r *record.JobRow) int64 { return r.ExecutorID }))
		out = domain.Collect(rows, func(r *record.JobRow) store.ScheduledJob {
			return store.ScheduledJob{
				JobRevision: store.JobRevision{Job: domain.JobID(r.ID), Revision: r.Revision}, Name: r.Name,
				Executor: domain.ExecutorID(r.ExecutorID), ExecutorName: names[r.ExecutorID],
			}
		})
		return err
	})
	return out, err
}

// scheduleText is the schedule in the text of a revision, in SQL; NULL if there is none.
const scheduleText = "CASE WHEN JSON_VALID(spec) THEN JSON_EXTRACT(spec, '$.schedule') END"

// FindSchedules implements store.Schedules. It goes by the primary key.
func (s *Jobs) FindSchedules(ctx context.Context, tenant domain.TenantID, revisions []store.JobRevision) (out map[store.JobRevision]domain.ScheduleSpec, err error) {
	if len(revisions) == 0 {
		return nil, nil
	}
	terms := domain.Collect(revisions, func(r *store.JobRevision) string {
		return fmt.Sprintf("(job_id = %d AND revision = %d)", r.Job, r.Revision)
	})
	statement := "SELECT job_id, revision, " + scheduleText + " FROM job_revisions WHERE tenant_id = ? AND (" + strings.Join(terms, " OR ") + ")"
	err = s.Look(ctx, "find schedules", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = map[store.JobRevision]domain.ScheduleSpec{}
		rows, err := q.QueryContext(ctx, statement, int64(tenant))
		if err != nil {
			return err
		}
		defer rows.Close()
		for size := 0; size < domain.MaxPageBytes && rows.Next(); {
			var key store.JobRevision
			var text sql.RawBytes
			if err := rows.Scan(&key.Job, &key.Revision, &text); err != nil {
				return err
			}
			size += len(text)
			out[key] = record.DecodeSchedule(text)
		}
		return rows.Err()
	})
	return out, err
}

// FillCalendar implements store.Schedules.
func (s *Jobs) FillCalendar(ctx context.Context, tenant domain.TenantID, use *domain.CalendarUse) error {
	return s.Look(ctx, "find calendar version", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		key := record.CalendarKey{Tenant: tenant, ID: use.ID, Version: use.Version}
		found, err := record.LoadCalendars(ctx, q, []record.CalendarKey{key})
		use.Content = found[key]
		return err
	})
}
