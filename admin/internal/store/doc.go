// Package store answers: what may be asked of the database?
//
// Its methods name transitions, not tables: ClaimDueTriggers, GrantOffers,
// FinishAttempts. Each one is one short transaction that never spans I/O of
// any other kind, and each leaves the rules to package domain: it locks the
// rows by primary key, lets domain decide, and writes what came out together
// with everything that belongs to it (slot, archived attempt, alert event).
//
// Every method takes the tenant where the data has one, and a row of another
// tenant is answered with domain.CodeNotFound, as if it did not exist. The
// exceptions are the engine's own sweeps (ClaimDueTriggers, SweepExecutions
// and the like), which serve all tenants and take each row's tenant from the
// row.
//
// Time is the database's (READ COMMITTED, one writer): "now" in results is
// the clock of the database at that transaction, in milliseconds.
//
// All methods are safe for concurrent use. Errors are domain.Error where the
// caller can act on the code; a database that cannot be reached is
// domain.CodeUnavailable. Implementations: gormstore (SQLite, MySQL/MariaDB);
// both pass storetest.
package store

import "context"

// Store is everything the admin asks of its database.
type Store interface {
	Cluster
	History
	Accounts
	Invitations
	Fleet
	Catalogue
	Trust
	Refusals
	Jobs
	Calendars
	Scripts
	Backfills
	Triggers
	Partitions
	Executions
	Midruns
	Limits
	Quotas
	Logs
	Alerts
	Ledger
	Retention

	// Ping checks that the database answers and accepts writes.
	Ping(ctx context.Context) error
	// Close ends all connections.
	Close() error
}
