// Package nodehandler answers: which handlers do admin nodes run themselves, for the tenants'
// built-in executors?
//
// A kind of handler is one value, looked up by name. The API holds inputs against it, jobs
// of calls and timers take its retry, and package callback registers it with an executor.
package nodehandler

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// Handler is a kind of handler. Its fields are fixed.
type Handler struct {
	Name string
	// CallRetry is the retry of its calls and timers, if nothing else is declared. Zero: that
	// of every handler.
	CallRetry domain.Retry
	// Repeat returns the input of a run that repeats one that has not succeeded. nil: the
	// input stays.
	Repeat func(input []byte, first domain.ExecutionID) []byte
	// Inputs returns a check for the inputs of one request, which reads each thing once. Each
	// input has a byte or more. nil: every input is taken.
	Inputs func(ctx context.Context, tenant domain.TenantID) func(input []byte) error
	// Connections are the documents that the handler sends by. nil: it needs none.
	Connections *Connections
	// Try does once, now, what a run with this input would do, and marks it as a trial. nil: it
	// cannot.
	Try func(ctx context.Context, tenant domain.TenantID, input []byte) (Trial, error)
	// Add registers the handler with a tenant's executor. Its calls are made by within.
	Add func(ex *executor.Executor, tenant domain.TenantID, within Within)
}

// Connections find the documents that an input names in its field connection.
type Connections struct {
	// Find returns the id of a connection. CodeNotFound: there is no such connection.
	Find func(ctx context.Context, tenant domain.TenantID, name string) (id int64, err error)
	// Names returns the names of those that exist.
	Names func(ctx context.Context, tenant domain.TenantID, ids []int64) (map[int64]string, error)
}

// Trial is what came of one try. An error of Try says why nothing was tried.
type Trial struct {
	OK bool
	// Message says why it failed.
	Message string
	// Status and Body are the answer of an address; zero if there was none.
	Status    int
	Body      string
	Truncated bool
	Took      time.Duration
	// Timeout is the longest that the try could take; 0: it has none of its own.
	Timeout time.Duration
}

// Within makes a call as the limits of its receiver allow: most at a time on this node, none
// while the circuit is open. Otherwise it puts the run off. The name of a receiver that is no
// host has a space.
type Within func(ctx context.Context, receiver string, most int, call func() (Outcome, error)) error

// Outcome is what a call says about its receiver.
type Outcome int

const (
	Answered Outcome = iota
	Unanswered
	// Unknown: the call was given up, or it was not sent.
	Unknown
)

// List has a Handler for each name.
type List []Handler

// Find returns the handler of this name.
func (l List) Find(name string) (Handler, bool) {
	at := slices.IndexFunc(l, func(h Handler) bool { return h.Name == name })
	if at < 0 {
		return Handler{}, false
	}
	return l[at], true
}

// Sender returns the handler that sends by connections.
func (l List) Sender() (Handler, bool) {
	at := slices.IndexFunc(l, func(h Handler) bool { return h.Connections != nil })
	if at < 0 {
		return Handler{}, false
	}
	return l[at], true
}
