package domain

import (
	"fmt"
	"strings"
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

// FenceFloor is above all fences of earlier epochs. A database that has lost
// commits does not know which fences it has given; an instance that had one, and
// has forgotten what came of it, would not take it again and never say so.
func (h History) FenceFloor() int64 { return h.Epoch << 20 }

func (h History) String() string { return fmt.Sprintf("%d:%d", h.Epoch, h.Mark) }

// ParseHistory reads what String wrote; anything else is the zero History.
func ParseHistory(s string) (h History) {
	if _, err := fmt.Sscanf(s, "%d:%d", &h.Epoch, &h.Mark); err != nil {
		return History{}
	}
	return h
}

// Doubt is word that somebody left in a database: nothing may start on it until
// an operator accepts it.
type Doubt struct {
	History // the farthest that is known of
	// Backup is of when the backup is that was put back; zero = no restore has left it.
	Backup time.Time
}

func (d Doubt) String() string {
	if d.Backup.IsZero() {
		return d.History.String()
	}
	return d.History.String() + " " + d.Backup.UTC().Format(time.RFC3339)
}

// ParseDoubt reads what String wrote; anything else is the zero Doubt.
func ParseDoubt(s string) Doubt {
	history, backup, _ := strings.Cut(s, " ")
	d := Doubt{History: ParseHistory(history)}
	if at, err := time.Parse(time.RFC3339, backup); err == nil {
		d.Backup = at
	}
	return d
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
	// Backup is of when the backup is that was put back, as far as is known.
	Backup time.Time
	At     time.Time // by the node's own clock
}

// Reason says in a sentence how it was found out.
func (r Rollback) Reason() string {
	switch {
	case !r.Backup.IsZero():
		return fmt.Sprintf("a backup of %s was put back", r.Backup.UTC().Format(time.RFC3339))
	case r.Told:
		return fmt.Sprintf("another node knows a history up to %s", r.Seen)
	case r.Lost > 0:
		return fmt.Sprintf("%d moves that were committed are not there", r.Lost)
	default:
		return fmt.Sprintf("its history ends at %s, and it was at %s before", r.Found, r.Seen)
	}
}
