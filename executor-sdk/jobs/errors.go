package jobs

import (
	"errors"
	"fmt"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// The answers that callers tell apart, by errors.Is.
var (
	ErrNotFound = errors.New("there is no such job, run or executor") // all but List
	ErrTaken    = errors.New("the state of the job forbids it, or a job of another executor has the name")
	ErrDenied   = errors.New("the API key has not the right") // all
	ErrQuota    = errors.New("the tenant's quota is used up") // Put, Run
)

var byCode = map[string]error{"not_found": ErrNotFound, "conflict": ErrTaken, "permission_denied": ErrDenied, "quota_exceeded": ErrQuota}

// RefusedError is an answer of the admin that it does not do what is asked. It is one of the
// errors above where there is one for it.
type RefusedError struct {
	// Executor is the name of the executor. Job is the name of the job, or the id of a run;
	// empty for lists.
	Executor, Job string
	// Status is that of HTTP.
	Status int
	// Code is stable: not_found, conflict, permission_denied, validation_failed, …
	Code, Detail string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: the admin refuses (%s): %s", subject(e.Executor, e.Job), e.Code, e.Detail)
}

// Unwrap returns ErrNotFound and its like.
func (e *RefusedError) Unwrap() error { return byCode[e.Code] }

// UnconfirmedError is a request of which no admin node has said in time that it was done.
type UnconfirmedError struct {
	// Executor and Job are as in RefusedError.
	Executor, Job string
	// MayBeDone: a node may have done it. False: no node has had it.
	MayBeDone bool
	// Err says why nobody waits any longer; it wraps the cause of a context.
	Err error
}

func (e *UnconfirmedError) Error() string {
	if e.MayBeDone {
		return fmt.Sprintf("%s: it is not known whether an admin node has done it: %v", subject(e.Executor, e.Job), e.Err)
	}
	return fmt.Sprintf("%s: no admin node has done it: %v", subject(e.Executor, e.Job), e.Err)
}

func (e *UnconfirmedError) Unwrap() error { return e.Err }

func subject(executor, job string) string {
	if job == "" {
		return "jobs of " + executor
	}
	return "job " + job + " of " + executor
}

// failure is err as this package tells it.
func (j Jobs) failure(job string, reached bool, err error) error {
	var gone *callapi.Unanswered
	var refused *proxy.RefusedError
	if !errors.As(err, &gone) && errors.As(err, &refused) {
		return &RefusedError{Executor: j.executor, Job: job, Status: refused.Status, Code: refused.Code, Detail: refused.Detail}
	}
	return &UnconfirmedError{Executor: j.executor, Job: job, MayBeDone: reached, Err: err}
}
