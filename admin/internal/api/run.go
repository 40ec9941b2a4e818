package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Run is one planned run (an execution) with its current attempt.
type Run struct {
	ID          string   `json:"id" doc:"Id of the run, a decimal string"`
	JobID       string   `json:"jobId" doc:"Id of its job"`
	JobName     string   `json:"jobName" doc:"Name of its job"`
	JobRevision int64    `json:"jobRevision" doc:"Revision of the job that it runs with"`
	Executor    web.Ref  `json:"executor" doc:"The executor whose instances run it"`
	Handler     string   `json:"handler" doc:"Name of the handler"`
	Cause       string   `json:"cause" enum:"schedule,misfire,manual,api,retry,parent,backfill,timer,import" doc:"Why there is this run: schedule; misfire (in place of fire times that passed); manual (a person asked); api (an API key asked); retry (of a run that had ended); parent (a part or a callback of another run); backfill; timer (somebody has set one); import (it ended before it came into this database, as sample data does)"`
	FireAt      string   `json:"fireAt" format:"date-time" doc:"The instant planned"`
	State       string   `json:"state" enum:"due,offered,running,cancelling,retry_wait,succeeded,failed,timed_out,cancelled,lost,missed,discarded,excluded" doc:"State of the run"`
	Reason      string   `json:"reason" doc:"Why it is there, for machines; may be empty"`
	Message     string   `json:"message" doc:"The same for people"`
	Attempt     int      `json:"attempt" doc:"Number of the current attempt; 0 before the first"`
	MaxAttempts int      `json:"maxAttempts" doc:"How many attempts it has, the first one included"`
	Timeout     string   `json:"timeout,omitempty" doc:"What its caller allows one attempt to take; absent: what the job does"`
	Fence       int64    `json:"fence" doc:"How often it was sent to an instance"`
	FailedSends int      `json:"failedSends" doc:"Sends that led to nothing, over all attempts"`
	Instance    *web.Ref `json:"instance" doc:"The process that has it, or had it last; null: none yet"`
	Note        string   `json:"note" doc:"Why it was asked for; empty: not said"`
	RequestedBy string   `json:"requestedBy" doc:"Who asked for it; empty: the schedule"`
	ClaimedAt   *string  `json:"claimedAt" format:"date-time" doc:"When it was planned"`
	OfferedAt   *string  `json:"offeredAt" format:"date-time" doc:"When the current attempt was sent; null: not yet"`
	GrantedAt   *string  `json:"grantedAt" format:"date-time" doc:"When it was let start; null: not yet"`
	StartedAt   *string  `json:"startedAt" format:"date-time" doc:"By the executor's clock; null until it has run for one or two seconds, or has ended: short runs are written once"`
	FinishedAt  *string  `json:"finishedAt" format:"date-time" doc:"When it ended; null: not yet"`
	Lingers     bool     `json:"lingers,omitempty" doc:"It has ended, but its handler still runs and keeps the slot"`
	ReturnedAt  *string  `json:"returnedAt,omitempty" format:"date-time" doc:"When the handler of a run that lingered was known to run no more"`
	NotBefore   *string  `json:"notBefore" format:"date-time" doc:"No attempt before"`
	DeadlineAt  *string  `json:"deadlineAt" format:"date-time" doc:"When the admin stops waiting for the executor to report a timeout"`
	LatenessMS  *int64   `json:"latenessMs" doc:"From fireAt, or where jitter put the start off to, to the start of the first attempt; of a part, from when it was made; null: none has started"`
	DurationMS  *int64   `json:"durationMs" doc:"How long the handler of the newest attempt ran, without the time until its end was stored"`
	ParentID    *string  `json:"parentId,omitempty" doc:"The run that it is a part of"`
	Part        string   `json:"part,omitempty" enum:"shard,before,after" doc:"What it is to its parent"`
	Shard       *Shard   `json:"shard,omitempty" doc:"Which shard it is"`
	BoundTo     *string  `json:"boundTo,omitempty" doc:"The only instance that may take it"`
	Stage       string   `json:"stage,omitempty" enum:"before,ready,shards,after" doc:"Where a run with shards stands"`
	Shards      int      `json:"shards,omitempty" doc:"How many shards the run has; see its parts"`
	TraceID     string   `json:"traceId,omitempty" doc:"The W3C trace that it belongs to, 32 hex digits; empty when nobody records it"`
	ErrorKind   string   `json:"errorKind,omitempty" doc:"Class of the failure, as the executor tells it; absent without one"`
	Error       string   `json:"error,omitempty" doc:"What the handler said of its failure; absent without one"`
	Fingerprint string   `json:"fingerprint,omitempty" doc:"Of its error, if it failed, timed out or was lost"`
	Code        string   `json:"code,omitempty" enum:"wait_timed_out" doc:"Only in the answer to a run that was waited for in vain"`
}

