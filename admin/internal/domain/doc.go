// Package domain answers: what are our nouns, and their legal moves?
//
// Nouns are plain structs without tags; moves are pure functions that take
// the time as a parameter, so that every rule of the state machine can be
// tested without a database. The store loads rows, lets this package decide,
// and writes what came out.
//
// An execution moves like this (admin/internal/domain/transition.go):
//
//	           ┌───────────── retry ──────────────┐
//	           ▼                                  │
//	── plan ─▶ due ─ offer ─▶ offered ─ grant ─▶ running ─ finish ─▶ succeeded
//	   │       │ ▲               │                │ │ │              failed
//	   ▼       │ └── give back ──┘                │ │ └─ lose ─────▶ lost ─▶ (late result)
//	missed ◀───┤                                  │ └── cancel ───▶ cancelling
//	excluded   │                                  ▼                  │
//	           ▼                              timed_out           cancelled
//	        discarded
//
// offer with granted=true goes from due to running in one step; it is for
// handlers registered as idempotent.
package domain
