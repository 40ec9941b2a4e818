package domain

import "time"

// RefusalUnheard is the code of connections that were closed before their hello
// was complete, because there were too many. All of them are one Refusal, which
// names nobody.
const RefusalUnheard = "unheard"

// Refusal is a process that was turned away, as often as for the same reason.
// Who it is, is what it says of itself: nothing of it is proven.
type Refusal struct {
	Code     string // as it crosses the wire, or "flood", or RefusalUnheard
	Message  string // of the last time
	Remote   string // address; of IPv6 the network of 64 bits; empty = several
	Executor string // the name it gave; empty = none, or several
	Instance string // the name it gave, if any
	Node     string // the name of the node that turned it away last
	Times    int
	// By the clocks of the nodes.
	FirstAt time.Time
	LastAt  time.Time
}