// RunDetail is a run with all that is known of it.
type RunDetail struct {
	Run
	Input    json.RawMessage `json:"input" doc:"What the handler got"`
	Output   json.RawMessage `json:"output" doc:"What the handler gave; null: nothing"`
	Attempts []Attempt       `json:"attempts" doc:"By number; the current one last. The errors and stacks of the newest ones are whole, up to 64 KiB together; of the others there is the first KiB of the error"`
	Progress *Progress       `json:"progress" doc:"What the newest attempt told of how far it is; null: nothing"`
	Steps    []Step          `json:"steps" doc:"What attempts have done for good, in the order it was stored"`
	JobSpec  *JobSpec        `json:"jobSpec" doc:"The settings that it runs with"`
	Version  string          `json:"instanceVersion,omitempty" doc:"Version of the application that its instance runs; absent: there is no instance yet, or it said none"`
}

// Attempt is one try on one instance.
type Attempt struct {
	Number     int      `json:"number" doc:"From 1; retries add one"`
	Fence      int64    `json:"fence" doc:"Number that grows with each send; reports with an older one change nothing"`
	Instance   *web.Ref `json:"instance" doc:"The process that it was sent to; null: none yet"`
	State      string   `json:"state" doc:"State of the run that this attempt was in, or ended in"`
	OfferedAt  *string  `json:"offeredAt" format:"date-time" doc:"When it was sent; null: not yet"`
	GrantedAt  *string  `json:"grantedAt" format:"date-time" doc:"When it was let start; null: never"`
	StartedAt  *string  `json:"startedAt" format:"date-time" doc:"When its handler was called, by the executor's clock; null: never, or not known"`
	FinishedAt *string  `json:"finishedAt" format:"date-time" doc:"When it ended; null: not yet"`
	ErrorKind  string   `json:"errorKind,omitempty" doc:"Class of the failure, as the executor tells it; absent without one"`
	Error      string   `json:"error,omitempty" doc:"What the handler said of its failure; absent without one"`
	Stack      string   `json:"stack,omitempty" doc:"Stack of a handler that panicked; absent otherwise"`
	Message    string   `json:"message,omitempty" doc:"Code of the reason why the engine ended it; absent: the handler ended by itself"`
}

func runOf(v *store.ExecutionView) Run {
	e := v.Execution
	out := Run{
		ID: e.ID.String(), JobID: e.JobID.String(), JobName: v.JobName, JobRevision: e.Revision,
		Executor: web.Ref{ID: e.Executor.String(), Name: v.ExecutorName}, Handler: v.Handler,
		Cause: string(e.Cause), FireAt: web.Instant(e.FireAt), State: e.State.String(), Reason: string(e.Reason), Message: e.Message,
		Attempt: e.Attempt, MaxAttempts: e.MaxAttempts, Fence: e.Fence, FailedSends: e.Sends().Failed(), Instance: instanceRef(e.Instance, v.InstanceName),
		Note: e.Note, RequestedBy: e.RequestedBy, ClaimedAt: web.InstantOrNull(e.PlannedAt), OfferedAt: web.InstantOrNull(e.OfferedAt),
		GrantedAt: web.InstantOrNull(e.GrantedAt), StartedAt: web.InstantOrNull(e.StartedAt), FinishedAt: web.InstantOrNull(e.FinishedAt),
		NotBefore: web.InstantOrNull(e.NotBefore), DeadlineAt: web.InstantOrNull(e.Deadline), ErrorKind: e.ErrorKind, Error: e.Error,
		TraceID: e.Trace.ID(), Lingers: e.Lingers, ReturnedAt: web.InstantOrNull(e.ReturnedAt),
	}
	if e.Timeout > 0 {
		out.Timeout = domain.DurationText(e.Timeout)
	}
	if mark, _ := domain.ErrorOf(&e); mark != 0 {
		out.Fingerprint = mark.String()
	}
	out.familyOf(&e)
	if late, ok := latenessOf(v); ok {
		ms := late.Milliseconds()
		out.LatenessMS = &ms
	}
	if took, ok := e.Duration(); ok {
		ms := took.Milliseconds()
		out.DurationMS = &ms
	}
	return out
}

