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
	// RestoreJob brings a deleted job back as a new revision, with its id, its history and what its
	// runs have left. CodeNotFound: it is not deleted, or not after p.Since. CodeConflict: another
	// job has its name. If another job is declared in its place, it is declared no longer.
	RestoreJob(ctx context.Context, p RestoreJobParams) (JobView, error)
	// FindDeletedJob finds a plain job that was deleted after an instant, with its whole spec.
	FindDeletedJob(ctx context.Context, tenant domain.TenantID, id domain.JobID, since time.Time) (JobView, error)
	// ListDeletedJobs lists plain jobs that were deleted after an instant, the last deleted first.
	ListDeletedJobs(ctx context.Context, p ListDeletedParams) ([]Deleted, error)
	// ChangeJobs locks jobs and lets change change each by its index in ids. It returns an error
	// or nil for each. A refused job undoes no other one. change may be called again for a job, in
	// another transaction.
	ChangeJobs(ctx context.Context, tenant domain.TenantID, ids []domain.JobID, change func(i int, job *LockedJob) error) []error
	// SetJobState pauses, resumes or deletes. Pausing and deleting take back
	// fires planned ahead and end scheduled runs that wait as Missed; deleting
	// also cancels waiting retries. Running attempts are left alone. After it
	// returns no run of the job's schedule is offered any more.
	// A second pause of a person keeps author, time and note of the first one.
	// CodeExecutorDisabled: the job's executor is disabled, and it cannot be resumed.
	SetJobState(ctx context.Context, p SetJobStateParams) (JobView, error)

	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (JobView, error)
	FindJobByName(ctx context.Context, tenant domain.TenantID, name string) (JobView, error)
	// ListRecentRuns returns the newest n runs of a job whose fire time has come.
	ListRecentRuns(ctx context.Context, tenant domain.TenantID, id domain.JobID, n int) ([]LastRun, error)
	// ListJobs may leave out the inputs of jobs. So does ListNextFires.
	ListJobs(ctx context.Context, p ListJobsParams) ([]JobView, error)
	// FindJobsByName returns those jobs that exist, by name, with their whole specs and without
	// what is known of their runs. So does ListWholeJobs, by name; a page ends at p.Limit jobs or
	// domain.MaxPageBytes.
	// FindJobsByID is FindJobsByName by ids.
	FindJobsByID(ctx context.Context, tenant domain.TenantID, ids []domain.JobID) ([]JobView, error)
	FindJobsByName(ctx context.Context, tenant domain.TenantID, names []string) (map[string]*JobView, error)
	ListWholeJobs(ctx context.Context, p ListWholeJobsParams) (list []JobView, more bool, err error)
	// CountFires counts the jobs whose next fire time is in a second (Unix time), by second. It
	// counts up to most.
	CountFires(ctx context.Context, tenant domain.TenantID, seconds []int64, most int) (map[int64]int, error)
	// ListRevisions lists the newest first.
	ListRevisions(ctx context.Context, p ListRevisionsParams) (Page[Revision], error)
	// ListJobChanges says what became of a job, newest first: its events, of which
	// the newest thousand are kept, and its edits.
	ListJobChanges(ctx context.Context, tenant domain.TenantID, id domain.JobID, limit int) ([]JobChange, error)
	CountJobs(ctx context.Context, tenant domain.TenantID, within domain.Reach) (enabled, paused int, err error)
	// ListNextFires returns the triggers that fire next.
	ListNextFires(ctx context.Context, tenant domain.TenantID, within domain.Reach, limit int) ([]JobView, error)
	// ListOverdue returns fire times that passed longer ago than that and of which no
	// attempt has started, those that are planned first, each from the oldest; more:
	// there are others. Timers and parts of runs are left out.
	ListOverdue(ctx context.Context, p ListOverdueParams) (list []Overdue, more bool, err error)
}

// RestoreJobParams are those of the new revision. IfRevision is needed. The job is enabled or
// paused, as it was before its deletion.
type RestoreJobParams struct {
	UpdateJobParams
	Since time.Time
}

