package console

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/calendar"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// newCalendarTable is the table of calendars. Revisions of jobs name versions, so a version
// that a job is planned with stays.
func newCalendarTable(database *db.DB) *document.Table {
	return &document.Table{
		DB: database, Kind: calendar.Kind, Name: "calendars", ByName: "ix_calendars_name", Versions: "calendar_versions", Owner: "calendar_id",
		Side: func(*resource.Row) (map[string]any, error) { return map[string]any{"state": 1}, nil }, // of before the mechanism
		Stored: func(t *db.Tx, row *resource.Row, text string) error {
			return calendarHistory.store(t, int64(row.Tenant), row.ID, row.Version, text, fmt.Sprintf("SELECT version FROM job_calendars WHERE calendar_id = %d", row.ID))
		},
		Jobs: document.Links{Table: "job_calendars", Column: "calendar_id"},
	}
}

// CalendarTable keeps calendars.
func (s *Calendars) CalendarTable() resource.Store { return s.table }

// shareDocument locks a document for sharing and returns its version. A transaction that links a
// job to the document holds it until its commit.
func shareDocument(t *db.Tx, noun, table string, tenant domain.TenantID, id int64) (version int64, err error) {
	err = t.SQL.QueryRowContext(t.Ctx, "SELECT version FROM "+table+" WHERE id = ? AND tenant_id = ?"+t.Dialect.ForShare(), id, int64(tenant)).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, db.NotFound(noun, domain.JobID(id))
	}
	if err != nil {
		return 0, fmt.Errorf("lock %s: %w", noun, err)
	}
	return version, nil
}

// FindCalendar implements store.Calendars.
func (s *Calendars) FindCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID) (domain.Calendar, error) {
	row, err := s.table.Find(ctx, tenant, int64(id))
	if err != nil {
		return domain.Calendar{}, err
	}
	return calendar.Of(&row)
}

// FindCalendarByName implements store.Calendars.
func (s *Calendars) FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error) {
	row, err := s.table.FindByName(ctx, tenant, name)
	if err != nil {
		return domain.Calendar{}, err
	}
	return calendar.Of(&row)
}

// ListCalendarJobs implements store.Calendars.
func (s *Calendars) ListCalendarJobs(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, limit int) (out []store.JobRef, err error) {
	err = s.Look(ctx, "list jobs of a calendar", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out, err = s.table.Jobs.List(ctx, q, tenant, int64(id), record.PageSize(limit))
		return err
	})
	return out, err
}
