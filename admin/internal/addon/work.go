package addon

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Jobs are what an add-on may do with jobs of a tenant.
type Jobs struct {
	// ListIDs lists jobs in the order of their ids, the ids in (after, until).
	ListIDs func(ctx context.Context, p store.ListJobsParams, after, until domain.JobID) ([]domain.JobID, error)
	// Count counts what ListIDs lists, most at most.
	Count func(ctx context.Context, p store.ListJobsParams, until domain.JobID, most int) (int64, error)
	// Match returns those of the jobs that a filter leaves, by their names. The filter's
	// state and kind do not count.
	Match func(ctx context.Context, p store.ListJobsParams, ids []domain.JobID) (map[domain.JobID]string, error)
	// Lock locks jobs until the end of the transaction, and returns those that exist.
	Lock func(t *db.Tx, tenant domain.TenantID, ids []domain.JobID) (map[domain.JobID]store.LockedJob, error)
	// Pause pauses locked jobs with few statements. It returns those that it leaves to
	// their SetState.
	Pause func(t *db.Tx, ids []domain.JobID, p store.SetJobStateParams) (left []domain.JobID, err error)
	// Next and Plan belong to each change of a locked job.
	Next store.NextFireFunc
	Plan store.PlanFunc
	// Changed lets the scheduler look at the triggers, after the commit.
	Changed func()
}

// Runs are what an add-on may do with runs of a tenant. It works for who asked before.
type Runs struct {
	// List is the list of runs without what other tables know of them.
	List func(ctx context.Context, p store.ListExecutionsParams) ([]domain.Execution, error)
	// Begin runs a job now, and Retry repeats a run. A job gets one run for all that have
	// the same key. by is of the request that has made it, which may be an earlier one.
	Begin func(ctx context.Context, a Asked, job domain.JobID) (run domain.ExecutionID, by string, err error)
	Retry func(ctx context.Context, a Asked, run domain.ExecutionID) (begun domain.ExecutionID, by string, err error)
	// Cancel ends a run. CodeAlreadyFinished: it has ended, and not by the same identity.
	Cancel func(ctx context.Context, id auth.Identity, run domain.ExecutionID, reason string) error
}

// Asked is who asked for a run, and how.
type Asked struct {
	ID auth.Identity
	// Key and By have no dot.
	Key, By string
	Note    string
	// During: the run starts although nothing is to start because of maintenance.
	During bool
}
