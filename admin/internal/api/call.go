package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// CallRequest names a handler to run.
type CallRequest struct {
	Executor    string          `json:"executor" minLength:"1" maxLength:"128" doc:"Its name"`
	Handler     string          `json:"handler" minLength:"1" maxLength:"128" doc:"Name of the handler, as its instances register it"`
	Input       json.RawMessage `json:"input,omitempty" doc:"Any JSON up to 256 KiB"`
	MaxAttempts int             `json:"maxAttempts,omitempty" minimum:"1" maximum:"100" doc:"At most as many as the handler declares; default: as many, or 1 where it declares none"`
	Timeout     string          `json:"timeout,omitempty" doc:"Of one attempt, at most what the handler declares; default: that, or none"`
	StartWithin string          `json:"startWithin,omitempty" doc:"How long it may wait for an instance; default 5m"`
	Note        string          `json:"note,omitempty" maxLength:"1024" doc:"Why; shown beside the run"`
}

// Call is a run that a program asked for.
type Call struct {
	ID        string          `json:"id" doc:"Of the run"`
	Executor  string          `json:"executor" doc:"Name of the executor"`
	Handler   string          `json:"handler" doc:"Name of the handler"`
	State     string          `json:"state" doc:"State of the run; done says whether it is final"`
	Done      bool            `json:"done" doc:"It has ended; what follows is final"`
	Reason    string          `json:"reason,omitempty" doc:"Code of why it is in this state, when the state alone does not say it"`
	ErrorKind string          `json:"errorKind,omitempty" doc:"Class of the failure, as the executor tells it; absent without one"`
	Error     string          `json:"error,omitempty" doc:"What went wrong, for people; absent without a failure"`
	Output    json.RawMessage `json:"output" doc:"What the handler gave; null without"`
	Attempt   int             `json:"attempt" doc:"Number of the current attempt; 0 before the first"`
	// MaxAttempts and Timeout are what counts, of the handler's and the caller's.
	MaxAttempts int       `json:"maxAttempts" doc:"How often it may be tried"`
	Timeout     string    `json:"timeout,omitempty" doc:"Of one attempt; absent: none"`
	Progress    *Progress `json:"progress" doc:"What the newest attempt told of how far it is; null: nothing"`
}

type callInput struct {
	Wait           string `query:"wait" doc:"Wait this long for the end, at most 5m; default: answer at once"`
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" doc:"The same key with the same body on the same handler gives the same run"`
	CallAge        string `header:"Call-Age" maxLength:"32" doc:"How long the caller has waited already, as a duration: startWithin counts from then"`
	Body           CallRequest
}

type callIDInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Wait string `query:"wait" doc:"Wait this long for the end, at most 5m; default: answer at once"`
}

type callOutput struct {
	Status int
	Body   Call
}

// calls run handlers for programs.
type calls struct {
	// fixed after construction
	store interface {
		store.Runs
		store.Executors
		store.Specs
		executionCanceller
		executionCreator
	}
	runner  Runner
	starter *starter
	callJob func(ctx context.Context, executor domain.Executor, handler domain.Handler, kind domain.JobKind) (store.JobView, error)
	now     func() time.Time
}

func (cs *calls) register(server *web.Server) {
	web.Register(server, web.May(domain.PermCall).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/calls", ID: "call-handler", Unaudited: "calls are data", Tag: "calls", Summary: "Run a handler and get its result",
		Description: "201 with the call, 200 when the Idempotency-Key was seen before with the same body, 422 idempotency_key_reused with another one. With wait the answer comes when the run has ended, or the time is over; ask again with get-call then. An API key calls only the executors and handlers that it is for.",
		Status:      http.StatusCreated, Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusUnprocessableEntity},
		Also: map[int]string{
			http.StatusOK:       "The Idempotency-Key was seen before with the same body: the call that it began",
			http.StatusAccepted: "The call has not ended within the wait; ask for it again by its id",
		},
	}, cs.call)
	web.Register(server, web.May(domain.PermCall).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/calls/{id}", ID: "get-call", Tag: "calls", Summary: "One's own call",
		Description: "With wait the answer comes when the run has ended, or the time is over. Others' calls are not found, but by those who may operate runs.",
		Also:        map[int]string{http.StatusAccepted: "The call has not ended within the wait; ask again"},
	}, func(ctx context.Context, id auth.Identity, in *callIDInput) (*callOutput, error) {
		v, err := cs.ownCall(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		wait, err := readWait(in.Wait)
		if err != nil {
			return nil, err
		}
		return cs.callAnswer(ctx, v.Execution, wait, http.StatusOK)
	})
	web.Register(server, web.May(domain.PermCall).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/calls/{id}/cancel", ID: "cancel-call", Unaudited: "calls are data", Tag: "calls", Summary: "Stop one's own call",
		Description: "One that has not started ends at once; a running handler is asked to stop.",
		Status:      http.StatusAccepted, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*callOutput, error) {
		v, err := cs.ownCall(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		e, err := cs.store.RequestCancel(ctx, id.Tenant, v.ID, domain.ReasonKilled, "cancelled by its caller "+id.Actor())
		if err != nil {
			return nil, err
		}
		if e.State == domain.Cancelling {
			cs.runner.SendCancel(e)
		}
		return cs.callAnswer(ctx, v.Execution, 0, http.StatusAccepted)
	})
}

