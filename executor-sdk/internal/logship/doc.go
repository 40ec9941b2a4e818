// Package logship answers one question: how do log lines of runs reach an
// admin node without getting in anybody's way?
//
// Lines wait in memory until an admin node has stored them. They travel on a
// TCP connection of their own, so that they never stand before a heartbeat or
// a result, in batches that leave after 100 ms or 64 KiB. What was not
// acknowledged when a connection ended goes out again on the next one, which
// may lead to another node; line numbers let the admin drop what it has.
//
// Promises:
//
//   - Memory is bounded, for each attempt and in all. A handler that logs
//     faster than lines can be shipped waits a moment (MaxWait), then its lines
//     are dropped, counted, and the count appears as a line of the log.
//   - Attempts take turns: one that floods does not keep the others' lines back.
//   - Line numbers count every line, also dropped ones: a gap is a drop, and
//     the last number tells when a log is complete.
//   - With a spool, lines survive the death of the process, SIGKILL included: they
//     stand in a file before they are sent, 10 ms after they were written or
//     earlier, and the next process with that folder ships them. What a run
//     wrote in its last 10 ms or so may be missing; a line says that its process
//     died. The files are not synced: a machine that dies can lose more.
//   - A disk that refuses writes costs nothing but that: lines then are in
//     memory only.
package logship
