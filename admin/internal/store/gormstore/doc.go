// Package gormstore answers: how is the store's contract kept in MySQL and in
// SQLite?
//
// It opens a store, and fills tables for measurements. The work is done by packages
// below it, each of which may import those of the lines before it:
//
//	db                       how is one database spoken to?
//	record                   which rows do several packages know?
//	engine                   store.Engine: what moves runs
//	retention, timer         nouns of store.Console: what is deleted, timers
//	access                   nouns of store.Console: who gets in
//	console                  store.Console: what people and applications see and edit
//
// # One path for both databases
//
// Every method is one short transaction (db.Tx). The moves of executions go
// through engine.Batch: it locks rows in one pass, lets package run decide and
// conclude, and writes the result in a few multi-row statements. The small
// interface db.Dialect hides the differences between the databases. On MySQL rows are
// locked with FOR UPDATE and changed with one UPDATE joined to a JSON_TABLE;
// on SQLite a transaction is the only writer there is, and a loop of one
// prepared statement is the fastest way to change rows.
//
// gorm serves the plain reads and writes. The statements on the way of a
// trigger (claim, offer, grant, finish, sweep) are written by hand and run on
// the transaction's own connection; they are measured in bench_test.go.
//
// # Order of locks
//
// There is one order, kept by every method, so that no two transactions wait
// for each other in a circle:
//
//	triggers (job id) → job_slots (job id) → limits (subject, kind) → instances (id) → executions (id) → rows only this transaction inserts
//
// Slots come before executions because whoever ends a run has to wake the next
// one of the same job. An execution's job is known before its row is locked,
// from a cache of facts that never change (engine/row_cache.go). slot_waiters
// has no order of its own: it is touched under the lock of the job's slot row
// only. Transactions that the database breaks off all the same (deadlock, lock
// wait timeout, lost connection) are repeated as a whole.
//
// # Time
//
// On MySQL "now" is the clock of the server, read by the statement that locks
// the rows. On SQLite the database has no clock but ours.
package gormstore
