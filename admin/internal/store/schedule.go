package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Schedules reads when the jobs of a tenant fire, without the rest of their specs.
type Schedules interface {
	// ListScheduled lists enabled jobs by id, those after an id. The filters of ListJobs apply,
	// but for state, order and cursor. It reads no specs.
	ListScheduled(ctx context.Context, p ListJobsParams, after domain.JobID) ([]ScheduledJob, error)
	// FindSchedules returns the schedules of revisions, at most 200, without the contents of
	// calendars. It ends with the one at which the texts reach domain.MaxPageBytes: ask again for
	// those that are missing. A schedule that cannot be read is of kind none.
	FindSchedules(ctx context.Context, tenant domain.TenantID, revisions []JobRevision) (map[JobRevision]domain.ScheduleSpec, error)
	// FillCalendar reads the content of a calendar's version. Content stays nil if there is none.
	FillCalendar(ctx context.Context, tenant domain.TenantID, use *domain.CalendarUse) error
}

// JobRevision names a revision.
type JobRevision struct {
	Job      domain.JobID
	Revision int64
}

// ScheduledJob is what lists of fires show of a job.
type ScheduledJob struct {
	JobRevision
	Name         string
	Executor     domain.ExecutorID
	ExecutorName string
}
