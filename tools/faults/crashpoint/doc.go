// Package crashpoint answers: what becomes of a run when a process dies
// exactly here?
//
// It is row F02 of the fault matrix. A cell is one failpoint, one way a run can
// go and one promise of its job; for each the processes are real: admin nodes
// and an executor built with the tag failpoints, on MariaDB with two nodes (the
// other one goes on) and on SQLite with one (it is started again). The cell
// passes when the run ends as table 2.4 of the reliability specification says,
// the handler's own file shows the right number of starts, and the added delay
// stays within the goal: once in three times, for a machine that stands still for
// some seconds makes any cell late.
//
// Added delay is the time from the instant at which the run should have gone on
// to the one at which it did, less the time in which no admin node was there.
package crashpoint