// latenessOf is how long the handler started for the first time after the run
// was to start: after its fire time and the jitter, a part after it was made. ok
// is false when it never started, or when the fire time is a logical date only.
func latenessOf(v *store.ExecutionView) (d time.Duration, ok bool) {
	first := v.FirstStartAt
	if first.IsZero() {
		first = v.StartedAt
	}
	if v.IsPart() && !first.IsZero() && v.Cause != domain.CauseBackfill {
		return first.Sub(v.PlannedAt), true
	}
	return startedLate(v.JobID, v.Cause, v.JitterMax, v.FireAt, first)
}

// startedLate is latenessOf of a run that is no part.
func startedLate(job domain.JobID, cause domain.Cause, jitterMax time.Duration, fireAt, first time.Time) (d time.Duration, ok bool) {
	if first.IsZero() || cause == domain.CauseBackfill {
		return 0, false
	}
	if cause == domain.CauseSchedule {
		fireAt = timing.RunAt(job, jitterMax, fireAt)
	}
	return first.Sub(fireAt), true
}

func instanceRef(id domain.InstanceID, name string) *web.Ref {
	if id == 0 {
		return nil
	}
	return &web.Ref{ID: id.String(), Name: name}
}

type listRunsInput struct {
	web.PageParams
	web.TotalParam
	JobID       string `query:"jobId" doc:"Only runs of this job"`
	ExecutorID  string `query:"executorId" doc:"Only runs of this executor"`
	InstanceID  string `query:"instanceId" doc:"Only runs that this instance has or had last"`
	State       string `query:"state" maxLength:"200" doc:"One or several, separated by commas"`
	Cause       string `query:"cause" enum:"schedule,misfire,manual,api,retry,parent,backfill,timer,import" doc:"Only runs that exist for this reason"`
	From        string `query:"from" format:"date-time" doc:"Due at or after: by fire time, or by when the run was written if that was later"`
	To          string `query:"to" format:"date-time" doc:"Due before, likewise"`
	Q           string `query:"q" maxLength:"128" doc:"Part of the job's name"`
	Error       string `query:"error" maxLength:"256" doc:"Part of what the handler said of its failure"`
	Fingerprint string `query:"fingerprint" maxLength:"16" doc:"Of each hour and job, the newest run that ended with this error, as groupBy=error of the statistics has it; of the newest 1,000"`
	Name        string `query:"name" maxLength:"128" doc:"Only runs of jobs with this name, in which * stands for any text. Name, label and owner may match 200 jobs together"`
	Label       string `query:"label" maxLength:"256" doc:"Only runs of jobs with these labels: key, key=value or a selector such as team=pay,tier in (gold, silver),env!=test, all of whose terms hold"`
	Owner       string `query:"owner" maxLength:"254" doc:"Only runs of jobs with this part of the owner's name or mail address"`
}

type cancelRunInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body *struct {
		Reason string `json:"reason,omitempty" maxLength:"1024" doc:"Why; the handler sees it"`
	} `required:"false"`
}

type retryRunInput struct {
	ID              string `path:"id" doc:"Id of what the address names, a decimal string"`
	During          bool   `query:"duringMaintenance" doc:"Start it although nothing is to start because of maintenance"`
	AllowUnfitInput bool   `query:"allowUnfitInput" doc:"Accept an input that does not fit what is registered of the handler"`
	IdempotencyKey  string `header:"Idempotency-Key" maxLength:"255" doc:"The same key with the same body on runs of one job gives the same run"`
	Body            *struct {
		Input      json.RawMessage `json:"input,omitempty" doc:"Default: the run's own"`
		OnlyFailed bool            `json:"onlyFailed,omitempty" doc:"Of a run with shards: only those that did not succeed. A retry of one shard is of that shard alone in any case"`
	} `required:"false"`
}

