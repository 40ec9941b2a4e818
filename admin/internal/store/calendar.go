package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// Calendars keeps calendars and their versions.
type Calendars interface {
	// CalendarTable keeps them as documents. The jobs that use a calendar are behind after each
	// edit of it; ListJobsBehind finds them. Delete answers CodeConflict while jobs use it.
	CalendarTable() resource.Store

	FindCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID) (domain.Calendar, error)
	FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error)
	// ListCalendarJobs returns the jobs that use a calendar, by name.
	ListCalendarJobs(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, limit int) ([]JobRef, error)

	// ListJobsBehind returns jobs, of any tenant, whose current revision names
	// an older version of a calendar than the current one. calendar 0 = any.
	ListJobsBehind(ctx context.Context, calendar domain.CalendarID, limit int) ([]JobRef, error)
	// FollowCalendars writes a new revision of a job that names the current
	// versions of its calendars, and plans it anew as UpdateJob does. Its author
	// is the last editor of these calendars, with the name of the calendar. It
	// does nothing, and answers false, when the job is not behind.
	FollowCalendars(ctx context.Context, p FollowCalendarsParams) (bool, error)
}

// JobRef names a job.
type JobRef struct {
	Tenant domain.TenantID
	ID     domain.JobID
	Name   string // empty in ListJobsBehind
}

type FollowCalendarsParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	Next   NextFireFunc
	Plan   PlanFunc // as in UpdateJobParams
}
