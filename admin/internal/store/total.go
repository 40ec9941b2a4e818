package store

import "context"

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
}
