// Package lease answers: which part is mine, until when?
//
// Triggers are divided into domain.Partitions slices. A node plans only those
// that it holds a lease for, and proves it inside each claim by the lease's
// term, which grows with every new holder (docs/adr/0007).
//
//	       acquire (term + 1)              renew, every RenewEvery
//	free ──────────────────────▶ held ◀──────────────────────┐
//	 ▲                            │ │                         │
//	 │   release (hand over)      │ └─────────────────────────┘
//	 ├────────────────────────────┤
//	 │   TTL without a renewal    │
//	 └────────────────────────────┘
//
// All instants of leases are the database's. What a node believes ends before
// the lease in the database does: it counts TTL less a margin from the moment
// before the renewal was sent, on its monotonic clock.
//
// Machine (machine.go, decide.go) holds the rules. It is pure: it is told what
// happened and when, and says what to do; so it can be driven by a simulator.
// Keeper (keeper.go) is the goroutine around it.
package lease
