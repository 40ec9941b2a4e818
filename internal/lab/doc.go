// Package lab answers: how are real processes set up, watched and ended?
//
// It is what measurements (admin/bench) and proofs (internal/proof) share: child
// processes that are ended by their pid, admin nodes built from one binary, a
// client of the API as anybody could write it, an executor whose handlers are
// witnesses, and the processes' use of CPU and memory as the kernel counts it.
//
// Everything listens on loopback, on ports that were free a moment before, and
// keeps its data in the folder that the caller names. It runs on Linux: it
// reads /proc.
package lab
