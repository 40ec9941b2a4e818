package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Statistics says how runs have ended, also those that are deleted since. A run counts
// from the transaction on that ends it, whatever becomes of the node.
type Statistics interface {
	Failures
	// SumRuns adds up how runs of some subjects together have ended, by step and state.
	// What is kept in longer steps only is left out.
	SumRuns(ctx context.Context, p SumRunsParams) (RunSums, error)
	// CountEnds moves ends of runs from the outbox to where they are added up, unless
	// a node did less than every ago; more: there are some left.
	CountEnds(ctx context.Context, every time.Duration) (more bool, err error)
	// WidenStatistics makes hours of old minutes and days of old hours, and deletes old
	// days, about limit rows; it returns how many there were.
	WidenStatistics(ctx context.Context, keep StatisticsKept, limit int) (int, error)
}

// StatisticsKept is how long statistics are kept by minute, by hour and by day.
type StatisticsKept struct{ Minutes, Hours, Days time.Duration }

// Since is from when on it is known by steps how runs have ended: whole hours, whole days.
func (k StatisticsKept) Since(step domain.StatisticStep, now time.Time) time.Time {
	switch step {
	case domain.StepDay:
		return now.Add(-k.Days)
	case domain.StepHour:
		return now.Add(-k.Hours).Truncate(domain.StepDay.Length())
	default:
		return now.Add(-k.Minutes).Truncate(domain.StepHour.Length())
	}
}

type SumRunsParams struct {
	Tenant   domain.TenantID
	Kind     domain.StatisticKind
	Subjects []int64   // ids of executors or jobs; none: the tenant
	From, To time.Time // steps that begin at From or later, and before To
	Step     domain.StatisticStep
}

// RunSums is how runs have ended.
type RunSums map[RunSumKey]*domain.RunSum

// RunSumKey is what is added up: runs that ended in one state within one step.
type RunSumKey struct {
	At    int64 // first millisecond of the step since 1970
	State domain.State
}

// Sum is the sum of a step and a state, which is made when it is missing.
func (s RunSums) Sum(at int64, state domain.State) *domain.RunSum {
	key := RunSumKey{at, state}
	if s[key] == nil {
		s[key] = &domain.RunSum{}
	}
	return s[key]
}
