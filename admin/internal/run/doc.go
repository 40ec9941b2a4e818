// Package run decides what becomes of runs (executions) that a transaction has
// loaded: who may start, who has to wait for a slot or for room under a limit,
// who covers whom, what a result, a cancel, a refusal or a lapsed lease means,
// and who is woken by it.
//
// Everything here is decided on rows that were loaded and locked before, at one
// instant of the database's clock: a Batch holds them, its methods change them
// in place and note what has to be written beside them. The few facts that a
// decision needs from elsewhere are asked of a Source, in the same transaction.
// Before that, a Request says which rows are locked. Nothing here knows SQL, and
// nothing waits: package gormstore loads and saves the rows of a database, package sim
// those of its tables in memory.
//
// What one run may do by itself is in package domain (the state machine); this
// package decides where several of them meet. A Batch belongs to one goroutine.
package run
