package timers

import (
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// The answers that callers tell apart, by errors.Is.
var (
	ErrExists   = errors.New("there is a timer with this key")                  // set with Reject
	ErrStarted  = errors.New("its run has started")                             // set with Replace, Reschedule
	ErrEnded    = errors.New("its run has ended")                               // Cancel, Reschedule
	ErrNotFound = errors.New("there is no such timer, or no such executor")     // all but List and Count
	ErrQuota    = errors.New("there are as many timers as the tenant may have") // set
)

var byCode = map[string]error{
	"timer_exists": ErrExists, "timer_started": ErrStarted, "already_finished": ErrEnded, "not_found": ErrNotFound, "quota_exceeded": ErrQuota,
}

// RefusedError is an answer of the admin that it does not do what is asked. It is
// one of the errors above where there is one for it.
type RefusedError struct {
	// Handler is EXECUTOR/HANDLER. Key is empty for what is asked of many.
	Handler, Key string
	// Status is that of HTTP; 0 for one timer of many.
	Status int
	// Code is stable: timer_exists, quota_exceeded, permission_denied, validation_failed, …
	Code, Detail string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: the admin refuses (%s): %s", subject(e.Handler, e.Key), e.Code, e.Detail)
}

// Unwrap returns ErrExists and its like.
func (e *RefusedError) Unwrap() error { return byCode[e.Code] }

// UnconfirmedError is a request of which no admin node has said in time that it
// was done.
type UnconfirmedError struct {
	// Handler is EXECUTOR/HANDLER. Key is the one that was given, or a random one;
	// empty for what is asked of many.
	Handler, Key string
	// MayBeDone: a node may have done it. Asking again with Key(e.Key), the policy Keep
	// and all else the same makes no second timer. False: no node has had it.
	MayBeDone bool
	// Err says why nobody waits any longer; it wraps the cause of a context.
	Err error
}

func (e *UnconfirmedError) Error() string {
	if e.MayBeDone {
		return fmt.Sprintf("%s: it is not known whether an admin node has done it: %v", subject(e.Handler, e.Key), e.Err)
	}
	return fmt.Sprintf("%s: no admin node has done it: %v", subject(e.Handler, e.Key), e.Err)
}

func (e *UnconfirmedError) Unwrap() error { return e.Err }

// subject names one timer of a handler, or with an empty key those of the handler.
func subject(handler, key string) string {
	if key == "" {
		return "timers of " + handler
	}
	return "timer " + key + " of " + handler
}

// failure is err as this package tells it.
func failure(handler, key string, reached bool, err error) error {
	var gone *callapi.Unanswered
	var refused *proxy.RefusedError
	if !errors.As(err, &gone) && errors.As(err, &refused) {
		return &RefusedError{Handler: handler, Key: key, Status: refused.Status, Code: refused.Code, Detail: refused.Detail}
	}
	return &UnconfirmedError{Handler: handler, Key: key, MayBeDone: reached, Err: err}
}
