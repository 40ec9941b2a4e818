// Package gateway answers: who is connected, and how do bytes reach them?
//
// Executors dial in. A connection may do little until its join token has been
// checked; only then does yamux start (proto/SPEC.md). What it may take of the
// node, and who waits or goes when there is too little, is decided by admission
// (docs/adr/0064):
//
//	accept ─▶ connect ─▶ hello ─▶ hold? ─▶ authenticate ─▶ seat ─▶ register ─▶ session
//	           │ places            │ flapping                │ sessions, places to register
//	           ▼                   ▼                         ▼
//	         closed             refused, with a reason and when to come again
//
// Each connection that passed is a Session: one control stream (registration, heartbeats, node
// list) and one command stream (offers, answers, grants, results). Logs come
// on connections of their own, without a multiplexer, so that they can never
// stand in the way of a heartbeat.
//
// The gateway decides nothing about executions. It hands answers and results
// to the Sink it was given, and offers a view of the sessions for routing. A
// write that succeeded here proves nothing; only an answer from the executor
// does. Any fault on a stream closes its session, and no other. Silence is judged
// by idle: who does not answer gets no offers, and a dead path ends its session.
package gateway
