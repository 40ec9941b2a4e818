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
	// ErrStopping: the process stops and DrainTimeout has passed.
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

// classify turns what a handler returned into the words of the wire.
func classify(err error) (kind string, after time.Duration) {
	if _, ok := errors.AsType[*PanicError](err); ok {
		return runner.KindPanic, 0
	}
	if _, ok := errors.AsType[*badInputError](err); ok {
		return runner.KindBadInput, 0
	}
	if _, ok := errors.AsType[*permanentError](err); ok {
		return runner.KindPermanent, 0
	}
	if wish, ok := errors.AsType[*retryAfterError](err); ok {
		return runner.KindRetryable, wish.after
	}
	return runner.KindRetryable, 0
}
