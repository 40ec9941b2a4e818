package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Runs reads runs, and what belongs to them.
type Runs interface {
	// EndedAmong returns those of the tenant's executions that are terminal.
	EndedAmong(ctx context.Context, tenant domain.TenantID, ids []domain.ExecutionID) ([]domain.ExecutionID, error)
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (ExecutionView, error)
	// FindOccurrence returns the run of a job for a fire time: with an empty key
	// its schedule's, with domain.BackfillKey that of a backfill.
	FindOccurrence(ctx context.Context, tenant domain.TenantID, job domain.JobID, fireAt time.Time, key string) (ExecutionView, error)
	ListExecutions(ctx context.Context, p ListExecutionsParams) ([]ExecutionView, error)
	// ListSlotHolders returns the runs that hold a job's slot now, the first 20:
	// those on an instance, and those that linger.
	ListSlotHolders(ctx context.Context, tenant domain.TenantID, job domain.JobID) ([]ExecutionView, error)
	// ListAttempts lists those that have begun, as far as is known, each number once.
	ListAttempts(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) ([]domain.Attempt, error)
	// FindChoice returns what rows tell of the choice of an instance for a run.
	FindChoice(ctx context.Context, p FindChoiceParams) (domain.Choice, error)
	// CountExecutions counts by state since an instant (creation time).
	CountExecutions(ctx context.Context, tenant domain.TenantID, within domain.Reach, since time.Time) (map[domain.State]int64, error)
	// ListParts returns up to limit parts of a run: its shards in order, then the
	// hooks. Family counts all of them.
	ListParts(ctx context.Context, tenant domain.TenantID, parent domain.ExecutionID, limit int) ([]ExecutionView, domain.Family, error)
	// FindProgress returns the newest progress of a run; CodeNotFound when its
	// handlers told nothing.
	FindProgress(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Progress, error)
	// ListSteps lists the steps of a run in the order they were stored.
	ListSteps(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) ([]domain.StoredStep, error)
}

// FindChoiceParams name a run of an executor that was offered At an instant.
type FindChoiceParams struct {
	Tenant   domain.TenantID
	Job      domain.JobID
	Executor domain.ExecutorID
	Run      domain.ExecutionID
	At       time.Time
}

// ExecutionView is an execution with the names that lists show.
type ExecutionView struct {
	domain.Execution
	JobName      string
	Handler      string
	ExecutorName string
	InstanceName string
	// JitterMax is that of the run's revision.
	JitterMax time.Duration
	// FirstStartAt is when the first attempt started that did, where that is not
	// the current one; zero: none did before it.
	FirstStartAt time.Time
}

// MostAhead bounds how long before its fire time a run is written. The clocks of the nodes may
// differ by less than the rest.
const MostAhead = 10 * time.Second

type ListExecutionsParams struct {
	Tenant   domain.TenantID
	Within   domain.Reach
	Job      domain.JobID
	Executor domain.ExecutorID
	Instance domain.InstanceID
	States   []domain.State
	Cause    domain.Cause
	JobQuery string // part of the job's name
	Error    string // part of the handler's error
	// Fingerprint leaves, of each hour and job, the newest run that ended with this error.
	Fingerprint domain.Fingerprint
	// Name, Label and Owner are filters of jobs (ListJobsParams). They may match 200 jobs.
	Name, Label, Owner string
	From               time.Time          // due then or later: by fire time, or by when it was written if that was later; zero = no bound
	To                 time.Time          // due before
	Before             domain.ExecutionID // cursor: ids below this one; 0 = from the newest
	Limit              int
	// Until, if it is set, lets a list with a filter that no index answers end early. It has
	// looked at the newest 20,000 runs that the other filters leave, and says here before which
	// run to go on. 0: there is no more.
	Until *domain.ExecutionID
}
