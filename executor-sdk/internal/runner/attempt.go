package runner

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// Key names one attempt.
type Key struct{ Execution, Fence int64 }

// phase is where an attempt stands; see the drawing in doc.go.
type phase uint8

const (
	accepting phase = iota // ACCEPTED is on its way to the disk
	accepted               // answered; waits for the grant
	granting               // GRANTED is on its way to the disk
	running                // the handler runs, or is about to
	ended                  // returned or never started; a result is owed
)

// attempt is guarded by Runner.mu, like the machine that owns it.
type attempt struct {
	key   Key
	boot  string // the process that accepted it; not this one for results found in the journal
	offer *proto.Offer
	slots int // that it holds until ended
	stuck Stuck
	phase phase

	origin     Link      // session that offered it
	good       bound     // how long the handler may be started
	answeredAt time.Time // when the answer was handed to origin
	grantedAt  time.Time // when the grant came in
	startedAt  time.Time
	deadline   time.Time // of the handler; zero = none

	cause       error     // why it is to end early; the first one counts
	cancelledAt time.Time // when the running handler's context was cancelled
	abandoned   bool      // its grace is over; reported with still_running unless the process stops

	writes int           // appends to the journal that are on their way
	result *proto.Result // being sent until acknowledged; nil = nothing to send now
	next   *proto.Result // follows when result is acknowledged
	told   bool          // all that was to be said is acknowledged
	via    Link          // session that result was last sent through; nil = not sent
	sentAt time.Time
	sends  int

	onSettled func() // called once when nothing is owed any more; nil = nobody asks

	// Set by Runner when it starts the handler.
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// bound says until when a handler may be started: for so long after an instant.
// The zero bound is never over.
type bound struct {
	from  time.Time
	lasts time.Duration
}

func (b bound) over(now time.Time) bool { return b.lasts > 0 && Elapsed(b.from, now) > b.lasts }

func (a *attempt) timeout() time.Duration {
	return time.Duration(a.offer.GetTimeoutMs()) * time.Millisecond
}

// Return is what came of calling a handler.
type Return struct {
	// Kind is empty when the handler succeeded, else one of the Kind constants.
	Kind string
	// Interrupted: what it returned says no more than that its context was
	// cancelled.
	Interrupted bool
	// Output is JSON or empty; counts only for a success.
	Output []byte
	// Error and Stack tell what went wrong. They are cut to the wire's limit.
	Error, Stack string
	// RetryAfter is the handler's wish; 0 = none.
	RetryAfter time.Duration
	// LogLines is the number of the attempt's last log line.
	LogLines int64
}
