package api

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/forecast"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

type jobOutput struct {
	ETag string `header:"ETag" doc:"The revision in quotes"`
	Body Job
}

type listJobsInput struct {
	web.PageParams
	web.TotalParam
	JobFilter
	JobStateParam
	Kind       string `query:"kind" enum:"job,call,callback,timer,all" default:"job" doc:"job: those of people and code; call, callback, timer: those that the server has made for calls, callbacks and timers of handlers; all of them"`
	NeverFires bool   `query:"neverFires" doc:"Only enabled jobs with a schedule that has no fire left. One whose calendars exclude all that is left shows neverFires too and is not found by this"`
	Recent     int    `query:"recent" minimum:"1" maximum:"60" default:"10" doc:"How many of its newest runs each job has, at most; with limit at most 4,000 for a page"`
	Sort       string `query:"sort" enum:"name,nextFireAt,updatedAt,failures,lateness,p95" default:"name" doc:"By name, the next fire time, or the newest change first. Or by the last 7 days, the highest first: runs that failed, timed out or were lost, and the 95th percentiles of how late runs started and how long they took. These are some seconds old, and jobs without a run in that time come last"`
}

type getJobInput struct {
	ID     string `path:"id" doc:"Id of what the address names, a decimal string"`
	Recent int    `query:"recent" minimum:"1" maximum:"60" default:"10" doc:"How many of its newest runs it has, at most"`
}

type createJobInput struct {
	AllowUnknownHandler bool `query:"allowUnknownHandler" doc:"Accept a handler that no instance has registered yet"`
	AllowUnfitInput     bool `query:"allowUnfitInput" doc:"Accept an input that does not fit what is registered of the handler"`
	Body                JobWrite
}

type updateJobInput struct {
	ID                  string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch             string `header:"If-Match" doc:"The revision that was edited, in quotes, as in ETag; * for any"`
	AllowUnknownHandler bool   `query:"allowUnknownHandler" doc:"Accept a handler that no instance has registered yet"`
	AllowUnfitInput     bool   `query:"allowUnfitInput" doc:"Accept an input that does not fit what is registered of the handler"`
	Body                JobWrite
}

// jobStore has jobs, and the nouns that their specs name.
type jobStore interface {
	store.Jobs
	store.Totals
	store.Executors
	store.Calendars
	store.Statistics
	builtin.Store
}

// jobs are made, changed, paused and listed.
type jobs struct {
	// fixed after construction
	store       jobStore
	forecast    *forecast.Forecaster
	secrets     web.Sealer
	handlers    nodehandler.List
	newID       func() int64
	now         func() time.Time
	plan        store.PlanFunc
	jobsChanged func()
	problem     func(ctx context.Context, err error) *web.Problem
	log         *slog.Logger
}

