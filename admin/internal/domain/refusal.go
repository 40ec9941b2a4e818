package domain

import "time"

// Refusal is a process that a node turned away, as often as for the same
// reason. Who it is, is what it says of itself: nothing of it is proven.
type Refusal struct {
	Code     string // as it crosses the wire, or "flood"
	Message  string
	Remote   string // address; of IPv6 the network of 64 bits
	Executor string // the name it gave
	Instance string // the name it gave, if any
	Times    int
	FirstAt  time.Time
	LastAt   time.Time
}
