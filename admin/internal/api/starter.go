package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

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

// starter begins runs on request.
type starter struct {
	// fixed after construction
	store interface {
		store.Jobs
		store.Executors
		store.Runs
		executionCreator
	}
	runner      Runner
	maintenance *maintenance
	newID       func() int64
	now         func() time.Time
	log         *slog.Logger
}

func (st *starter) register(server *web.Server) {
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/run", ID: "run-job", Tag: "jobs", Summary: "Run a job now, or once later",
		Description: "201 with the run; with wait the finished one, or 202 with the header X-Wait: timed-out and code wait_timed_out. 200 when the Idempotency-Key was seen before with the same body, 422 idempotency_key_reused with another one.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict},
		Also: map[int]string{
			http.StatusOK:       "The Idempotency-Key was seen before with the same body: the run that it began",
			http.StatusAccepted: "The run has not ended within the wait; ask for it again by its id",
		},
	}, st.runJob)
}

func (st *starter) runJob(ctx context.Context, id auth.Identity, in *runJobInput) (*runOutput, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, st.store.FindJob)
	if err != nil {
		return nil, err
	}
	if in.Body == nil {
		in.Body = &RunRequest{}
	}
	if err := st.mayStart(ctx, v); err != nil {
		return nil, err
	}
	e, wait, err := st.readRun(ctx, id, v, in)
	if err == nil {
		err = st.maintenance.checkMaintenance(ctx, &e, in.During)
	}
	if err != nil {
		return nil, err
	}
	return st.start(ctx, e, wait)
}

// mayStart refuses runs of a job whose executor is disabled.
func (st *starter) mayStart(ctx context.Context, v store.JobView) error {
	executor, err := st.store.FindExecutor(ctx, v.TenantID, v.Executor)
	if err != nil {
		return err
	}
	return takesRuns(executor)
}

// readRun makes the execution that was asked for.
func (st *starter) readRun(ctx context.Context, id auth.Identity, v store.JobView, in *runJobInput) (domain.Execution, time.Duration, error) {
	var r reader
	now := st.now()
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
	if err := catalogue.CheckRunInput(ctx, st.store, v, input, in.AllowUnfitInput); err != nil {
		return domain.Execution{}, 0, err
	}
	e := st.newRun(id, v, fireAt)
	e.Input, e.Note = input, strings.TrimSpace(in.Body.Note)
	if in.IdempotencyKey != "" {
		asked := *in.Body
		asked.Input = nil
		e.OccurrenceKey = requestKey(in.IdempotencyKey, []any{asked, sameOrder(in.Body.Input)})
	}
	if in.Body.InstanceID != "" {
		instance, err := st.preferred(ctx, id, v, in.Body.InstanceID)
		if err != nil {
			return e, 0, err
		}
		e.Instance = instance
	}
	return e, wait, nil
}

// newRun is a due execution of the job's newest revision.
func (st *starter) newRun(id auth.Identity, v store.JobView, fireAt time.Time) domain.Execution {
	eid := domain.ExecutionID(st.newID())
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
		MaxAttempts: max(1, v.Spec.Retry.MaxAttempts), NotBefore: fireAt, WakeAt: domain.FirstWake(st.now(), fireAt),
		ExpireAt: fireAt.Add(dispatch), LogLines: -1,
	}
}

// preferred finds the instance for the first attempt. It has to be online.
func (st *starter) preferred(ctx context.Context, id auth.Identity, v store.JobView, text string) (domain.InstanceID, error) {
	iid, err := domain.ParseID[domain.InstanceID](text)
	var i domain.Instance
	if err == nil {
		i, err = st.store.FindInstance(ctx, id.Tenant, iid)
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
	if state := instanceState(i, st.now()); state != "online" {
		return 0, domain.Errorf(domain.CodeExecutorOffline, "the instance %q is %s", i.Name, state)
	}
	return i.ID, nil
}

// start writes the run, sends it on its way, and waits for it if asked to.
func (st *starter) start(ctx context.Context, e domain.Execution, wait time.Duration) (*runOutput, error) {
	e.Trace = web.RequestOf(ctx).Trace
	run, created, err := st.begin(ctx, e)
	if err != nil {
		return nil, err
	}
	if err := checkReplay(e.OccurrenceKey, run.OccurrenceKey); err != nil && !created {
		return nil, err
	}
	out := &runOutput{Status: http.StatusCreated}
	if !created {
		out.Status = http.StatusOK
	}
	if wait > 0 {
		if err := st.await(ctx, run, wait, out); err != nil {
			return nil, err
		}
	}
	view, err := st.store.FindExecution(ctx, run.TenantID, run.ID)
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

// begin writes the run and sends it on its way, unless its key has another one already.
func (st *starter) begin(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	if run, created, err = st.store.CreateExecution(ctx, e); err != nil || !created {
		return run, false, err
	}
	if run.Instance == 0 {
		run.Instance = e.Instance
	}
	st.runner.Submit(run)
	st.log.Info("run requested", "tenant_id", run.TenantID, "job_id", run.JobID, "execution_id", run.ID, "cause", string(run.Cause), "by", run.RequestedBy)
	return run, true, nil
}

func (st *starter) await(ctx context.Context, run domain.Execution, wait time.Duration, out *runOutput) error {
	waitCtx, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	_, err := st.runner.WaitFinished(waitCtx, run.TenantID, run.ID)
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
