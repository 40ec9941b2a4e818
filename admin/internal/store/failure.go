package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// FailureGroup is by what failures are added up.
type FailureGroup string

const (
	FailuresByJob      FailureGroup = "job"
	FailuresByExecutor FailureGroup = "executor"
	// FailuresByLabel has each label of the 10,000 jobs that failed most.
	FailuresByLabel FailureGroup = "label"
	FailuresByError FailureGroup = "error"
)

// Failures says which runs ended badly (domain.FailedState), also those that are deleted
// since. They count some seconds after their end.
type Failures interface {
	// ListFailures returns the groups with the most failures, those with the most first.
	ListFailures(ctx context.Context, p ListFailuresParams) ([]FailureCount, error)
}

type ListFailuresParams struct {
	Tenant   domain.TenantID
	Within   domain.Reach
	Job      domain.JobID // 0: of all
	By       FailureGroup
	From, To time.Time // hours that begin at From or later, and before To
	Limit    int
}

// FailureCount is one group.
type FailureCount struct {
	// ID is that of the job or executor; 0 of others.
	ID int64
	// Name is that of the job or executor, "key=value" of a label, or the text of an error. It is
	// empty if a job or the text of an error is deleted.
	Name string
	// Error is 0 for other groups, and for errors beyond the bound of a job.
	Error domain.Fingerprint
	// Runs ended badly. Ended are all that ended; 0 of labels and errors.
	Runs, Ended int64
	// Jobs is how many jobs they belong to.
	Jobs    int64
	LastRun domain.ExecutionID
	LastAt  time.Time // in whole minutes
	FirstAt time.Time // in whole hours, and not before From
}
