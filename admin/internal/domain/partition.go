package domain

import (
	"cmp"
	"time"
)

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
	// ClockConfirmedAt is when, by the database's clock, an operator last said
	// that this clock is right; zero = never.
	ClockConfirmedAt time.Time
	History          History
	// Doubted is the farthest history that a node knows which found the
	// database rolled back; zero = none did, or an operator has decided.
	Doubted Doubt
}

// ClockHoldValue is the cluster value that outlives the nodes which do not
// believe the database's clock: by how many milliseconds it leapt, or "".
const ClockHoldValue = "clock_hold"

// ClockHeldAtValue is the cluster value with the last time that they believed,
// in Unix milliseconds. It counts while ClockHoldValue is set.
const ClockHeldAtValue = "clock_held_at"

// ClockAgreed reports whether the database's clock is right by the vote of
// most nodes: those whose last sign of life, by this clock, is younger than
// fresh and whose own clock is within tolerance of it.
func (t *PartitionTable) ClockAgreed(fresh, tolerance time.Duration) bool {
	voters, agree := 0, 0
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if age := t.Now.Sub(n.RenewedAt); age > fresh || age < -fresh {
			continue
		}
		voters++
		if n.ClockSkew.Abs() <= tolerance {
			agree++
		}
	}
	return 2*agree > voters
}

// ZonesDiffer reports whether two nodes have different rules of time zones. Those
// that do not say which count for neither side.
func (t *PartitionTable) ZonesDiffer() bool {
	known := ""
	for i := range t.Nodes {
		digest := t.Nodes[i].Zones.Digest
		if digest != "" && known != "" && digest != known {
			return true
		}
		known = cmp.Or(known, digest)
	}
	return false
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

// PartitionLag says how far behind the work of a partition is.
type PartitionLag struct {
	Partition int
	// NextFireAt is the earliest fire time, of a trigger or a timer, that is not planned; OldestWakeAt
	// the earliest instant at which somebody has to look at an execution. Zero = none.
	NextFireAt, OldestWakeAt time.Time
}

// Database describes the database as it is set up.
type Database struct {
	Kind     string // sqlite, mariadb or mysql
	Version  string
	Role     string // primary or replica
	ReadOnly bool
	Latency  time.Duration // of one round trip
	Findings []Finding
	Group    *DatabaseGroup // nil = a server by itself
}

// DatabaseGroup is a cluster of database servers, as the one that answered sees it.
type DatabaseGroup struct {
	Kind   string // galera or group_replication
	State  string // of the server that answered, in the product's words
	Quorum bool   // that server is with the majority
	// Writer is the server that takes this cluster's writes; empty = unknown.
	Writer string
	// Members are all that the server knows; those it cannot reach may be missing.
	Members []DatabaseMember
	// Conflicts are the transactions that the group has refused since the server's
	// start; Waiting are others' that it has received and not applied.
	Conflicts, Waiting int64
	// Paused is for which part of the time the server was held back so that the
	// slowest could follow; negative = it does not say.
	Paused float64
}

// DatabaseMember is one server of a cluster. What the server that answered does not
// say is empty.
type DatabaseMember struct {
	ID, Address, State, Role string
	Current                  bool // the server that answered
}

// Finding is something about the database that endangers a promise.
type Finding struct {
	Code string // snake_case, stable
	// Fatal: the node must not work with it.
	Fatal   bool
	Message string // what, and what to do
}
