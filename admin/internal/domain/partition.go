package domain

import "time"

// PartitionTerm names one tenure of a partition. Whoever takes a partition
// over gets the next term, so a term that is still the highest one proves that
// nobody has taken over since.
type PartitionTerm struct {
	Partition int
	Term      int64
}

// PartitionLease is a partition with its holder.
type PartitionLease struct {
	PartitionTerm
	// Node and BootID name the holder, or the last one; BootID is empty when
	// the last holder stopped and so does not look after what it planned.
	Node   NodeID
	BootID string
	// Until is the end of the lease in database time; zero = released.
	Until time.Time
}

// PartitionTable is what the database said about partitions and nodes at one
// instant.
type PartitionTable struct {
	Now    time.Time        // the database's clock
	Leases []PartitionLease // all of them, by partition
	Nodes  []NodeStatus     // those that have not left, by id
}

// NodeStatus is a node as the others see it.
type NodeStatus struct {
	Node
	// Connected says that the node's session with the database is open. A
	// process that is killed loses it within milliseconds; one that lost its
	// connection for another reason is back soon. It is a hint, no verdict.
	Connected bool
	// RenewedAt is its last sign of life, in database time; zero = it has not
	// begun to take partitions, or is leaving.
	RenewedAt time.Time
	// ClockSkew is how far the node's wall clock is ahead of the database's.
	ClockSkew time.Duration
	// ClockHeld: the node does not believe the database's clock and starts nothing.
	ClockHeld bool
}