func readWait(text string) (time.Duration, error) {
	var r reader
	wait := r.Duration("query.wait", text, 0)
	if wait < 0 || wait > maxRunWait {
		r.Fail("query.wait", text, "must be from 0s to 5m")
	}
	return wait, r.Err()
}

// ownCall finds a call by the run's id: of the caller, or any for those who may
// operate runs. Whatever else has that id does not exist here.
func (cs *calls) ownCall(ctx context.Context, id auth.Identity, text string) (store.ExecutionView, error) {
	v, err := web.ByID(ctx, id.Tenant, text, cs.store.FindExecution)
	if err != nil && !domain.Is(err, domain.CodeNotFound) {
		return v, err
	}
	own := err == nil && (v.RequestedBy == id.Actor() || id.May(domain.PermOperate))
	if !own || !strings.HasPrefix(v.JobName, "call:") || catalogue.MayCall(id, v.ExecutorName, v.Handler) != nil {
		return v, domain.Errorf(domain.CodeNotFound, "there is no call %s", text)
	}
	return v, nil
}

func (cs *calls) call(ctx context.Context, id auth.Identity, in *callInput) (*callOutput, error) {
	if err := catalogue.MayCall(id, in.Body.Executor, in.Body.Handler); err != nil {
		return nil, err
	}
	executor, err := cs.store.FindExecutorByName(ctx, id.Tenant, in.Body.Executor)
	if domain.Is(err, domain.CodeNotFound) {
		return nil, catalogue.NoSuchTarget(in.Body.Executor, in.Body.Handler)
	}
	if err != nil {
		return nil, err
	}
	if err := takesRuns(executor); err != nil {
		return nil, err
	}
	wait, err := readWait(in.Wait)
	if err != nil {
		return nil, err
	}
	var r reader
	input := r.JSON("body.input", in.Body.Input)
	within := catalogue.StartWithin(&r.Reader, in.Body.StartWithin, domain.DefaultDispatchTimeout)
	age := r.Duration("header.Call-Age", in.CallAge, 0)
	if age < 0 {
		r.Fail("header.Call-Age", in.CallAge, "must not be negative")
	}
	timeout, note := catalogue.AttemptTimeout(&r.Reader, in.Body.Timeout), catalogue.Note(&r.Reader, in.Body.Note)
	if err := r.Err(); err != nil {
		return nil, err
	}
	h, err := catalogue.Known(ctx, cs.store, id.Tenant, executor, in.Body.Handler, catalogue.HintCall)
	if err == nil && h != nil {
		err = catalogue.CheckInput(h, input, "")
	}
	if err != nil {
		return nil, err
	}
	if h == nil {
		h = &domain.Handler{Name: in.Body.Handler}
	}
	job, err := cs.callJob(ctx, executor, *h, domain.JobCall)
	if err != nil {
		return nil, err
	}
	e := cs.starter.newRun(id, job, cs.now())
	e.Cause, e.Input, e.Note = domain.CauseAPI, input, note
	e.Timeout, e.ExpireAt = timeout, e.FireAt.Add(max(within-age, time.Millisecond))
	e.MaxAttempts = catalogue.Attempts(in.Body.MaxAttempts, e.MaxAttempts, h)
	if in.IdempotencyKey != "" {
		e.OccurrenceKey = requestKey(id.Actor()+"\x00"+in.IdempotencyKey, in.Body.asked()) // a caller's keys are its own
	}
	run, created, err := cs.store.CreateExecution(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := checkReplay(e.OccurrenceKey, run.OccurrenceKey); err != nil && !created {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		cs.runner.Submit(run)
	}
	return cs.callAnswer(ctx, run, wait, status)
}

// asked is what requests with one key have to agree about. What is newer than
// the keys that are stored counts only where it is set.
func (r *CallRequest) asked() []any {
	all := []any{sameOrder(r.Input), r.MaxAttempts, r.StartWithin, r.Note}
	if r.Timeout != "" {
		all = append(all, r.Timeout)
	}
	return all
}

// callAnswer waits for the end for at most wait, and shows the call as it is then.
func (cs *calls) callAnswer(ctx context.Context, run domain.Execution, wait time.Duration, status int) (*callOutput, error) {
	if wait > 0 {
		if err := cs.starter.await(ctx, run, wait, &runOutput{}); err != nil {
			return nil, err
		}
	}
	v, err := cs.store.FindExecution(ctx, run.TenantID, run.ID)
	if err != nil {
		return nil, err
	}
	progress, err := progressOf(ctx, cs.store, v)
	if err != nil {
		return nil, err
	}
	spec, err := cs.store.JobSpec(ctx, v.TenantID, v.JobID, v.Revision)
	if err != nil {
		return nil, err
	}
	timeout := ""
	if d := domain.TimeoutOf(&v.Execution, spec.Timeout); d > 0 {
		timeout = domain.DurationText(d)
	}
	return &callOutput{Status: status, Body: Call{
		ID: v.ID.String(), Executor: v.ExecutorName, Handler: v.Handler, State: v.State.String(), Done: v.State.Terminal(),
		Reason: string(v.Reason), ErrorKind: v.ErrorKind, Error: callError(v), Output: web.RawOrNull(v.Output), Attempt: v.Attempt, MaxAttempts: v.MaxAttempts, Timeout: timeout, Progress: progress,
	}}, nil
}

// callError is what the handler said, or what the engine says of a run that
// has ended without it.
func callError(v store.ExecutionView) string {
	if v.Error != "" || !v.State.Terminal() || v.State == domain.Succeeded {
		return v.Error
	}
	return v.Message
}
