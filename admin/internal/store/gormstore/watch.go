package gormstore

import (
	"database/sql"
	"time"
)

// Transaction is what Options.Observe hears.
type Transaction struct {
	Step string // what it was for, such as "offer executions"; one of a fixed set
	Took time.Duration
	// Repeats is how often it was tried again: broken off by the database, or
	// begun with a belief that was wrong.
	Repeats int
	Err     error // as the caller got it
}

// Pool is what is known of one pool of connections.
type Pool struct {
	Name string // write, read, leases, or main for one that does both
	sql.DBStats
}

// Pools returns the pools, always in the same order.
func (s *Store) Pools() []Pool {
	out := []Pool{{"write", s.write.Stats()}}
	if s.read == s.write {
		out[0].Name = "main"
	} else {
		out = append(out, Pool{"read", s.read.Stats()})
	}
	if s.leases != s.write {
		out = append(out, Pool{"leases", s.leases.Stats()})
	}
	return out
}
