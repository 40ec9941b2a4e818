package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Error is what Publish returns but for errors of the store.
type Error struct {
	// Permanent: the same message fails in the same way until somebody changes
	// something: there is no such stream, the password is wrong.
	Permanent bool
	// Silent: the broker cannot be reached, or has not answered. It may have the
	// message all the same.
	Silent bool
	Err    error
}

var (
	errStops = errors.New("this node stops")
	// errClosed reaches no caller, because the last message of the connection is through.
	errClosed = errors.New("the connection is closed")
	// errOpening ends an opening.
	errOpening = fmt.Errorf("the broker did not accept the connection within %s", openTimeout)
)

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// IsPermanent reports whether trying again is no use, until somebody changes
// the message, its connection or the broker.
func IsPermanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Permanent || domain.Is(err, domain.CodeNotFound) || domain.Is(err, domain.CodeInvalid)
}

// IsSilent reports whether the broker has said nothing to it.
func IsSilent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Silent
}

func permanent(format string, args ...any) error {
	return &Error{Permanent: true, Err: fmt.Errorf(format, args...)}
}

func retryable(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...)}
}

func silent(format string, args ...any) error {
	return &Error{Silent: true, Err: fmt.Errorf(format, args...)}
}

// typed makes what is not an Error one that can be retried: the broker's own
// answers are Errors already.
func typed(err error) error {
	var e *Error
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return silent("no answer from the broker in time; it may have the message: %w", err)
	default:
		return &Error{Silent: true, Err: err}
	}
}
