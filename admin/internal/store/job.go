package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Specs reads revisions through a cache.
type Specs interface {
	// JobSpec returns the spec of one revision, from a cache when possible.
	// The value is shared: callers must not change it.
	JobSpec(ctx context.Context, tenant domain.TenantID, id domain.JobID, revision int64) (*domain.JobSpec, error)
	// KnownSpec is JobSpec when the cache has it; nil: it has not.
	KnownSpec(job domain.JobID, revision int64) *domain.JobSpec
}

// Jobs keeps definitions and their revisions. Each change of a job and of its
// trigger is one transaction under the trigger's row lock, so that a claim
// sees all of it or nothing.
type Jobs interface {
	// CreateJob writes job, revision 1, trigger and slot row. CodeConflict: the
	// name is taken in this tenant.
	CreateJob(ctx context.Context, j domain.Job, next NextFireFunc) (JobView, error)
	// CreateJobs is CreateJob for many of one tenant: it returns an error or nil
	// for each. Those that are written stay, whatever becomes of the others.
	CreateJobs(ctx context.Context, tenant domain.TenantID, jobs []NewJob) []error
	// UpdateJob writes a new revision. CodeRevisionMismatch: the job is at
	// another revision than IfRevision (0 = any). Fires planned ahead from the
	// old revision are taken back, and the trigger is set anew.
	UpdateJob(ctx context.Context, p UpdateJobParams) (JobView, error)
	// SetJobState pauses, resumes or deletes. Pausing and deleting take back
	// fires planned ahead and end scheduled runs that wait as Missed; deleting
	// also cancels waiting retries. Running attempts are left alone. After it
	// returns no run of the job's schedule is offered any more.
	SetJobState(ctx context.Context, p SetJobStateParams) (JobView, error)

	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (JobView, error)
	FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (JobView, error)
	ListJobs(ctx context.Context, p ListJobsParams) ([]JobView, error)
	ListRevisions(ctx context.Context, tenant domain.TenantID, id domain.JobID, limit int) ([]Revision, error)
	CountJobs(ctx context.Context, tenant domain.TenantID) (enabled, paused int, err error)
	// ListNextFires returns the triggers that fire next.
	ListNextFires(ctx context.Context, tenant domain.TenantID, limit int) ([]JobView, error)
}

// NewJob is a job to create.
type NewJob struct {
	domain.Job
	Next NextFireFunc
}

// NextFireFunc computes a trigger's first fire time after now (the database's
// clock); domain.Never when there is none. For a fixed delay now is the end of
// the run before.
type NextFireFunc func(now time.Time, spec *domain.JobSpec) time.Time

// JobView is a job with what lists show of its trigger and its last run.
type JobView struct {
	domain.Job
	ExecutorName string
	NextFireAt   time.Time
	// AwaitsRun is the run whose end sets NextFireAt (a fixed delay); 0 = none.
	AwaitsRun domain.ExecutionID
	LastRun   *LastRun
}

type LastRun struct {
	ID         domain.ExecutionID
	State      domain.State
	FireAt     time.Time
	FinishedAt time.Time
}

type UpdateJobParams struct {
	Tenant     domain.TenantID
	ID         domain.JobID
	IfRevision int64
	Executor   domain.ExecutorID // 0 = keep
	Spec       domain.JobSpec
	// Source and DeclarationHash replace the job's; Declared does, unless nil.
	Source          domain.Source
	DeclarationHash string
	Declared        *domain.Declared
	By              string
	Next            NextFireFunc
	// Plan, when set, is asked first for a trigger that is overdue: fire times
	// that passed before the edit belong to the old revision and get their
	// rows in the same transaction. Without it they are passed over.
	Plan PlanFunc
}

type SetJobStateParams struct {
	Tenant domain.TenantID
	ID     domain.JobID
	State  domain.JobState
	Note   string
	By     string
	// Declared replaces the job's, unless nil.
	Declared *domain.Declared
	Next     NextFireFunc // needed for JobEnabled
	Plan     PlanFunc     // as in UpdateJobParams
}

type ListJobsParams struct {
	Tenant   domain.TenantID
	Query    string // part of name or description
	Executor domain.ExecutorID
	Handler  string
	State    domain.JobState // 0 = enabled and paused
	Label    string          // "key" or "key=value"
	Owner    string          // part of the owner's name or mail
	// Kind: the others are not listed, unless AllKinds.
	Kind     domain.JobKind
	AllKinds bool
	// NeverFires leaves only enabled jobs with a schedule that has come to its
	// end: nothing is planned, and no run is waited for.
	NeverFires bool
	Sort       JobSort
	Cursor     JobCursor
	Limit      int
}

type JobSort string

const (
	SortByName     JobSort = "name"
	SortByNextFire JobSort = "nextFireAt"
	SortByUpdated  JobSort = "updatedAt" // newest first
)

// JobCursor is the position after the last job of a page: its sort value and id.
type JobCursor struct {
	Name string
	At   time.Time
	ID   domain.JobID // 0 = from the start
}

type Revision struct {
	JobID     domain.JobID
	Revision  int64
	Spec      domain.JobSpec
	CreatedAt time.Time
	CreatedBy string
}
