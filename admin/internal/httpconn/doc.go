// Package httpconn answers: which HTTP connections does a node keep, and how long
// may one of them take to read an answer?
//
// A connection waits (it has sent no request, or its last one is answered) or
// works. When all places are taken, the one that has waited longest leaves, of
// the address that has the most waiting: it costs its owner a reconnect. Only
// where nobody waits is a newcomer let in for probes only (/healthz, /readyz,
// /metrics): for all else it is told to come back. There are few such connections
// at a time, and the oldest of them leaves first, so that a probe gets its answer
// however many connections work.
package httpconn
