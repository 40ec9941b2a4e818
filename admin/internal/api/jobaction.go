package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

type pauseInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body *struct {
		Note string `json:"note,omitempty" maxLength:"1024" doc:"Why; shown beside the job. A job that somebody has paused already keeps that pause: who, when and why"`
	} `required:"false"`
}

type resumeInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Mine bool   `query:"mine" doc:"Resume the job only if the caller paused it; else the answer shows who did, and the job stays paused"`
}

// RunRequest is a wish for a run.
type RunRequest struct {
	Input      json.RawMessage `json:"input,omitempty" doc:"Default: the job's own"`
	InstanceID string          `json:"instanceId,omitempty" doc:"Prefer this instance for the first attempt"`
	Note       string          `json:"note,omitempty" maxLength:"1024" doc:"Why; shown beside the run"`
	At         *string         `json:"at,omitempty" format:"date-time" doc:"Not before this instant"`
	After      string          `json:"after,omitempty" doc:"Not before this much time has passed, e.g. 30m"`
}

type runJobInput struct {
	ID              string      `path:"id" doc:"Id of what the address names, a decimal string"`
	Wait            string      `query:"wait" doc:"Wait this long for the end, at most 5m; default: answer at once"`
	AllowUnfitInput bool        `query:"allowUnfitInput" doc:"Accept an input that does not fit what is registered of the handler"`
	During          bool        `query:"duringMaintenance" doc:"Start it although nothing is to start because of maintenance; for people: runs that an API key asks for wait"`
	IdempotencyKey  string      `header:"Idempotency-Key" maxLength:"255" doc:"The same key with the same body on the same job gives the same run"`
	Body            *RunRequest `required:"false"`
}

type runOutput struct {
	Status int
	Waited string `header:"X-Wait" doc:"timed-out when the run had not finished in time"`
	Body   StartedRun
}

// StartedRun is the answer to whoever asked for a run.
type StartedRun struct {
	Run
	Output json.RawMessage `json:"output,omitempty" doc:"What the handler gave, once the run has ended"`
}

// Bounds of waiting and delaying.
const (
	maxRunWait  = 5 * time.Minute
	maxRunDelay = 3653 * 24 * time.Hour // a wish beyond it is taken for a mistake
)

func (a *API) registerJobActions() {
	web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/pause", ID: "pause-job", Tag: "jobs", Summary: "Stop a job's schedule",
		Description: "After the answer no run of the schedule is let start; one that was let start just before may begin within the next second. Attempts that run go on.",
	}, func(ctx context.Context, id auth.Identity, in *pauseInput) (*jobOutput, error) {
		note := ""
		if in.Body != nil {
			note = strings.TrimSpace(in.Body.Note)
		}
		return a.setJobState(ctx, id, in.ID, store.SetJobStateParams{State: domain.JobPaused, Note: note})
	})
	web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/resume", ID: "resume-job", Tag: "jobs", Summary: "Start a job's schedule again", Errors: []int{http.StatusConflict},
		Description: "It goes on with the first fire time from now.",
	}, func(ctx context.Context, id auth.Identity, in *resumeInput) (*jobOutput, error) {
		return a.setJobState(ctx, id, in.ID, store.SetJobStateParams{State: domain.JobEnabled, Mine: in.Mine})
	})
	web.Register(a.Server, web.May(domain.PermOperate), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/run", ID: "run-job", Tag: "jobs", Summary: "Run a job now, or once later",
		Description: "201 with the run; with wait the finished one, or 202 with the header X-Wait: timed-out and code wait_timed_out. 200 when the Idempotency-Key was seen before with the same body, 422 idempotency_key_reused with another one.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
		Also: map[int]string{
			http.StatusOK:       "The Idempotency-Key was seen before with the same body: the run that it began",
			http.StatusAccepted: "The run has not ended within the wait; ask for it again by its id",
		},
	}, a.runJob)
}

func (a *API) setJobState(ctx context.Context, id auth.Identity, text string, p store.SetJobStateParams) (*jobOutput, error) {
	jid, err := domain.ParseID[domain.JobID](text)
	if err != nil {
		return nil, err
	}
	p.Tenant, p.ID, p.By, p.Next, p.Plan = id.Tenant, jid, id.Actor(), timing.Next, a.deps.Plan
	v, err := a.deps.Store.SetJobState(ctx, p)
	if err != nil {
		return nil, err
	}
	a.deps.JobsChanged()
	a.log.Info("job state changed", "tenant_id", id.Tenant, "job_id", jid, "job", v.Spec.Name, "state", v.State.String(), "by", id.Actor())
	if p.State == domain.JobDeleted {
		return nil, nil
	}
	return a.jobAnswer(ctx, id, v)
}

