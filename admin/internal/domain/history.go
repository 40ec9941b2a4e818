package domain

import (
	"fmt"
	"time"
)

// History says how far the past of a database reaches. It only grows while the
// database keeps what it committed; a backup that was put back, or a replica
// that had not got everything, shows a smaller one (docs/adr/0019).
type History struct {
	// Epoch grows when an operator accepts a database that has lost something.
	Epoch int64
	// Mark is the sum of all nodes' signs of life and of all partitions' terms.
	Mark int64
}

// Before reports whether h reaches less far than o.
func (h History) Before(o History) bool {
	return h.Epoch < o.Epoch || h.Epoch == o.Epoch && h.Mark < o.Mark
}

func (h History) String() string { return fmt.Sprintf("%d:%d", h.Epoch, h.Mark) }

// ParseHistory reads what String wrote; anything else is the zero History.
func ParseHistory(s string) (h History) {
	if _, err := fmt.Sscanf(s, "%d:%d", &h.Epoch, &h.Mark); err != nil {
		return History{}
	}
	return h
}

// HistoryAcceptedValue is the cluster value with the instant at which an
// operator accepted a database that has lost something, in milliseconds of its
// clock; missing or empty = never.
const HistoryAcceptedValue = "history_accepted"

// Rollback is the finding that the database has lost what it had committed.
type Rollback struct {
	// Seen was known of the database before, Found is what it said then.
	Seen, Found History
	// Lost counts moves of executions that this node was told were committed,
	// and which are not there; 0 when the marks alone told.
	Lost int
	// Told: another node found it out and left word in the database.
	Told bool
	At   time.Time // by the node's own clock
}

// Reason says in a sentence how it was found out.
func (r Rollback) Reason() string {
	switch {
	case r.Told:
		return fmt.Sprintf("another node knows a history up to %s", r.Seen)
	case r.Lost > 0:
		return fmt.Sprintf("%d moves that were committed are not there", r.Lost)
	default:
		return fmt.Sprintf("its history ends at %s, and it was at %s before", r.Found, r.Seen)
	}
}