func (js *jobs) register(server *web.Server) {
	js.registerStates(server)
	js.registerSchedules(server)
	js.registerOverdue(server)
	js.registerNamed(server)
	jobDocuments{js}.register(server)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs", ID: "list-jobs", Large: true, Tag: "jobs", Summary: "List jobs",
		Description: "Without their inputs. Deleted ones are not listed.",
	}, js.listJobs)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/counts", ID: "count-jobs", Tag: "jobs", Summary: "How many jobs fail, are late, are paused or never fire",
		Description: "Of a filter of the list of jobs. Each count is the length of the list with that state. What ended in the last seconds may be missing.",
	}, js.countJobs)
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs", ID: "create-job", Computes: true, Tag: "jobs", Summary: "Create a job",
		Description: "With a schedule it fires from now on, unless state is paused. A handler that no instance has registered, and an input that does not fit its schema, are refused unless the query allows them.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict, http.StatusNotFound},
	}, js.createJob)
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/batch", ID: "create-jobs", Computes: true, Tag: "jobs", Summary: "Create many jobs",
		Description: "Each job gets its own answer, as if it had been sent to POST /jobs; those that are created stay, whatever becomes of the others." +
			" A body that does not fit this description is refused whole.",
		Errors: []int{http.StatusUnprocessableEntity},
	}, js.createJobs)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}", ID: "get-job", Tag: "jobs", Summary: "One job",
		Description: "The newest revision, with its next fire time and its newest run. The ETag is the revision, for update-job.",
	}, func(ctx context.Context, id auth.Identity, in *getJobInput) (*jobOutput, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
		if err != nil {
			return nil, err
		}
		return js.getJob(ctx, id, v, in.Recent)
	})
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/jobs/{id}", ID: "update-job", Computes: true, Tag: "jobs",
		Summary: "Replace a job's settings", Description: "Makes a new revision. Fires planned from the old one are taken back; attempts that run go on.",
		Errors: []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, js.updateJob)
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/jobs/{id}", ID: "delete-job", Tag: "jobs", Summary: "Delete a job",
		Description: "Its runs stay readable, and it can be restored for 30 days. One that the code of the executor owns cannot be deleted while it is declared. Another one that code declares is not created by it again, until somebody creates a job of the name it is declared by.",
		Status:      http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{}, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
		if err != nil {
			return nil, err
		}
		if v.Declared.LocksConsole() {
			return nil, errOwnedByCode(v, "remove the declaration there, or pause the job here")
		}
		_, err = js.setJobState(ctx, id, in.ID, store.SetJobStateParams{State: domain.JobDeleted})
		return nil, err
	})
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/revisions", ID: "list-revisions", Large: true, Tag: "jobs",
		Summary:     "A job's revisions, newest first",
		Description: "Each with the whole settings of the job then.",
	}, js.listRevisions)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/events", ID: "list-job-events", Large: true, Tag: "jobs",
		Summary:     "What became of a job, newest first",
		Description: "When it was made, edited, paused and resumed, by whom and why. What an edit changed is in its revisions. The newest thousand are kept.",
	}, js.listJobEvents)
}

// jobAnswer adds what is asked from elsewhere.
func jobAnswer(ctx context.Context, from callback.Naming, id auth.Identity, v store.JobView) (*jobOutput, error) {
	online, err := from.Executors.CountHeard(ctx, v.TenantID, v.Executor)
	if err != nil {
		return nil, err
	}
	out := &jobOutput{ETag: web.ETag(v.Revision), Body: jobOf(id, v, online)}
	return out, from.Fill(ctx, v.TenantID, out.Body.callbacks()...)
}

func (js *jobs) names() callback.Naming {
	return callback.Naming{Executors: js.store, Handlers: js.handlers}
}

// getJob is jobAnswer with recent runs and what became of those of a week.
func (js *jobs) getJob(ctx context.Context, id auth.Identity, v store.JobView, recent int) (*jobOutput, error) {
	if recent != store.RecentRuns {
		var err error
		if v.Recent, err = js.store.ListRecentRuns(ctx, v.TenantID, v.ID, recent); err != nil {
			return nil, err
		}
	}
	now := js.now()
	sums, err := js.store.SumRuns(ctx, store.SumRunsParams{
		Tenant: v.TenantID, Kind: domain.StatisticsOfJob, Subjects: []int64{int64(v.ID)}, Step: domain.StepHour,
		From: now.Add(-7 * 24 * time.Hour).Truncate(time.Hour), To: now.Add(time.Hour).Truncate(time.Hour),
	})
	if err != nil {
		return nil, err
	}
	out, err := jobAnswer(ctx, js.names(), id, v)
	if err != nil {
		return nil, err
	}
	out.Body.Stats7d = jobStatsOf(sums)
	return out, nil
}

var jobKinds = map[string]domain.JobKind{"job": domain.JobPlain, "call": domain.JobCall, "callback": domain.JobCallback, "timer": domain.JobTimer}