// runs are listed, shown, stopped and repeated.
type runs struct {
	// fixed after construction
	store interface {
		store.Runs
		store.Totals
		store.Jobs
		store.Executors
		store.Specs
		executionCanceller
	}
	runner      Runner
	starter     *starter
	maintenance *maintenance
	handlers    nodehandler.List
	now         func() time.Time
	log         *slog.Logger
}

func (rs *runs) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs", ID: "list-runs", Large: true, Tag: "runs", Summary: "List runs, newest first",
		Description: "Newest first by id, without inputs and outputs. Filters go together: a run meets all of them. No index answers cause, error, q, name, label, owner and instanceId, and states of an executor. With these filters a page looks at 20,000 runs, and can have fewer items than limit, or none, and a nextCursor.",
	}, rs.listRuns)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs/{id}", ID: "get-run", Large: true, Tag: "runs", Summary: "One run with its attempts",
		Description: "With input, output, progress, steps and the settings that it runs with.",
	}, rs.getRun)
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/runs/{id}/cancel", ID: "cancel-run", Tag: "runs", Summary: "Stop a run",
		Description: "One that has not started ends at once; a running handler is asked to stop.",
		Status:      http.StatusAccepted, Errors: []int{http.StatusConflict},
	}, rs.cancelRun)
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/runs/{id}/retry", ID: "retry-run", Tag: "runs", Summary: "Run a finished run again",
		Description: "A new run of the job's newest revision, with the input of the old run unless another one is given. Of a run with shards all of them, or only those that did not succeed.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
		Also: map[int]string{http.StatusOK: "The Idempotency-Key was seen before with the same body: the run that it began"},
	}, rs.retryRun)
	rs.registerParts(server)
}

func (rs *runs) listRuns(ctx context.Context, id auth.Identity, in *listRunsInput) (*web.PageOutput[Run], error) {
	at, err := web.DecodeCursor(in.Cursor, "runs")
	if err != nil {
		return nil, err
	}
	var r reader
	p := store.ListExecutionsParams{
		Tenant: id.Tenant, Within: id.Reach, Cause: domain.Cause(in.Cause), JobQuery: in.Q, Name: in.Name, Label: in.Label, Owner: in.Owner, Error: in.Error, Before: domain.ExecutionID(at.ID), Limit: in.Limit + 1,
		Job:      web.OptionalID[domain.JobID](&r.Reader, "query.jobId", in.JobID),
		Executor: web.OptionalID[domain.ExecutorID](&r.Reader, "query.executorId", in.ExecutorID),
		Instance: web.OptionalID[domain.InstanceID](&r.Reader, "query.instanceId", in.InstanceID),
		From:     r.Instant("query.from", &in.From), To: r.Instant("query.to", &in.To),
	}
	r.Filter("query.label", in.Label)
	for name := range strings.SplitSeq(in.State, ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		s, ok := domain.ParseState(name)
		if !ok {
			r.NoneOf("query.state", name, stateNames())
		}
		p.States = append(p.States, s)
	}
	if in.Fingerprint != "" {
		var ok bool
		if p.Fingerprint, ok = domain.ParseFingerprint(in.Fingerprint); !ok || p.Fingerprint == 0 {
			r.Fail("query.fingerprint", in.Fingerprint, "is no fingerprint of an error: 16 hex digits")
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	var until domain.ExecutionID
	p.Until = &until
	rows, err := rs.store.ListExecutions(ctx, p)
	out, err := web.RowsPage(rows, err, in.Limit, runOf, func(last *store.ExecutionView) web.Cursor {
		return web.Cursor{List: "runs", ID: int64(last.ID)}
	})
	if err != nil {
		return nil, err
	}
	if until != 0 {
		out.Body.NextCursor = web.Cursor{List: "runs", ID: int64(until)}.Encode()
	}
	return out, web.AddTotal(in.TotalParam, out, func() (int, bool, error) { return counted(rs.store.TotalExecutions(ctx, p)) })
}

func (rs *runs) getRun(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body RunDetail }, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, rs.store.FindExecution)
	if err != nil {
		return nil, err
	}
	attempts, err := rs.store.ListAttempts(ctx, id.Tenant, v.ID)
	if err != nil {
		return nil, err
	}
	cutOldAttempts(attempts)
	spec, err := rs.store.JobSpec(ctx, id.Tenant, v.JobID, v.Revision)
	if err != nil {
		return nil, err
	}
	shown := shownTo(id, specOf(spec))
	if err := (callback.Naming{Executors: rs.store, Handlers: rs.handlers}).Fill(ctx, id.Tenant, shown.callbacks()...); err != nil {
		return nil, err
	}
	out := RunDetail{Run: runOf(&v), Input: web.RawOrNull(v.Input), Output: web.RawOrNull(v.Output), JobSpec: &shown}
	if v.Part != domain.PartAfter {
		out.Input = web.RawOrNull(spec.InputOf(&v.Execution))
	}
	if out.Attempts, err = rs.attemptsOf(ctx, v, attempts); err != nil {
		return nil, err
	}
	if out.Progress, err = progressOf(ctx, rs.store, v); err != nil {
		return nil, err
	}
	if out.Steps, err = rs.stepsOf(ctx, v); err != nil {
		return nil, err
	}
	if out.Version, err = rs.versionOf(ctx, v); err != nil {
		return nil, err
	}
	return &struct{ Body RunDetail }{out}, nil
}

