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
// There are two faces. Engine is what moves runs: the rooms on the way of a
// trigger, and the simulator in place of the database, know only that one.
// Console is what people and code look at and edit, by noun.
//
// All methods are safe for concurrent use. Errors are domain.Error where the
// caller can act on the code; a database that cannot be reached is
// domain.CodeUnavailable. Implementations: gormstore (SQLite, MySQL/MariaDB);
// both pass storetest.
package store

import "context"

// Engine is the transitions: what moves runs, and what tells who may move them.
type Engine interface {
	Nodes
	History
	Partitions
	Triggers
	DueTimers
	TimerPages
	Specs
	Executions
	Admission
	MaintenanceView
	Instances
	Progress
	LogAppender
	Outbox
	Feed
}

// Console is the nouns that people and applications see and edit.
type Console interface {
	Accounts
	Invitations
	Executors
	Catalogue
	Trust
	Refusals
	Jobs
	Schedules
	Totals
	Calendars
	Scripts
	DocumentSets
	Cells
	Backfills
	Timers
	TimerEdits
	TimerLists
	Statistics
	TimerCancellations
	Runs
	Limits
	Maintenance
	Quotas
	Logs
	Ledger
	Retention
	RetentionRules
	RunPurges
	Imports
	Cluster
}

// Page is a part of a list whose rows are large.
type Page[T any] struct {
	Items []T
	More  bool // rows follow, also when there are fewer items than were asked for
}

// Store is a database with both faces: what a process opens and closes.
type Store interface {
	Engine
	Console

	// Ping checks that the database answers and accepts writes.
	Ping(ctx context.Context) error
	// Close ends all connections.
	Close() error
}