func (js *jobs) listJobs(ctx context.Context, id auth.Identity, in *listJobsInput) (*web.PageOutput[Job], error) {
	list := "jobs/" + in.Sort
	at, err := web.DecodeCursor(in.Cursor, list)
	if err != nil {
		return nil, err
	}
	p, err := js.filter(ctx, id, &in.JobFilter)
	if err != nil {
		return nil, err
	}
	p.NeverFires, p.Sort, p.Limit, p.Kind, p.AllKinds = in.NeverFires, store.JobSort(in.Sort), in.Limit+1, jobKinds[in.Kind], in.Kind == "all"
	p.Recent = in.Recent
	if at.ID != 0 {
		p.Cursor = store.JobCursor{Name: at.Name, At: time.UnixMilli(at.At).UTC(), Rank: at.At, ID: domain.JobID(at.ID)}
	}
	if in.Limit*in.Recent > store.RecentRunsOfPage {
		var r reader
		r.Fail("query.recent", in.Recent, "times limit is %d, and at most %d runs come with a page: make one of them smaller", in.Limit*in.Recent, store.RecentRunsOfPage)
		return nil, r.Err()
	}
	in.choose(&p)
	rows, err := js.store.ListJobs(ctx, p)
	if err != nil {
		return nil, err
	}
	rows, more := web.Cut(rows, in.Limit)
	out, callbacks := web.OnePage(make([]Job, 0, len(rows))), []*callback.Callback{}
	online := onlineCounter{from: js.store}
	for i, v := range rows {
		n, err := online.of(ctx, v.TenantID, v.Executor)
		if err != nil {
			return nil, err
		}
		j := jobOf(id, v, n)
		j.Input = nil
		out.Body.Items = append(out.Body.Items, j)
		callbacks = append(callbacks, out.Body.Items[i].callbacks()...)
	}
	if err := js.names().Fill(ctx, id.Tenant, callbacks...); err != nil {
		return nil, err
	}
	if more {
		last := rows[len(rows)-1]
		c := web.Cursor{List: list, ID: int64(last.ID)}
		switch p.Sort {
		case store.SortByNextFire:
			c.At = last.NextFireAt.UnixMilli()
		case store.SortByUpdated:
			c.At = last.UpdatedAt.UnixMilli()
		case store.SortByFailures, store.SortByLateness, store.SortByP95:
			c.At, c.Name = last.Rank, last.Spec.Name
		default:
			c.Name = last.Spec.Name
		}
		out.Body.NextCursor = c.Encode()
	}
	return out, web.AddTotal(in.TotalParam, out, func() (int, bool, error) { return counted(js.store.TotalJobs(ctx, p)) })
}

func counted(t store.Total, err error) (count int, more bool, _ error) { return t.Count, t.More, err }

// filter reads a filter of jobs.
func (js *jobs) filter(ctx context.Context, id auth.Identity, in *JobFilter) (p store.ListJobsParams, err error) {
	var r reader
	r.Filter("query.label", in.Label)
	executor := web.OptionalID[domain.ExecutorID](&r.Reader, "query.executorId", in.ExecutorID)
	if err := r.Err(); err != nil {
		return p, err
	}
	within, err := js.reachNamed(ctx, id, in.Executor)
	return store.ListJobsParams{
		Tenant: id.Tenant, Within: within, Query: in.Q, Name: in.Name, Executor: executor, Handler: in.Handler, Label: in.Label, Owner: in.Owner,
	}, err
}

// onlineCounter asks once per executor.
type onlineCounter struct {
	from  store.Executors
	known map[domain.ExecutorID]int
}