// attemptTexts bounds the errors and stacks of the attempts that one answer has whole, in
// bytes. Those of older attempts are cut to oldAttemptText.
const (
	attemptTexts   = 64 << 10
	oldAttemptText = 1 << 10
)

// cutOldAttempts keeps the texts of the newest attempts.
func cutOldAttempts(all []domain.Attempt) {
	for i, total := len(all)-1, 0; i >= 0; i-- {
		if total += len(all[i].Error) + len(all[i].Stack); total > attemptTexts {
			all[i].Error, all[i].Stack = strings.ToValidUTF8(all[i].Error[:min(len(all[i].Error), oldAttemptText)], ""), ""
		}
	}
}

// attemptsOf names the instances of attempts.
func (rs *runs) attemptsOf(ctx context.Context, v store.ExecutionView, all []domain.Attempt) ([]Attempt, error) {
	names := map[domain.InstanceID]string{v.Instance: v.InstanceName}
	out := make([]Attempt, 0, len(all))
	for _, at := range all {
		name, known := names[at.Instance]
		if !known && at.Instance != 0 {
			i, err := rs.store.FindInstance(ctx, v.TenantID, at.Instance)
			if err != nil && !domain.Is(err, domain.CodeNotFound) {
				return nil, err
			}
			name = i.Name
			names[at.Instance] = name
		}
		out = append(out, Attempt{
			Number: at.Number, Fence: at.Fence, Instance: instanceRef(at.Instance, name), State: at.State.String(),
			OfferedAt: web.InstantOrNull(at.OfferedAt), GrantedAt: web.InstantOrNull(at.GrantedAt),
			StartedAt: web.InstantOrNull(at.StartedAt), FinishedAt: web.InstantOrNull(at.FinishedAt),
			ErrorKind: at.ErrorKind, Error: at.Error, Stack: at.Stack, Message: string(at.Reason),
		})
	}
	return out, nil
}

func (rs *runs) cancelRun(ctx context.Context, id auth.Identity, in *cancelRunInput) (*struct{ Body Run }, error) {
	eid, err := domain.ParseID[domain.ExecutionID](in.ID)
	if err != nil {
		return nil, err
	}
	message := cancelledBy(id, "")
	if in.Body != nil {
		message = cancelledBy(id, in.Body.Reason)
	}
	if err := rs.cancel(ctx, id, eid, message); err != nil {
		return nil, err
	}
	v, err := rs.store.FindExecution(ctx, id.Tenant, eid)
	return web.AnswerOf(v, err, runOf)
}

// cancelledBy says who cancels, and why.
func cancelledBy(id auth.Identity, reason string) string {
	message := "cancelled by " + id.Actor()
	if reason = strings.TrimSpace(reason); reason != "" {
		message += ": " + reason
	}
	return message
}

// cancel ends a run, or lets its instance hear that it is to end.
func (rs *runs) cancel(ctx context.Context, id auth.Identity, run domain.ExecutionID, message string) error {
	e, err := rs.store.RequestCancel(ctx, id.Tenant, run, domain.ReasonKilled, message)
	if err != nil {
		return err
	}
	if e.State == domain.Cancelling {
		rs.runner.SendCancel(e)
	}
	rs.log.Info("run cancelled", "tenant_id", id.Tenant, "execution_id", run, "state", e.State.String(), "by", id.Actor())
	return nil
}

