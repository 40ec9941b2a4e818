package db

import (
	"database/sql"
	"time"
)

// Transaction is what Options.Observe hears.
type Transaction struct {
	Step string // what it was for, such as "offer executions"; one of a fixed set
	Took time.Duration
	// Repeats is how often it was tried again: broken off by the database, or
	// begun with cached rows that were stale.
	Repeats int
	Err     error // as the caller got it
}

// Pool is what is known of one pool of connections.
type Pool struct {
	// Name: on MySQL transactions, main for all else, leases; on SQLite write
	// and read.
	Name string
	sql.DBStats
}

// Pools returns the pools, always in the same order.
func (s *DB) Pools() []Pool {
	var out []Pool
	for _, p := range s.pools() {
		out = append(out, Pool{p.name, p.db.Stats()})
	}
	return out
}

type namedPool struct {
	name string
	db   *sql.DB
}

// pools are those that were opened, each once.
func (s *DB) pools() (out []namedPool) {
	switch {
	case s.Write == nil:
	case s.Read == s.Write:
		out = append(out, namedPool{"main", s.Write}, namedPool{"transactions", s.Transactions}, namedPool{"leases", s.Leases})
	default:
		out = append(out, namedPool{"write", s.Write}, namedPool{"read", s.Read})
	}
	return out
}
