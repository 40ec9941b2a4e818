package runner

import (
	"errors"

	"github.com/carillon-sched/carillon/proto"
)

// Why a handler's context was cancelled.
var (
	ErrKilled    = errors.New("killed")
	ErrTimeout   = errors.New("timed out")
	ErrLeaseLost = errors.New("lease lost")
	ErrStopping  = errors.New("executor is stopping")
)

// errTooLate: the process stood still before it called the handler.
var errTooLate = errors.New("the process stood still until it was too late to start the handler")

// errStalled is a lease lost because this process itself stood still: nodes may
// have answered, but it did not hear them.
var errStalled error = &causeError{ErrLeaseLost, "its process stood still"}

// errNotRunning: the handler has returned, and what it left behind asks.
var errNotRunning = errors.New("the attempt has ended")

// The words of proto's Result.error_kind.
const (
	KindPermanent      = "permanent"
	KindRetryable      = "retryable"
	KindSnoozed        = "snoozed"
	KindStopping       = "stopping"
	KindLeaseLost      = "lease_lost"
	KindStalled        = "stalled"
	KindPanic          = "panic"
	KindCancelled      = "cancelled"
	KindTimeout        = "timeout"
	KindBadInput       = "bad_input"
	KindOutputTooLarge = "output_too_large"
	KindUnknownHandler = "unknown_handler"
	KindProcessDied    = "process_died"
)

// causeError adds what the admin said to one of the errors above.
type causeError struct {
	cause   error
	message string
}

func (e *causeError) Error() string { return e.cause.Error() + ": " + e.message }
func (e *causeError) Unwrap() error { return e.cause }

// causeOf translates a Cancel frame. A reason this version does not know
// still ends the run.
func causeOf(c *proto.Cancel) error {
	cause, message := ErrKilled, c.GetMessage()
	switch c.GetReason() {
	case "timeout":
		cause = ErrTimeout
	case "lease_lost":
		cause = ErrLeaseLost
	case "superseded":
		if message == "" {
			message = "a newer run replaces it"
		}
	}
	if message == "" {
		return cause
	}
	return &causeError{cause, message}
}
