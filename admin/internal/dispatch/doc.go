// Package dispatch answers: where, and now or wait?
//
// It takes due executions from the timer, picks an instance for each by the
// job's routing strategy, and makes the attempt: an offer is committed before
// a byte of it is sent, and its grant is committed before the handler may
// start (docs/dev/architecture.md, "The way of a trigger"). Whether an earlier run
// of the job stands in the way is decided in the database, in the transaction
// of the offer (store.OfferExecutions).
//
// Everything goes in batches: while one transaction is under way, the next
// batch piles up (package batch). What finds no instance waits here until one
// joins or has room; the database knows too (RecordWaits), so that another
// node can take it, and that no later run of a serial job overtakes it.
package dispatch
