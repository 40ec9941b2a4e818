package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// HotTimers knows which timers are due soon without a look into the database. It
// may be wrong in any way and at any time: each id is judged again under its lock
// (ClaimDueTimers), and what it does not name is found in the database ahead of its
// time.
type HotTimers interface {
	// DueTimers returns pending timers of the partitions that are due within the
	// horizon, at most limit of any part of its memory, in no order; and the
	// partitions of which it does not know all. It answers within a bounded time.
	DueTimers(ctx context.Context, held []domain.PartitionTerm, horizon time.Duration, limit int) (due []HotTimer, unknown []int)
	// TimersTried tells that claims have had these timers: they have runs now, or
	// were not there.
	TimersTried(ids []domain.TimerID)
}

// HotTimer is what a hot store knows of a timer.
type HotTimer struct {
	ID        domain.TimerID
	Tenant    domain.TenantID
	Partition int
	FireAt    time.Time
}

// TimerPages reads pending timers in the order of their times.
type TimerPages interface {
	// PendingTimers returns up to Limit timers of a partition with From ≤ fire time
	// < To, by fire time, tenant and id.
	PendingTimers(ctx context.Context, p PendingTimersParams) ([]HotTimer, error)
}

type PendingTimersParams struct {
	Partition int
	From, To  time.Time
	After     HotTimer // the last one of the page before; its ID 0: there is none
	Limit     int
}
