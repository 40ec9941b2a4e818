package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type jobCalendarRow struct {
	JobID      int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	CalendarID int64 `gorm:"column:calendar_id;primaryKey;autoIncrement:false"`
	TenantID   int64 `gorm:"column:tenant_id"`
	Version    int64 `gorm:"column:version"`
}

func (jobCalendarRow) TableName() string { return "job_calendars" }

// linkCalendars notes which versions a job's next revision names. A calendar
// that is being deleted either is gone, or sees the job.
func linkCalendars(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	uses := slices.Clone(spec.Schedule.Calendars)
	// In the order of their ids: two jobs lock the same calendars.
	slices.SortFunc(uses, func(a, b domain.CalendarUse) int { return int(a.ID - b.ID) })
	for _, u := range uses {
		version, err := shareDocument(t, "calendar", "calendars", domain.TenantID(job.TenantID), int64(u.ID))
		if domain.Is(err, domain.CodeNotFound) || err == nil && u.Version > version {
			return domain.Invalid("body.schedule.calendars", "there is no calendar %s with a version %d", u.ID, u.Version)
		} else if err != nil {
			return err
		}
	}
	if err := unlinkCalendars(t, job); err != nil || len(uses) == 0 {
		return err
	}
	rows := make([]jobCalendarRow, len(uses))
	for i, u := range uses {
		rows[i] = jobCalendarRow{JobID: job.ID, CalendarID: int64(u.ID), TenantID: job.TenantID, Version: u.Version}
	}
	if err := t.Gorm.Create(&rows).Error; err != nil {
		return fmt.Errorf("link calendars: %w", err)
	}
	return nil
}

func unlinkCalendars(t *db.Tx, job *record.JobRow) error {
	if _, err := t.Exec(t.Ctx, "DELETE FROM job_calendars WHERE job_id = ? AND tenant_id = ?", job.ID, job.TenantID); err != nil {
		return fmt.Errorf("unlink calendars: %w", err)
	}
	return nil
}

// ListJobsBehind goes from the calendars, which are few, through an index to
// the jobs with an older version: mostly none.
func (s *Calendars) ListJobsBehind(ctx context.Context, calendar domain.CalendarID, limit int) (out []store.JobRef, err error) {
	err = s.Look(ctx, "list jobs behind their calendars", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = out[:0]
		one := ""
		if calendar != 0 {
			one = fmt.Sprintf(" WHERE c.id = %d", calendar)
		}
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var j store.JobRef
			err := rows.Scan(&j.Tenant, &j.ID)
			out = append(out, j)
			return err
		}, fmt.Sprintf("SELECT j.tenant_id, j.job_id FROM calendars AS c JOIN job_calendars AS j ON j.calendar_id = c.id AND j.version < c.version%s LIMIT %d", one, limit))
	})
	return out, err
}

func (s *Calendars) FollowCalendars(ctx context.Context, p store.FollowCalendarsParams) (bool, error) {
	followed, err := db.Value(ctx, s.RunRepeatable, "follow calendars", func(t *db.Tx) (bool, error) {
		trigger, job, now, err := lockJob(t, p.Tenant, p.Job)
		if err != nil {
			return false, err
		}
		old, err := s.specs.OfJob(t, &job)
		if err != nil {
			return false, err
		}
		spec := *old
		spec.Schedule.Calendars = slices.Clone(old.Schedule.Calendars)
		var newest calendarEdit
		for i, u := range spec.Schedule.Calendars {
			c, err := lastCalendarEdit(t, p.Tenant, u.ID)
			if err != nil {
				return false, err
			}
			if c.version > u.Version {
				spec.Schedule.Calendars[i] = domain.CalendarUse{ID: u.ID, Version: c.version}
				if c.at >= newest.at {
					newest = c
				}
			}
		}
		if newest.version == 0 {
			return false, nil
		}
		if err := record.FillCalendars(t.Ctx, t.Conn, []record.CachedSpec{{Tenant: p.Tenant, Spec: &spec}}); err != nil {
			return false, err
		}
		return true, s.revise(t, trigger, &job, now, revision{spec: &spec, by: newest.author(), next: p.Next, plan: p.Plan})
	})
	if domain.Is(err, domain.CodeNotFound) {
		return false, nil // deleted meanwhile
	}
	return followed, err
}

// calendarEdit is the last edit of a calendar.
type calendarEdit struct {
	version, at int64
	name, by    string
}

// author names the person who changed the calendar, as the reason of the change of its jobs.
func (e *calendarEdit) author() string {
	why := fmt.Sprintf("because calendar %s changed", e.name)
	if e.by != "" {
		why = e.by + ", " + why
	}
	return record.Clip(why, record.NameSize)
}

// lastCalendarEdit has version 0 for a calendar that is not there any more.
func lastCalendarEdit(t *db.Tx, tenant domain.TenantID, id domain.CalendarID) (e calendarEdit, err error) {
	err = t.SQL.QueryRowContext(t.Ctx, "SELECT version, updated_at, name, updated_by FROM calendars WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant)).Scan(&e.version, &e.at, &e.name, &e.by)
	if errors.Is(err, sql.ErrNoRows) {
		return calendarEdit{}, nil
	}
	return e, err
}

type jobCallbackRow struct {
	JobID    int64 `gorm:"column:job_id;primaryKey;autoIncrement:false"`
	TargetID int64 `gorm:"column:target_id;primaryKey;autoIncrement:false"`
	TenantID int64 `gorm:"column:tenant_id"`
}

func (jobCallbackRow) TableName() string { return "job_callbacks" }

// linkCallbacks notes which executors and connections the callbacks of a job's next revision
// need. Executors stay locked for sharing until the commit. A connection is not locked: if it is
// deleted meanwhile, the callback's runs fail and name it.
func linkCallbacks(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	if err := unlinkCallbacks(t, job); err != nil {
		return err
	}
	return insertCallbacks(t, job, spec)
}

func insertCallbacks(t *db.Tx, job *record.JobRow, spec *domain.JobSpec) error {
	var executors, targets []int64
	for _, f := range []domain.FollowUp{spec.OnSuccess, spec.OnFailure} {
		if f.Executor != 0 {
			executors, targets = append(executors, int64(f.Executor)), append(targets, f.Target())
		}
	}
	slices.Sort(executors) // jobs that name the same ones lock them in one order
	for _, id := range slices.Compact(executors) {
		if _, err := record.ExecutorName(t, domain.TenantID(job.TenantID), domain.ExecutorID(id)); err != nil {
			return err
		}
	}
	slices.Sort(targets)
	for _, id := range slices.Compact(targets) {
		if err := t.Gorm.Create(&jobCallbackRow{JobID: job.ID, TargetID: id, TenantID: job.TenantID}).Error; err != nil {
			return fmt.Errorf("link callbacks: %w", err)
		}
	}
	return nil
}

func unlinkCallbacks(t *db.Tx, job *record.JobRow) error {
	if _, err := t.Exec(t.Ctx, "DELETE FROM job_callbacks WHERE job_id = ? AND tenant_id = ?", job.ID, job.TenantID); err != nil {
		return fmt.Errorf("unlink callbacks: %w", err)
	}
	return nil
}
