package callapi

import (
	"context"
	"errors"
	"time"
)

// Ask is a request that means the same when it is repeated.
type Ask struct {
	Method, Path string
	Body         []byte        // JSON; nil = none
	Key          string        // idempotency key; empty = none
	Wait         time.Duration // that the admin is asked to wait for
	Began        time.Time     // of a new call: since when its caller waits
	Longest      int64         // bytes of the answer; 0 = the client's bound
	// RepeatUntil is when that ends to be true: what a node may have done is not
	// asked for again after it. Zero = never.
	RepeatUntil time.Time
}

// Do sends a by client, a *proxy.Client, until it is answered, and reads the answer
// into out. reached: a node may have acted upon it, whatever the error says. The
// error is an *Unanswered, or a *proxy.RefusedError, or the answer could not be
// read. Set by package proxy.
var Do func(ctx context.Context, client any, a Ask, out any) (reached bool, err error)

// Unanswered is a request that was given up: Cause says why, and Last what the
// last try met.
type Unanswered struct{ Cause, Last error }

func (e *Unanswered) Error() string {
	if errors.Is(e.Last, context.Canceled) || errors.Is(e.Last, context.DeadlineExceeded) {
		return e.Cause.Error()
	}
	return e.Cause.Error() + "; the last try: " + e.Last.Error()
}

// Unwrap returns both.
func (e *Unanswered) Unwrap() []error { return []error{e.Cause, e.Last} }