func (a *API) runJob(ctx context.Context, id auth.Identity, in *runJobInput) (*runOutput, error) {
	v, err := a.job(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	if in.Body == nil {
		in.Body = &RunRequest{}
	}
	executor, err := a.deps.Store.FindExecutor(ctx, id.Tenant, v.Executor)
	if err == nil {
		err = takesRuns(executor)
	}
	if err != nil {
		return nil, err
	}
	e, wait, err := a.readRun(ctx, id, v, in)
	if err == nil {
		err = a.checkMaintenance(ctx, &e, in.During)
	}
	if err != nil {
		return nil, err
	}
	return a.start(ctx, e, wait)
}

// readRun makes the execution that was asked for.
func (a *API) readRun(ctx context.Context, id auth.Identity, v store.JobView, in *runJobInput) (domain.Execution, time.Duration, error) {
	var r reader
	now := a.deps.Now()
	wait := r.Duration("query.wait", in.Wait, 0)
	if wait < 0 || wait > maxRunWait {
		r.Fail("query.wait", in.Wait, "must be from 0s to 5m")
	}
	fireAt := now
	delay := r.Duration("body.after", in.Body.After, 0)
	at := r.Instant("body.at", in.Body.At)
	switch {
	case delay != 0 && !at.IsZero():
		r.Fail("body.after", in.Body.After, "at and after exclude each other")
	case delay < 0 || delay > maxRunDelay:
		r.Fail("body.after", in.Body.After, "must be from 0s to ten years (87672h)")
	case at.After(now.Add(maxRunDelay)):
		r.Fail("body.at", *in.Body.At, "must lie within the next ten years")
	case at.After(now):
		fireAt = at
	default:
		fireAt = now.Add(delay)
	}
	if domain.HasControl(strings.ReplaceAll(in.Body.Note, "\n", " ")) {
		r.Fail("body.note", nil, "must not contain control characters")
	}
	input := r.JSON("body.input", in.Body.Input)
	if err := r.Err(); err != nil {
		return domain.Execution{}, 0, err
	}
	if err := catalogue.CheckRunInput(ctx, a.deps.Store, v, input, in.AllowUnfitInput); err != nil {
		return domain.Execution{}, 0, err
	}
	e := a.newRun(id, v, fireAt)
	e.Input, e.Note = input, strings.TrimSpace(in.Body.Note)
	if in.IdempotencyKey != "" {
		asked := *in.Body
		asked.Input = nil
		e.OccurrenceKey = requestKey(in.IdempotencyKey, []any{asked, sameOrder(in.Body.Input)})
	}
	if in.Body.InstanceID != "" {
		instance, err := a.preferred(ctx, id, v, in.Body.InstanceID)
		if err != nil {
			return e, 0, err
		}
		e.Instance = instance
	}
	return e, wait, nil
}

// newRun is a due execution of the job's newest revision.
func (a *API) newRun(id auth.Identity, v store.JobView, fireAt time.Time) domain.Execution {
	eid := domain.ExecutionID(a.deps.NewID())
	cause := domain.CauseManual
	if id.Kind == auth.KindAPIKey {
		cause = domain.CauseAPI
	}
	dispatch := v.Spec.DispatchTimeout
	if dispatch <= 0 {
		dispatch = domain.DefaultDispatchTimeout
	}
	fireAt = fireAt.UTC().Truncate(time.Millisecond)
	return domain.Execution{
		ID: eid, TenantID: id.Tenant, JobID: v.ID, Revision: v.Revision, Executor: v.Executor, Partition: v.Partition,
		Cause: cause, FireAt: fireAt, OccurrenceKey: "run:" + eid.String(), State: domain.Due, RequestedBy: id.Actor(),
		MaxAttempts: max(1, v.Spec.Retry.MaxAttempts), NotBefore: fireAt, WakeAt: domain.FirstWake(a.deps.Now(), fireAt),
		ExpireAt: fireAt.Add(dispatch), LogLines: -1,
	}
}

// preferred finds the instance for the first attempt. It has to be online.
func (a *API) preferred(ctx context.Context, id auth.Identity, v store.JobView, text string) (domain.InstanceID, error) {
	iid, err := domain.ParseID[domain.InstanceID](text)
	var i domain.Instance
	if err == nil {
		i, err = a.deps.Store.FindInstance(ctx, id.Tenant, iid)
	}
	if domain.Is(err, domain.CodeNotFound) {
		return 0, web.NotThere("body.instanceId", "instance", text)
	}
	if err != nil {
		return 0, err
	}
	if i.Executor != v.Executor {
		return 0, domain.Invalid("body.instanceId", "is an instance of another executor than the job's")
	}
	if state := instanceState(i, a.deps.Now()); state != "online" {
		return 0, domain.Errorf(domain.CodeExecutorOffline, "the instance %q is %s", i.Name, state)
	}
	return i.ID, nil
}

// start writes the run, sends it on its way, and waits for it if asked to.
func (a *API) start(ctx context.Context, e domain.Execution, wait time.Duration) (*runOutput, error) {
	e.Trace = web.RequestOf(ctx).Trace
	run, created, err := a.deps.Store.CreateExecution(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := checkReplay(e.OccurrenceKey, run.OccurrenceKey); err != nil && !created {
		return nil, err
	}
	out := &runOutput{Status: http.StatusCreated}
	if !created {
		out.Status = http.StatusOK
	} else {
		if run.Instance == 0 {
			run.Instance = e.Instance
		}
		a.deps.Runner.Submit(run)
		a.log.Info("run requested", "tenant_id", run.TenantID, "job_id", run.JobID, "execution_id", run.ID, "cause", string(run.Cause), "by", run.RequestedBy)
	}
	if wait > 0 {
		if err := a.await(ctx, run, wait, out); err != nil {
			return nil, err
		}
	}
	view, err := a.deps.Store.FindExecution(ctx, run.TenantID, run.ID)
	if err != nil {
		return nil, err
	}
	code := out.Body.Code
	out.Body.Run = runOf(&view)
	if len(view.Output) > 0 {
		out.Body.Output = web.RawOrNull(view.Output)
	}
	out.Body.Code = code
	return out, nil
}

func (a *API) await(ctx context.Context, run domain.Execution, wait time.Duration, out *runOutput) error {
	waitCtx, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	_, err := a.deps.Runner.WaitFinished(waitCtx, run.TenantID, run.ID)
	switch {
	case err == nil:
		return nil
	case domain.Is(err, domain.CodeWaitTimedOut) && ctx.Err() == nil:
		out.Status, out.Waited = http.StatusAccepted, "timed-out"
		out.Body.Code = string(domain.CodeWaitTimedOut)
		return nil
	default:
		return err
	}
}

var errWaitOver = errors.New("the time to wait for the run is over")

// requestKey is the stored form of an Idempotency-Key of the request: digests of
// fixed length, apart from the keys that we make. asked is what the request
// says, without what only concerns its answer.
func requestKey(key string, asked any) string {
	raw, err := json.Marshal(asked)
	if err != nil {
		panic("api: " + err.Error()) // texts, numbers and JSON that was read already
	}
	body := sha256.Sum256(raw)
	sum := sha256.Sum256([]byte(key))
	return domain.RequestKey(base64.RawURLEncoding.EncodeToString(sum[:]), base64.RawURLEncoding.EncodeToString(body[:16]))
}

// sameOrder is the JSON value with the members of its objects in one order, so
// that a client that writes them in another one asks for the same.
func sameOrder(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil // nothing was sent
	}
	return v
}

// checkReplay refuses an Idempotency-Key that came with another request before.
func checkReplay(asked, stored string) error {
	_, now := domain.SplitRequestKey(asked)
	_, before := domain.SplitRequestKey(stored)
	if now == before {
		return nil
	}
	return &domain.Error{
		Code:    domain.CodeKeyReused,
		Message: "header.Idempotency-Key: came with another request before; send the same body again, or a new key",
		Fields: []domain.FieldError{{
			Location: "header.Idempotency-Key", Message: "came with another request before", Position: -1,
			Hint: "the same body again, or a new key",
		}},
	}
}

type createJobsInput struct {
	AllowUnknownHandler bool `query:"allowUnknownHandler" doc:"Accept handlers that no instance has registered yet"`
	AllowUnfitInput     bool `query:"allowUnfitInput" doc:"Accept inputs that do not fit what is registered of the handlers"`
	Body                struct {
		Items []JobWrite `json:"items" minItems:"1" maxItems:"1000" doc:"The body may have 1 MiB in all"`
	}
}

// JobBatch is what became of many jobs.
type JobBatch struct {
	Created int            `json:"created" doc:"How many jobs were created"`
	Failed  int            `json:"failed" doc:"How many were refused"`
	Items   []JobBatchItem `json:"items" doc:"In the order of the request"`
}

// JobBatchItem is what became of one of them.
type JobBatchItem struct {
	Name    string       `json:"name" doc:"Name of the job, as in the request"`
	Status  int          `json:"status" doc:"201, or the problem's"`
	ID      string       `json:"id,omitempty" doc:"With 201"`
	Problem *web.Problem `json:"problem,omitempty" doc:"Why it was not created; locations are those of the job alone, such as body.schedule.expr"`
}

func (a *API) createJobs(ctx context.Context, id auth.Identity, in *createJobsInput) (*struct{ Body JobBatch }, error) {
	reading := &API{deps: a.deps, log: a.log}
	reading.deps.Store = &remembering{Store: a.deps.Store, executors: map[string]domain.Executor{}, handlers: map[handlerKey]foundHandler{}}
	items := make([]JobBatchItem, len(in.Body.Items))
	var jobs []store.NewJob
	var at []int // of each in items
	for i := range in.Body.Items {
		items[i].Name = in.Body.Items[i].Name
		job, err := reading.newJob(ctx, id, &in.Body.Items[i], catalogue.Lenient{Handler: in.AllowUnknownHandler, Input: in.AllowUnfitInput})
		if err != nil {
			a.refuseItem(ctx, &items[i], err)
			continue
		}
		jobs, at = append(jobs, job), append(at, i)
	}
	for i, err := range a.deps.Store.CreateJobs(ctx, id.Tenant, jobs) {
		item := &items[at[i]]
		if err != nil {
			a.refuseItem(ctx, item, err)
			continue
		}
		item.Status, item.ID, item.Name = http.StatusCreated, jobs[i].ID.String(), jobs[i].Spec.Name
	}
	out := JobBatch{Items: items}
	for i := range items {
		if items[i].Problem == nil {
			out.Created++
		}
	}
	out.Failed = len(items) - out.Created
	if out.Created > 0 {
		a.deps.JobsChanged()
		a.log.Info("jobs created", "tenant_id", id.Tenant, "count", out.Created, "refused", out.Failed, "by", id.Actor())
	}
	return &struct{ Body JobBatch }{out}, nil
}

func (a *API) refuseItem(ctx context.Context, item *JobBatchItem, err error) {
	item.Problem = a.Problem(ctx, err)
	item.Status = item.Problem.Status
}

// remembering asks once for what many jobs of one request name. It is used by
// one goroutine.
type remembering struct {
	Store
	executors map[string]domain.Executor // by id, or by "name:" and name
	handlers  map[handlerKey]foundHandler
}

type handlerKey struct {
	executor domain.ExecutorID
	name     string
}

type foundHandler struct {
	handler domain.Handler
	missing error // CodeNotFound
}

func (r *remembering) FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	return once(r.executors, id.String(), func() (domain.Executor, error) { return r.Store.FindExecutor(ctx, tenant, id) })
}

func (r *remembering) FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	return once(r.executors, "name:"+name, func() (domain.Executor, error) { return r.Store.FindExecutorByName(ctx, tenant, name) })
}

func (r *remembering) FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error) {
	found, err := once(r.handlers, handlerKey{executor, name}, func() (found foundHandler, err error) {
		if found.handler, err = r.Store.FindHandler(ctx, tenant, executor, name); domain.Is(err, domain.CodeNotFound) {
			found.missing, err = err, nil
		}
		return found, err
	})
	if err == nil {
		err = found.missing
	}
	return found.handler, err
}

// once calls ask unless the answer is known already.
func once[K comparable, V any](known map[K]V, key K, ask func() (V, error)) (V, error) {
	if v, ok := known[key]; ok {
		return v, nil
	}
	v, err := ask()
	if err == nil {
		known[key] = v
	}
	return v, err
}
