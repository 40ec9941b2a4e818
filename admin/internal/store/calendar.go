package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Calendars keeps calendars and their versions.
type Calendars interface {
	// CreateCalendar writes version 1. CodeConflict: the name is taken.
	CreateCalendar(ctx context.Context, c domain.Calendar) (domain.Calendar, error)
	// UpdateCalendar writes a new version. CodeRevisionMismatch: it is at
	// another version than IfVersion (0 = any). The jobs that use it are behind
	// from then on; ListJobsBehind finds them.
	UpdateCalendar(ctx context.Context, p UpdateCalendarParams) (domain.Calendar, error)
	// DeleteCalendar removes it from all lists. CodeConflict: jobs use it.
	DeleteCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, by string) error

	FindCalendar(ctx context.Context, tenant domain.TenantID, id domain.CalendarID) (domain.Calendar, error)
	FindCalendarByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Calendar, error)
	// ListCalendars lists them by name, with their contents. A page ends at Limit or at
	// domain.MaxPageBytes of contents.
	ListCalendars(ctx context.Context, p ListCalendarsParams) (Page[domain.Calendar], error)
	// ListCalendarVersions lists the newest versions first.
	// ListCalendarVersions lists the newest first, below the version before; 0 = all.
	ListCalendarVersions(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, before int64, limit int) (Page[domain.Calendar], error)
	// ListCalendarJobs returns the jobs that use a calendar, by name.
	ListCalendarJobs(ctx context.Context, tenant domain.TenantID, id domain.CalendarID, limit int) ([]JobRef, error)

	// ListJobsBehind returns jobs, of any tenant, whose current revision names
	// an older version of a calendar than the current one. calendar 0 = any.
	ListJobsBehind(ctx context.Context, calendar domain.CalendarID, limit int) ([]JobRef, error)
	// FollowCalendars writes a new revision of a job that names the current
	// versions of its calendars, and plans it anew as UpdateJob does. It does
	// nothing, and answers false, when the job is not behind.
	FollowCalendars(ctx context.Context, p FollowCalendarsParams) (bool, error)
}

type UpdateCalendarParams struct {
	Tenant    domain.TenantID
	ID        domain.CalendarID
	IfVersion int64
	Spec      domain.CalendarSpec
	By        string
}

type ListCalendarsParams struct {
	Tenant domain.TenantID
	After  string // name; empty = from the first
	Limit  int
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
	By     string
	Next   NextFireFunc
	Plan   PlanFunc // as in UpdateJobParams
}
