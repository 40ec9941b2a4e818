// Package runner answers one question: may this attempt run here, and what
// became of it?
//
// An attempt goes through these phases. Who moves it stands at the arrow.
//
//	         offer            journal             grant             journal
//	(admin) ──────▶ accepting ──────▶ accepted ──────────▶ granting ──────▶ running
//	                    │  answer sent ┘  │ AcceptTTL passed   │               │ handler returned,
//	                    │ journal refused │ or grant refused   │ journal       │ or never started
//	                    ▼                 ▼                    ▼ refused       ▼
//	                answered no       never started  ◀─────────┘             ended
//	                                      └──────────────────────────────────▶ │ journal, then sent
//	                                                                           ▼ until acknowledged
//	                                                                         gone
//
// An offer that is its own grant (idempotent handlers) goes to running at once.
//
// Promises:
//
//   - At most one start per (execution, fence): the grant stands in the journal
//     before the handler is called, an offer that was seen is refused, and a
//     grant later than AcceptTTL after the answer starts nothing.
//   - A slot is taken from accepting until the handler has returned, even if it
//     ignores its cancelled context.
//   - A result stands in the journal's file before it is sent, where the next
//     process finds it, and is sent again, through any session, until an admin
//     node has acknowledged it.
//   - When no node renewed the lease for its time less a margin, everything is
//     cancelled.
//
// machine decides and Runner acts. Every method of machine is one event: it
// takes the time as a parameter, changes the state and lists effects; it does
// not wait, read a clock, or do I/O. Runner feeds it under one lock and
// carries the effects out in their order.
package runner
