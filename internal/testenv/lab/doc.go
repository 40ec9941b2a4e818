// Package lab answers: how does a real fleet start, break and end on one
// machine?
//
// It builds the binary, runs admin nodes and executors as processes of their
// own on a private database, speaks to them as any client would (HTTP, SQL for
// counting, /metrics), and ends them by their pid, in the order of a trigger's
// way. It knows no more of the product than a user does. Fault runs
// (tools/faults) and measurements stand on it. It also notices for how long
// the machine itself stood still (stalls.go), and follows what handlers write down
// while a load is on (tail.go, recovery.go).
//
// Everything listens on loopback, or in network namespaces that it made
// itself, and dies with the process that started it.
package lab
