// Package sim answers: what would the machines do, in any order of events?
//
// It runs the product's own rooms - dispatch, completer, planner, clock, timer,
// keeper of leases and sweeper - and the executor's machine
// (executor-sdk/simulate) in one loop, with one clock and one source of
// chance. What lies between them is played: a database with transactions, a
// network with sessions, processes that crash and pause, clocks that step.
//
//	Case (seed, faults) ─▶ world ─▶ events in a heap, by (time, chance)
//	                                 │
//	   database ◀─ transactions ─ node ◀═ sessions ═▶ executor ─▶ witness
//	      └──────────── checks after every step ────────────────────┘
//
// A case is decided by its seed alone. Each fault that it injects has a name;
// a failing case is made smaller by leaving out faults one by one, and what is
// left is a file in testdata/regress that is run for ever. Nothing here reads a
// clock, walks a map in its order or uses a global source of chance.
//
// What it cannot find: faults of SQL, of locking and of the goroutines around
// the machines. For those there are storetest, the rooms' own tests and the
// fault matrix on real processes (docs/adr/0015).
package sim
