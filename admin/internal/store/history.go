package store

import "github.com/carillon-sched/carillon/admin/internal/domain"

// History notices a database that has lost what it had committed, because a
// backup was put back or a replica was promoted that lagged behind. From then
// on nothing is planned, offered, granted, swept or finished: these methods
// answer CodeRolledBack until an operator accepts the database as it is.
//
// What was known before is compared with each look at the partitions and with
// each renewal, on MySQL on each new connection before its first use, and on
// SQLite in each transaction that could start something.
type History interface {
	// RememberHistory says what was known of the database in an earlier life.
	RememberHistory(h domain.History)
	// KnownHistory returns how far the database's history is known to reach:
	// only what is durable counts, so the database may be ahead of it.
	KnownHistory() domain.History
	// RolledBack returns the finding while it holds.
	RolledBack() (r domain.Rollback, held bool)
}