// ListDeletedParams are jobs or executors that can be restored.
type ListDeletedParams struct {
	Tenant domain.TenantID
	Within domain.Reach
	Since  time.Time
	Limit  int
}

// Deleted is a deleted job or executor. Executor is the name of a job's executor.
type Deleted struct {
	ID, Version    int64
	Name, Executor string
	At             time.Time
	By             string
}

// ListWholeJobsParams are jobs that people or code made.
type ListWholeJobsParams struct {
	Tenant domain.TenantID
	Within domain.Reach
	After  string // name of the last job before the page
	// Declared: also those that code decides about.
	Declared bool
	Limit    int
}

type ListOverdueParams struct {
	Tenant domain.TenantID
	Within domain.Reach
	By     time.Duration
	Limit  int
}

// Overdue is a fire time that has passed, and nothing has started.
type Overdue struct {
	Job          domain.JobID
	JobName      string
	Executor     domain.ExecutorID
	ExecutorName string
	FireAt       time.Time
	// By is how long ago it was, by the database's clock.
	By time.Duration
	// Run is its run, and Reason why that waits; 0: it is not even planned.
	Run    domain.ExecutionID
	Reason domain.Reason
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
	// Written is when and by whom the revision was written. UpdatedAt and UpdatedBy are of the
	// last change, which may be a pause or a resume. Zero: the change has written the revision.
	Written      Authorship
	ExecutorName string
	NextFireAt   time.Time
	// AwaitsRun is the run whose end sets NextFireAt (a fixed delay); 0 = none.
	AwaitsRun domain.ExecutionID
	LastRun   *LastRun
	// Waiting is how many runs stand in the queue for the job's slot. PilesUp: they do
	// because its runs take longer than its interval (domain.PilesUp).
	Waiting int64
	PilesUp bool
	// Week is how its runs ended in the last 7 days, some seconds ago. Nil: none has ended since
	// the job exists, or it is not known yet.
	Week *JobWeek
	// Rank is the value by which a list is sorted: Unranked, or that of SortByFailures,
	// SortByLateness and SortByP95. 0 in other lists.
	Rank int64
	// Recent are the newest runs, the newest first, at most as many as were asked for.
	Recent []LastRun
}

// JobWeek is how runs of a job ended in 7 days, by whole hours. Late and Took have no maximum.
type JobWeek struct {
	Ended, Failed int64
	Late, Took    domain.Spread
}

// Authorship is when and by whom something was written.
type Authorship struct {
	At time.Time
	By string
}

// RecentRuns is how many runs are read with a job unless the caller names a number.
// MostRecentRuns bounds that number, and RecentRunsOfPage those of a page of jobs together.
const (
	RecentRuns       = 10
	MostRecentRuns   = 60
	RecentRunsOfPage = 4000
)

// LastRun is one of a job's newest runs.
type LastRun struct {
	ID         domain.ExecutionID
	State      domain.State
	Reason     domain.Reason
	FireAt     time.Time
	FinishedAt time.Time
	// Took is how long the last attempt ran. Negative: it has not ended, or never started.
	Took time.Duration
	// FirstStartAt is when an attempt started first; zero: none did. Cause and JitterMax say
	// when it was to start.
	FirstStartAt time.Time
	Cause        domain.Cause
	JitterMax    time.Duration
	// Message is the first line of the error, or else the reason in words, at most
	// domain.ShortErrorBytes. Empty: the run has not ended badly.
	Message string
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
	// IfRevision refuses another revision of the job: CodeRevisionMismatch. 0 = any.
	IfRevision int64
	Note       string
	By         string
	// Mine resumes the job only if By paused it; any other job stays as it is.
	Mine bool
	// Hold pauses the job if it is enabled, and marks it with the executor or tenant that
	// was disabled. Its runs that are due go on waiting. Release resumes the job if it is still marked with this one, as of when
	// executor and tenant were enabled. Any other change takes the mark away. 0: people's
	// wishes.
	Hold, Release int64
	// Declared replaces the job's, unless nil.
	Declared *domain.Declared
	Next     NextFireFunc // needed for JobEnabled
	Plan     PlanFunc     // as in UpdateJobParams
}

