package admin

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// callbackEvery is the pace at which ended runs are looked at that a callback
// follows, by whichever node comes first; callbackLimit bounds one go.
const (
	callbackEvery = 500 * time.Millisecond
	callbackLimit = 200
)

func (a *Admin) callJobs() calljob.Jobs {
	return calljob.Jobs{Store: a.store, NewID: a.ids.Next, Now: a.clock.Now}
}

// endedInput is the input of a callback: executor-sdk's Ended, field by field.
type endedInput struct {
	RunID     string          `json:"runId"`
	Job       string          `json:"job"`
	Handler   string          `json:"handler"`
	FireTime  time.Time       `json:"fireTime"`
	Attempt   int             `json:"attempt"`
	State     string          `json:"state"`
	Reason    string          `json:"reason,omitempty"`
	ErrorKind string          `json:"errorKind,omitempty"`
	Error     string          `json:"error,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
}

// truncate leaves out what is no JSON, which a foreign executor may have sent, and
// what would make the input longer than the wire takes.
func (in *endedInput) truncate() {
	for _, part := range []*json.RawMessage{&in.Input, &in.Output} {
		if *part = proto.CleanJSON(*part); !json.Valid(*part) {
			*part = nil
		}
	}
	const rest = 8 << 10 // of the other fields; errors are cut to 4 KiB of text
	if len(in.Error) > rest/2 {
		in.Error = strings.ToValidUTF8(in.Error[:rest/2], "") + "…"
	}
	if len(in.Input)+len(in.Output)+rest > proto.MaxInput {
		in.Input = nil
	}
	if len(in.Output)+rest > proto.MaxInput {
		in.Output = nil
	}
}

// startCallbacks makes the runs of callbacks. The outbox row goes when its run
// exists, and a run exists once per key, whoever makes it: no callback is lost
// and none is started twice.
func (a *Admin) startCallbacks(ctx context.Context) error {
	list, err := a.store.ListCallbacks(ctx, callbackLimit)
	if err != nil {
		return err
	}
	for _, c := range list {
		err := a.startCallback(ctx, c)
		switch domain.CodeOf(err) {
		case "":
		case domain.CodeNotFound, domain.CodeConflict:
			// The run or its executor is gone, or somebody took the job's name:
			// no later try would end otherwise.
			a.log.Error("callback not started", "component", "callbacks", "tenant_id", c.Tenant, "execution_id", c.ID, "err", err)
		default:
			return err
		}
		if err := a.store.DeleteCallback(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (a *Admin) startCallback(ctx context.Context, c store.Callback) error {
	v, err := a.store.FindExecution(ctx, c.Tenant, c.ID)
	if err != nil {
		return err
	}
	spec, err := a.store.JobSpec(ctx, c.Tenant, v.JobID, v.Revision)
	if err != nil {
		return err
	}
	handler := spec.OnFailure
	if c.Success {
		handler = spec.OnSuccess
	}
	executor, err := a.store.FindExecutor(ctx, c.Tenant, v.Executor)
	if err != nil {
		return err
	}
	h, err := a.store.FindHandler(ctx, c.Tenant, executor.ID, handler)
	if domain.Is(err, domain.CodeNotFound) { // it may come later
		h, err = domain.Handler{Name: handler}, nil
	}
	if err != nil {
		return err
	}
	job, err := a.callJobs().For(ctx, executor, h, calljob.Callback)
	if err != nil {
		return err
	}
	e, err := callbackRun(c, v, spec, job, a.clock.Now())
	if err != nil {
		return err
	}
	e.ID = domain.ExecutionID(a.ids.Next())
	run, created, err := a.store.CreateExecution(ctx, e)
	if err == nil && created {
		a.timer.Add(run)
	}
	return err
}

// callbackRun is the run that follows another one.
func callbackRun(c store.Callback, v store.ExecutionView, spec *domain.JobSpec, job store.JobView, now time.Time) (domain.Execution, error) {
	in := endedInput{
		RunID: v.ID.String(), Job: v.JobName, Handler: v.Handler, FireTime: v.FireAt, Attempt: v.Attempt, State: v.State.String(),
		Reason: string(v.Reason), ErrorKind: v.ErrorKind, Error: v.Error, Input: json.RawMessage(spec.InputOf(&v.Execution)), Output: json.RawMessage(v.Output),
	}
	if in.Error == "" && v.State != domain.Succeeded {
		in.Error = v.Message
	}
	in.truncate()
	input, err := json.Marshal(in)
	if err != nil {
		return domain.Execution{}, domain.Errorf(domain.CodeConflict, "encode the input of the callback: %w", err)
	}
	fireAt := now.UTC().Truncate(time.Millisecond)
	return domain.Execution{
		TenantID: c.Tenant, JobID: job.ID, Revision: job.Revision, Executor: job.Executor, Partition: job.Partition,
		Cause: domain.CauseParent, FireAt: fireAt, OccurrenceKey: "callback:" + c.ID.String() + ":" + strconv.FormatBool(c.Success),
		Input: input, Note: "after run " + c.ID.String() + " of " + v.JobName, RequestedBy: "run:" + c.ID.String(),
		State: domain.Due, MaxAttempts: max(1, job.Spec.Retry.MaxAttempts), NotBefore: fireAt, WakeAt: domain.FirstWake(now, fireAt),
		ExpireAt: fireAt.Add(job.Spec.DispatchTimeout), LogLines: -1,
	}, nil
}
