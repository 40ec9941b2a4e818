package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Partitions keeps the leases of partitions. All instants are the database's.
// None of these methods waits for a claim that is under way on another node,
// and none is repeated inside: the caller looks again soon.
type Partitions interface {
	// ReadPartitions returns who holds what.
	ReadPartitions(ctx context.Context) (domain.PartitionTable, error)
	// RenewPartitions is a node's sign of life: it makes the leases of those
	// Held whose term is still the highest last for TTL from now, and returns
	// what ReadPartitions would.
	RenewPartitions(ctx context.Context, p RenewPartitionsParams) (domain.PartitionTable, error)
	// AcquirePartitions takes those of Want that are as the caller saw them,
	// and free: released, run out, or lasting longer than any lease can (the
	// database's clock was set back). Each gets the next term.
	AcquirePartitions(ctx context.Context, p AcquirePartitionsParams) ([]domain.PartitionLease, error)
	// ReleasePartitions ends leases and returns those that it ended. One that
	// a claim of this node is verifying at this moment is left out.
	ReleasePartitions(ctx context.Context, p ReleasePartitionsParams) ([]domain.PartitionTerm, error)
	// ListPlanned returns what was planned in these partitions for the time
	// until the database's now + Horizon, is not under way and does not wait
	// for its turn, so that another node can fire it in time; and what nodes
	// of OfferedBy have offered and nobody has accepted, or offered in one step
	// and nobody has reported to have started, unless its job was stopped; of
	// the partitions in OffersOnly these offers alone. With OfferedBy it leaves
	// out what a transaction has locked.
	ListPlanned(ctx context.Context, p ListPlannedParams) ([]domain.Execution, error)
}

// NodesShown is how long a silent node stays in a PartitionTable.
const NodesShown = time.Minute

type RenewPartitionsParams struct {
	Node   domain.NodeID
	BootID string
	Held   []domain.PartitionTerm
	TTL    time.Duration
	// Wall is the node's own clock, for the skew that others are shown.
	Wall time.Time
	// ClockHeld: see domain.NodeStatus.
	ClockHeld bool
}

type AcquirePartitionsParams struct {
	Node   domain.NodeID
	BootID string
	Want   []domain.PartitionTerm // with the term of the last holder
	TTL    time.Duration
}

type ReleasePartitionsParams struct {
	BootID string
	Held   []domain.PartitionTerm
	// Leaving: this process stops. It will not fire what it has planned, and
	// has no share any more.
	Leaving bool
}

type ListPlannedParams struct {
	Partitions, OffersOnly []int // none is in both
	Horizon                time.Duration
	Limit                  int // per partition
	// OfferedBy are nodes that are taken for dead. To give their offers back is
	// safe even if they are not: a grant needs the offer to stand. So it is to
	// send their one-step offers again: an instance takes a fence once.
	OfferedBy []domain.NodeID
}