// LockedJob is a job that a transaction has locked. It may be changed once, by SetState or
// Update, which have the params of SetJobState and UpdateJob.
type LockedJob struct {
	domain.Job
	SetState func(SetJobStateParams) error
	Update   func(UpdateJobParams) error
}

type ListJobsParams struct {
	Tenant   domain.TenantID
	Within   domain.Reach
	Query    string // part of name or description
	Name     string // pattern of the name in any case; * stands for any text
	IDs      []domain.JobID
	Executor domain.ExecutorID
	Handler  string
	State    domain.JobState // 0 = enabled and paused
	Health   JobHealth       // empty: any
	Label    string          // as domain.ParseFilter reads it
	Owner    string          // part of the owner's name and mail; behind a = all of it
	// PausedVia leaves jobs whose pause came this way (domain.Via). Empty: all.
	PausedVia string
	// Kind: the others are not listed, unless AllKinds.
	Kind     domain.JobKind
	AllKinds bool
	// NeverFires leaves only enabled jobs with a schedule that has come to its
	// end: nothing is planned, and no run is waited for.
	NeverFires bool
	// Recent is how many of its newest runs are read with each job; 0 = RecentRuns.
	Recent int
	Sort   JobSort
	Cursor JobCursor
	Limit  int
}

type JobSort string

const (
	SortByName     JobSort = "name"
	SortByNextFire JobSort = "nextFireAt"
	SortByUpdated  JobSort = "updatedAt" // newest first
	// By the last 7 days, the highest first, then jobs without a run.
	SortByFailures JobSort = "failures" // how many runs failed, timed out or were lost
	SortByLateness JobSort = "lateness" // p95 of how late runs started
	SortByP95      JobSort = "p95"      // p95 of how long runs took
)

// Unranked is the rank of jobs whose week is not known.
const Unranked = -2

// JobHealth is of enabled jobs.
type JobHealth string

const (
	// JobFailing: of the runs that succeeded or failed, timed out or were lost, one of the
	// newest minute did not succeed.
	JobFailing JobHealth = "failing"
	// JobLate: in the newest minute in which first attempts ended, one had started more than
	// domain.LateStart late.
	JobLate JobHealth = "late"
)

// JobCursor is the position after the last job of a page: its sort value and id.
type JobCursor struct {
	Name string
	At   time.Time
	Rank int64
	ID   domain.JobID // 0 = from the start
}

// JobDeed is what somebody did to a job.
type JobDeed string

const (
	JobCreated JobDeed = "created"
	JobEdited  JobDeed = "edited" // a new revision
	JobPaused  JobDeed = "paused"
	JobResumed JobDeed = "resumed"
	JobNoted   JobDeed = "note_changed" // it was paused, and stays so
	JobRemoved JobDeed = "deleted"
	// JobRestored is the first state of a job that was deleted.
	JobRestored JobDeed = "restored"
)

// JobEventOf names the change of a state; before 0: it is not known.
func JobEventOf(before, state domain.JobState) JobDeed {
	switch {
	case before == state:
		return JobNoted
	case before == domain.JobDeleted:
		return JobRestored
	case state == domain.JobPaused:
		return JobPaused
	case state == domain.JobDeleted:
		return JobRemoved
	default:
		return JobResumed
	}
}

// JobChange is that somebody did something to a job.
type JobChange struct {
	What JobDeed
	// State is what the job was from then on; 0 with an edit, which leaves it.
	State domain.JobState
	At    time.Time
	By    string
	Note  string // why, in the words of who did it
	// Revision is the one that was made; 0 = none.
	Revision int64
}

type Revision struct {
	JobID     domain.JobID
	Revision  int64
	Spec      domain.JobSpec
	CreatedAt time.Time
	CreatedBy string
}

// ListRevisionsParams are the revisions of a job.
type ListRevisionsParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	Before int64     // lower revisions; 0 = from the newest on
	Until  time.Time // made by then; zero = any
	Limit  int
	// Brief: calendars may lack their days and windows.
	Brief bool
}