// again makes the run that repeats one that has ended.
func (rs *runs) again(ctx context.Context, id auth.Identity, old *store.ExecutionView, onlyFailed bool) (e domain.Execution, v store.JobView, err error) {
	if !old.State.Terminal() {
		return e, v, domain.Errorf(domain.CodeConflict, "the run is still %s; cancel it or wait for its end", old.State)
	}
	if v, err = rs.store.FindJob(ctx, id.Tenant, old.JobID); err != nil {
		return e, v, err
	}
	e = rs.starter.newRun(id, v, rs.now())
	e.Cause, e.Input, e.Note = domain.CauseRetry, old.Input, "retry of run "+old.ID.String()
	if own, is := rs.handlers.Find(v.Spec.Handler); is && v.ExecutorName == domain.BuiltInExecutor && own.Repeat != nil && old.State != domain.Succeeded {
		e.Input = own.Repeat(v.Spec.InputOf(&e), old.ID)
	}
	if old.IsPart() || onlyFailed {
		err = rs.pickShards(ctx, &e, &v.Spec, *old)
	}
	return e, v, err
}

func (rs *runs) retryRun(ctx context.Context, id auth.Identity, in *retryRunInput) (*runOutput, error) {
	old, err := web.ByID(ctx, id.Tenant, in.ID, rs.store.FindExecution)
	if err != nil {
		return nil, err
	}
	e, v, err := rs.again(ctx, id, &old, in.Body != nil && in.Body.OnlyFailed)
	if err != nil {
		return nil, err
	}
	if in.IdempotencyKey != "" {
		asked := []any{"retry", old.ID.String(), false, nil}
		if in.Body != nil {
			asked[2], asked[3] = in.Body.OnlyFailed, sameOrder(in.Body.Input)
		}
		e.OccurrenceKey = requestKey(in.IdempotencyKey, asked)
	}
	if in.Body != nil && len(in.Body.Input) > 0 {
		var r reader
		e.Input = r.JSON("body.input", in.Body.Input)
		if err := r.Err(); err != nil {
			return nil, err
		}
		if err := catalogue.CheckRunInput(ctx, rs.store, v, e.Input, in.AllowUnfitInput); err != nil {
			return nil, err
		}
	}
	if err := rs.maintenance.checkMaintenance(ctx, &e, in.During); err != nil {
		return nil, err
	}
	return rs.starter.start(ctx, e, 0)
}

// Progress is how far a run is, as its handler says.
type Progress struct {
	Percent   float64 `json:"percent" minimum:"0" maximum:"100" doc:"How far it is, in percent"`
	Message   string  `json:"message" doc:"What it does, as the handler says; may be empty"`
	UpdatedAt string  `json:"updatedAt" format:"date-time" doc:"When the handler said so"`
}

// Step is a part of the handler that is done, and is not done again by later
// attempts.
type Step struct {
	Name     string          `json:"name" doc:"Its name, unique in the run"`
	Output   json.RawMessage `json:"output" doc:"What it gave; null: nothing"`
	StoredAt string          `json:"storedAt" format:"date-time" doc:"When it was stored"`
}

// progressOf returns nil when the run's newest attempt has told nothing.
func progressOf(ctx context.Context, from store.Runs, v store.ExecutionView) (*Progress, error) {
	if v.Fence == 0 {
		return nil, nil
	}
	p, err := from.FindProgress(ctx, v.TenantID, v.ID)
	if domain.Is(err, domain.CodeNotFound) || err == nil && p.Fence != v.Fence {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &Progress{Percent: float64(p.Permille) / 10, Message: p.Message, UpdatedAt: web.Instant(p.UpdatedAt)}, nil
}

func (rs *runs) stepsOf(ctx context.Context, v store.ExecutionView) ([]Step, error) {
	list, err := rs.store.ListSteps(ctx, v.TenantID, v.ID)
	if err != nil {
		return nil, err
	}
	out := make([]Step, len(list))
	for i, s := range list {
		out[i] = Step{Name: s.Name, Output: web.RawOrNull(s.Output), StoredAt: web.Instant(s.StoredAt)}
	}
	return out, nil
}

// stateNames are the states of runs, live ones first.
func stateNames() []string {
	names := make([]string, len(domain.States))
	for i, s := range domain.States {
		names[i] = s.String()
	}
	return names
}
