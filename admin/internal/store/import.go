package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// MaxImport is how many runs one call of ImportRuns takes.
const MaxImport = 1000

// Imports takes runs that have ended elsewhere, or were made up as sample data.
type Imports interface {
	// ImportRuns stores ended runs of the past with their earlier attempts, in one transaction.
	// They count in statistics and failures, by whole hours. They cause no alert and no callback. A
	// run whose id exists is left alone, so that a call can be repeated. It returns the number of new runs.
	//
	// CodeInvalid: a run has not ended, ends in the future, has another cause than import, or an
	// id that a node can have made. CodeNotFound: a job does not exist in this tenant.
	// CodeConflict: an id belongs to another run, or a job has an imported run of the same fire time.
	ImportRuns(ctx context.Context, p ImportRunsParams) (imported int, err error)
}

// ImportRunsParams is one part of a history.
type ImportRunsParams struct {
	Tenant domain.TenantID
	// Instances are processes that have gone. Their ids come from domain.ImportNode too.
	Instances []domain.Instance
	// Runs are at most MaxImport. Executor, partition and revision are those of their jobs.
	Runs []ImportedRun
}

// ImportedRun is a run with the attempts that another one followed, in their order.
type ImportedRun struct {
	domain.Execution
	Earlier []domain.Attempt
}
