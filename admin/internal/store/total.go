package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// MaxTotal is up to which number lists are counted.
const MaxTotal = 10_000

// Total is how many items a list has. More: there are more than Count, or may be.
type Total struct {
	Count int
	More  bool
}

// Totals count lists, up to MaxTotal items, whatever their cursors. Each count reads a bounded
// number of rows. If a filter without an index matches few of very many rows, Count is a lower
// bound.
type Totals interface {
	TotalJobs(ctx context.Context, p ListJobsParams) (Total, error)
	TotalExecutions(ctx context.Context, p ListExecutionsParams) (Total, error)
	// CountJobHealth counts jobs of a filter whatever their state and health.
	CountJobHealth(ctx context.Context, p ListJobsParams) (JobCounts, error)
	// GroupJobs counts jobs of a filter by what they have in common, the largest groups first.
	GroupJobs(ctx context.Context, p ListJobsParams, by JobGrouping, limit int) (groups []JobGroup, more bool, err error)
}

// JobCounts counts jobs of a filter. Only paused jobs are in Paused, and only enabled ones in the
// counts behind it. More: there are more than 50,000 jobs, and the others are not counted.
type JobCounts struct {
	All, Paused, Failing, Late, NeverFires int
	More                                   bool
}

// JobGrouping is what jobs of a group have in common.
type JobGrouping string

const (
	JobsByExecutor JobGrouping = "executor"
	JobsByOwner    JobGrouping = "owner" // name and mail address
	JobsByLabel    JobGrouping = "label" // a job is in the group of each of its labels
)

// JobGroup is one group.
type JobGroup struct {
	Executor domain.ExecutorID // 0 of others
	// Name is that of the executor, the owner's name and mail address, or "key=value".
	Name string
	Jobs int
}