func (o *onlineCounter) of(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (int, error) {
	if n, ok := o.known[executor]; ok {
		return n, nil
	}
	n, err := o.from.CountHeard(ctx, tenant, executor)
	if err != nil {
		return 0, err
	}
	if o.known == nil {
		o.known = map[domain.ExecutorID]int{}
	}
	o.known[executor] = n
	return n, nil
}

func (js *jobs) createJob(ctx context.Context, id auth.Identity, in *createJobInput) (*jobOutput, error) {
	job, err := js.newJob(ctx, id, &in.Body, catalogue.Lenient{Handler: in.AllowUnknownHandler, Input: in.AllowUnfitInput})
	if err != nil {
		return nil, err
	}
	v, err := js.store.CreateJob(ctx, job.Job, job.Next)
	if err != nil {
		return nil, err
	}
	js.jobsChanged()
	js.log.Info("job created", "tenant_id", id.Tenant, "job_id", v.ID, "job", v.Spec.Name, "by", id.Actor())
	return jobAnswer(ctx, js.names(), id, v)
}

// newJob reads a job that is to be created.
func (js *jobs) newJob(ctx context.Context, id auth.Identity, w *JobWrite, allow catalogue.Lenient) (store.NewJob, error) {
	spec, executor, err := js.readJob(ctx, id, w, domain.Job{}, allow)
	if err != nil {
		return store.NewJob{}, err
	}
	return js.freshJob(id, w, spec, executor.ID)
}

// freshJob is a job that is to be created. spec is w as it was read.
func (js *jobs) freshJob(id auth.Identity, w *JobWrite, spec domain.JobSpec, executor domain.ExecutorID) (out store.NewJob, err error) {
	now := js.now()
	jid := domain.JobID(js.newID())
	if spec.Alert.WebhookSecret, err = js.sealWebhook(id.Tenant, jid, w, nil); err != nil {
		return store.NewJob{}, err
	}
	state := domain.JobEnabled
	if w.State == "paused" {
		state = domain.JobPaused
	}
	return store.NewJob{Job: domain.Job{
		ID: jid, TenantID: id.Tenant, Executor: executor, Partition: domain.PartitionOf(jid), State: state,
		Source: domain.SourceConsole, Revision: 1, Spec: spec, CreatedAt: now, UpdatedAt: now,
		CreatedBy: id.Actor(), UpdatedBy: id.Actor(),
	}, Next: timing.Next}, nil
}

func (js *jobs) updateJob(ctx context.Context, id auth.Identity, in *updateJobInput) (*jobOutput, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
	if err != nil {
		return nil, err
	}
	revision, err := web.IfMatch(ctx, in.IfMatch)
	if err != nil {
		return nil, err
	}
	if revision != 0 && revision != v.Revision {
		return nil, js.revisionMismatch(ctx, id, v.ID)
	}
	spec, executor, err := js.readJob(ctx, id, &in.Body, v.Job, catalogue.Lenient{Handler: in.AllowUnknownHandler, Input: in.AllowUnfitInput})
	if err != nil {
		return nil, err
	}
	return js.replace(ctx, id, v, revision, &in.Body, spec, executor.ID)
}

// replace writes a new revision of a job. spec is w as it was read.
func (js *jobs) replace(ctx context.Context, id auth.Identity, v store.JobView, revision int64, w *JobWrite, spec domain.JobSpec, executor domain.ExecutorID) (out *jobOutput, err error) {
	p, err := js.newRevision(id, v, revision, w, spec, executor)
	if err != nil {
		return nil, err
	}
	was := v.ID
	v, err = js.store.UpdateJob(ctx, p)
	if domain.Is(err, domain.CodeRevisionMismatch) {
		return nil, js.revisionMismatch(ctx, id, was)
	}
	if err != nil {
		return nil, err
	}
	js.jobsChanged()
	js.log.Info("job changed", "tenant_id", id.Tenant, "job_id", v.ID, "job", v.Spec.Name, "revision", v.Revision, "by", id.Actor())
	return jobAnswer(ctx, js.names(), id, v)
}

// newRevision is a revision that is to be written in place of a job's revision; 0: of any.
// CodeOwnedByCode: the code decides about the changed fields.
func (js *jobs) newRevision(id auth.Identity, v store.JobView, revision int64, w *JobWrite, spec domain.JobSpec, executor domain.ExecutorID) (out store.UpdateJobParams, err error) {
	keepAnchor(v, w, &spec)
	if spec.Alert.WebhookSecret, err = js.sealWebhook(id.Tenant, v.ID, w, v.Spec.Alert.WebhookSecret); err != nil {
		return out, err
	}
	source := domain.SourceConsole
	spec.CodeSays = v.Spec.CodeSays
	if v.Declared.LocksConsole() {
		if err := lockedByCode(v, executor, &spec); err != nil {
			return out, err
		}
		source, revision = v.Source, v.Revision // what was compared
	}
	return store.UpdateJobParams{
		Tenant: id.Tenant, ID: v.ID, IfRevision: revision, Executor: executor, Spec: spec,
		Source: source, DeclarationHash: v.DeclarationHash, By: id.Actor(), Next: timing.Next,
		Plan: js.plan,
	}, nil
}

// keepAnchor lets an edit of something else not shift a fixed rate.
func keepAnchor(v store.JobView, w *JobWrite, spec *domain.JobSpec) {
	old, now := v.Spec.Schedule, &spec.Schedule
	if w.Schedule.Anchor == nil && now.Kind == old.Kind && now.Every == old.Every && now.StartAt.Equal(old.StartAt) {
		now.Anchor = old.Anchor
	}
}

// revisionMismatch answers with the job as it is, so that the editor can show
// both.
func (js *jobs) revisionMismatch(ctx context.Context, id auth.Identity, jid domain.JobID) error {
	v, err := js.store.FindJob(ctx, id.Tenant, jid)
	if err != nil {
		return err
	}
	out, err := jobAnswer(ctx, js.names(), id, v)
	if err != nil {
		return err
	}
	p := web.NewProblem(ctx, http.StatusPreconditionFailed, domain.CodeRevisionMismatch,
		"the job was changed meanwhile: it is at revision "+strconv.FormatInt(v.Revision, 10)+", by "+writtenOf(&v).By)
	p.GetHeaders().Set("ETag", out.ETag)
	p.Current = &out.Body
	return p
}

func (js *jobs) listJobEvents(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[JobEvent], error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
	if err != nil {
		return nil, err
	}
	rows, err := js.store.ListJobChanges(ctx, id.Tenant, v.ID, web.MaxListed)
	return web.ListPage(rows, err, func(e *store.JobChange) JobEvent {
		out := JobEvent{What: string(e.What), At: web.Instant(e.At), By: e.By, Note: e.Note, Revision: e.Revision}
		if e.State != 0 {
			out.State = e.State.String()
		}
		return out
	}, in.ShortPage, "job-events")
}

func (js *jobs) listRevisions(ctx context.Context, id auth.Identity, in *web.IDPage) (*web.PageOutput[Revision], error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, js.store.FindJob)
	if err != nil {
		return nil, err
	}
	at, err := web.DecodeCursor(in.Cursor, "revisions")
	if err != nil {
		return nil, err
	}
	page, err := js.store.ListRevisions(ctx, store.ListRevisionsParams{Tenant: id.Tenant, Job: v.ID, Before: at.ID, Limit: in.Limit, Brief: true})
	out, err := web.StoredPage(page.Items, page.More, err, func(r *store.Revision) Revision {
		return Revision{Revision: r.Revision, CreatedAt: web.Instant(r.CreatedAt), CreatedBy: r.CreatedBy, Spec: shownTo(id, specOf(&r.Spec))}
	}, func(last *store.Revision) web.Cursor { return web.Cursor{List: "revisions", ID: last.Revision} })
	if err != nil {
		return nil, err
	}
	callbacks := []*callback.Callback{}
	for i := range out.Body.Items {
		callbacks = append(callbacks, out.Body.Items[i].Spec.callbacks()...)
	}
	return out, js.names().Fill(ctx, id.Tenant, callbacks...)
}
