package executor

import (
	"errors"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
)

// Why a handler's context was cancelled: ask with
// errors.Is(context.Cause(ctx), executor.ErrKilled). The text of the cause
// also carries what the admin said.
var (
	// ErrKilled: somebody ended this run, or a newer run replaced it.
	ErrKilled = runner.ErrKilled
	// ErrTimeout: the job's timeout passed.
	ErrTimeout = runner.ErrTimeout
	// ErrLeaseLost: no admin node was heard for so long that the run may be
	// given to somebody else. Stop all effects at once.
	ErrLeaseLost = runner.ErrLeaseLost
	// ErrStopping: the process stops and DrainTimeout has passed. A handler that
	// returns this cause, ctx.Err() or an error that wraps one of them uses up
	// no attempt where the run may be repeated (an idempotent handler, or a job
	// with onLost retry): it goes on in another process at once. Other errors
	// count as ever. The run of a handler that does not return before the process
	// ends is lost, as after a crash.
	ErrStopping = runner.ErrStopping
)

// Permanent marks err as one that a retry cannot mend: the run fails now,
// whatever retries its job has left. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter fails the attempt with err and asks for the next one, if the job
// has one left, after d instead of the job's own delay. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, max(d, 0)}
}

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// Snooze ends the attempt without a verdict and asks for the run again after
// d, at least one second: what it waits for is not there yet. It does not count
// as an attempt, is no failure, and alerts nobody. The run goes on to the same
// or another instance, as a new attempt with a higher fence.
func Snooze(d time.Duration) error { return &snoozeError{max(d, time.Second)} }

type snoozeError struct{ after time.Duration }

func (e *snoozeError) Error() string { return "snoozed for " + e.after.String() }

// Cancelled ends the run as cancelled, with err as the reason: it is not to be
// done any more, and that is no failure. It is not retried and alerts nobody.
// Cancelled(nil) is nil.
func Cancelled(err error) error {
	if err == nil {
		return nil
	}
	return &cancelledError{err}
}

type cancelledError struct{ err error }

func (e *cancelledError) Error() string { return e.err.Error() }
func (e *cancelledError) Unwrap() error { return e.err }

// classify turns what a handler returned into the words of the wire.
func classify(err error) (kind string, after time.Duration) {
	if errors.As(err, new(*PanicError)) {
		return runner.KindPanic, 0
	}
	if errors.As(err, new(*badInputError)) {
		return runner.KindBadInput, 0
	}
	if errors.As(err, new(*outputTooLargeError)) {
		return runner.KindOutputTooLarge, 0
	}
	if errors.As(err, new(*permanentError)) {
		return runner.KindPermanent, 0
	}
	if errors.As(err, new(*cancelledError)) {
		return runner.KindCancelled, 0
	}
	var snooze *snoozeError
	if errors.As(err, &snooze) {
		return runner.KindSnoozed, snooze.after
	}
	var wish *retryAfterError
	if errors.As(err, &wish) {
		return runner.KindRetryable, wish.after
	}
	return runner.KindRetryable, 0
}
