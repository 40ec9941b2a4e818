// Package followup answers: which run follows a run that has ended?
//
// A job may name callbacks for the success and for the failure of its runs. A callback is a
// handler of any executor of the tenant. To call an address, or to publish a message, it is a
// handler of the built-in executor with a request (docs/adr/0106).
// The transaction that ends such a run leaves a row. A chore of any node makes the run that
// follows, and deletes the row.
package followup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Every is the pace of Start, which begins no further row after limit callbacks.
const (
	Every = 500 * time.Millisecond
	limit = 200
)

// Store is what a Starter asks of the database.
type Store interface {
	ReadOutbox(ctx context.Context, topic domain.Topic, limit int) ([]store.OutboxRow, error)
	DeleteOutbox(ctx context.Context, topic domain.Topic, ids []int64) error
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error)
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error)
	JobSpec(ctx context.Context, tenant domain.TenantID, id domain.JobID, revision int64) (*domain.JobSpec, error)
	CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error)
}

// Starter makes runs that follow others.
type Starter struct {
	Store Store
	// Job returns the job that the calls of a handler belong to.
	Job func(context.Context, domain.Executor, domain.Handler, domain.JobKind) (store.JobView, error)
	// Handlers are those of the built-in executors.
	Handlers nodehandler.List
	NewID    func() int64
	Now      func() time.Time // the database's clock
	// Later takes runs that were made.
	Later  func(...domain.Execution)
	Logger *slog.Logger
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
// what would make the input longer than limit.
func (in *endedInput) truncate(limit int) {
	for _, part := range []*json.RawMessage{&in.Input, &in.Output} {
		if *part = proto.CleanJSON(*part); !json.Valid(*part) {
			*part = nil
		}
	}
	const rest = 8 << 10 // of the other fields; errors are cut to 4 KiB of text
	if len(in.Error) > rest/2 {
		in.Error = strings.ToValidUTF8(in.Error[:rest/2], "") + "…"
	}
	if len(in.Input)+len(in.Output)+rest > limit {
		in.Input = nil
	}
	if len(in.Output)+rest > limit {
		in.Output = nil
	}
}

// Start makes the runs of callbacks. The outbox row goes when its run
// exists, and a run exists once per key, whoever makes it: no callback is lost
// and none is started twice.
func (s *Starter) Start(ctx context.Context) error {
	rows, err := s.Store.ReadOutbox(ctx, domain.TopicCallbacks, limit)
	if err != nil {
		return err
	}
	for started := 0; len(rows) > 0 && started < limit; rows = rows[1:] {
		row := rows[0]
		n, err := s.startAll(ctx, row)
		if started += n; err != nil {
			return err
		}
		if err := s.Store.DeleteOutbox(ctx, domain.TopicCallbacks, []int64{row.ID}); err != nil {
			return err
		}
	}
	return nil
}

// startAll makes the runs of a row, and returns how many callbacks it has. A row that cannot be
// read is of no use to a later try.
func (s *Starter) startAll(ctx context.Context, row store.OutboxRow) (n int, err error) {
	list, err := domain.DecodeList[domain.Callback](row.Body)
	if err != nil {
		s.Logger.Error("callbacks not started", "component", "callbacks", "row", row.ID, "err", err)
	}
	for _, c := range list {
		err := s.start(ctx, c)
		switch domain.CodeOf(err) {
		case "":
		case domain.CodeNotFound, domain.CodeConflict:
			// The run or its executor is gone, or somebody took the job's name:
			// no later try would end otherwise.
			s.Logger.Error("callback not started", "component", "callbacks", "tenant_id", c.Tenant, "execution_id", c.ID, "err", err)
		default:
			return 0, err
		}
	}
	return len(list), nil
}

func (s *Starter) start(ctx context.Context, c domain.Callback) error {
	v, err := s.Store.FindExecution(ctx, c.Tenant, c.ID)
	if err != nil {
		return err
	}
	spec, err := s.Store.JobSpec(ctx, c.Tenant, v.JobID, v.Revision)
	if err != nil {
		return err
	}
	follow := spec.OnFailure
	if c.Success {
		follow = spec.OnSuccess
	}
	if domain.FollowsNothing(v.JobName) || !follow.Any() {
		return domain.Errorf(domain.CodeConflict, "the run has no callback")
	}
	job, err := s.jobOf(ctx, c.Tenant, cmp.Or(follow.Executor, v.Executor), follow.Handler)
	if err != nil {
		return err
	}
	input, err := s.inputOf(ctx, v, spec, follow)
	if err != nil {
		return err
	}
	e := callbackRun(c, v, input, job, s.Now())
	e.ID = domain.ExecutionID(s.NewID())
	run, created, err := s.Store.CreateExecution(ctx, e)
	if err == nil && created {
		s.Later(run)
	}
	return err
}

// jobOf returns the job that the runs of a handler as a callback belong to.
func (s *Starter) jobOf(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID, handler string) (store.JobView, error) {
	executor, err := s.Store.FindExecutor(ctx, tenant, id)
	if err != nil {
		return store.JobView{}, err
	}
	h, err := s.Store.FindHandler(ctx, tenant, executor.ID, handler)
	if domain.Is(err, domain.CodeNotFound) { // it may come later
		h, err = domain.Handler{Name: handler}, nil
	}
	if err != nil {
		return store.JobView{}, err
	}
	return s.Job(ctx, executor, h, domain.JobCallback)
}

// inputOf is the end of a run, or a request with it.
func (s *Starter) inputOf(ctx context.Context, v store.ExecutionView, spec *domain.JobSpec, follow domain.FollowUp) ([]byte, error) {
	input, err := ended(v, spec, proto.MaxInput-len(follow.Request))
	if err != nil || follow.Request == "" {
		return input, err
	}
	connection := ""
	if sender, is := s.Handlers.Sender(); is && follow.Connection != 0 {
		names, err := sender.Connections.Names(ctx, v.TenantID, []int64{follow.Connection})
		if err != nil {
			return nil, err
		}
		connection = cmp.Or(names[follow.Connection], fmt.Sprintf("%d (deleted)", follow.Connection))
	}
	return follow.Input(connection, input)
}

// ended is the end of a run in at most limit bytes of JSON.
func ended(v store.ExecutionView, spec *domain.JobSpec, limit int) ([]byte, error) {
	in := endedInput{
		RunID: v.ID.String(), Job: v.JobName, Handler: v.Handler, FireTime: v.FireAt, Attempt: v.Attempt, State: v.State.String(),
		Reason: string(v.Reason), ErrorKind: v.ErrorKind, Error: v.Error, Input: json.RawMessage(spec.InputOf(&v.Execution)), Output: json.RawMessage(v.Output),
	}
	if in.Error == "" && v.State != domain.Succeeded {
		in.Error = v.Message
	}
	in.truncate(limit)
	input, err := json.Marshal(in)
	if err != nil {
		return nil, domain.Errorf(domain.CodeConflict, "encode the input of the callback: %w", err)
	}
	return input, nil
}

// callbackRun is the run that follows another one.
func callbackRun(c domain.Callback, v store.ExecutionView, input []byte, job store.JobView, now time.Time) domain.Execution {
	fireAt := now.UTC().Truncate(time.Millisecond)
	return domain.Execution{
		TenantID: c.Tenant, JobID: job.ID, Revision: job.Revision, Executor: job.Executor, Partition: job.Partition,
		Cause: domain.CauseParent, FireAt: fireAt, OccurrenceKey: "callback:" + c.ID.String() + ":" + strconv.FormatBool(c.Success),
		Input: input, Note: "after run " + c.ID.String() + " of " + v.JobName, RequestedBy: "run:" + c.ID.String(),
		State: domain.Due, MaxAttempts: max(1, job.Spec.Retry.MaxAttempts), NotBefore: fireAt, WakeAt: domain.FirstWake(now, fireAt),
		ExpireAt: fireAt.Add(job.Spec.DispatchTimeout), LogLines: -1,
	}
}
