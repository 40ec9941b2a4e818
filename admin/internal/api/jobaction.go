package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

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

func (js *jobs) registerStates(server *web.Server) {
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/pause", ID: "pause-job", Tag: "jobs", Summary: "Stop a job's schedule",
		Description: "After the answer no run of the schedule is let start; one that was let start just before may begin within the next second. Attempts that run go on.",
	}, func(ctx context.Context, id auth.Identity, in *pauseInput) (*jobOutput, error) {
		note := ""
		if in.Body != nil {
			note = strings.TrimSpace(in.Body.Note)
		}
		return js.setJobState(ctx, id, in.ID, store.SetJobStateParams{State: domain.JobPaused, Note: note})
	})
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/resume", ID: "resume-job", Tag: "jobs", Summary: "Start a job's schedule again", Errors: []int{http.StatusConflict},
		Description: "It goes on with the first fire time from now.",
	}, func(ctx context.Context, id auth.Identity, in *resumeInput) (*jobOutput, error) {
		return js.setJobState(ctx, id, in.ID, store.SetJobStateParams{State: domain.JobEnabled, Mine: in.Mine})
	})
}

func (js *jobs) setJobState(ctx context.Context, id auth.Identity, text string, p store.SetJobStateParams) (*jobOutput, error) {
	jid, err := domain.ParseID[domain.JobID](text)
	if err != nil {
		return nil, err
	}
	p.Tenant, p.ID, p.By, p.Next, p.Plan = id.Tenant, jid, id.Actor(), timing.Next, js.plan
	v, err := js.store.SetJobState(ctx, p)
	if err != nil {
		return nil, err
	}
	js.jobsChanged()
	js.log.Info("job state changed", "tenant_id", id.Tenant, "job_id", jid, "job", v.Spec.Name, "state", v.State.String(), "by", id.Actor())
	if p.State == domain.JobDeleted {
		return nil, nil
	}
	return jobAnswer(ctx, js.names(), id, v)
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

func (js *jobs) createJobs(ctx context.Context, id auth.Identity, in *createJobsInput) (*struct{ Body JobBatch }, error) {
	reading := *js
	reading.store = remember(js.store)
	items := make([]JobBatchItem, len(in.Body.Items))
	var jobs []store.NewJob
	var at []int // of each in items
	for i := range in.Body.Items {
		items[i].Name = in.Body.Items[i].Name
		job, err := reading.newJob(ctx, id, &in.Body.Items[i], catalogue.Lenient{Handler: in.AllowUnknownHandler, Input: in.AllowUnfitInput})
		if err != nil {
			js.refuseItem(ctx, &items[i], err)
			continue
		}
		jobs, at = append(jobs, job), append(at, i)
	}
	auditNames(ctx, jobs)
	for i, err := range js.store.CreateJobs(ctx, id.Tenant, jobs) {
		item := &items[at[i]]
		if err != nil {
			js.refuseItem(ctx, item, err)
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
	if out.Created == 0 {
		domain.AuditOf(ctx).Drop()
	} else {
		js.jobsChanged()
		js.log.Info("jobs created", "tenant_id", id.Tenant, "count", out.Created, "refused", out.Failed, "by", id.Actor())
	}
	return &struct{ Body JobBatch }{out}, nil
}

// auditNames tells the audit log which jobs were asked for. They take several transactions.
func auditNames(ctx context.Context, jobs []store.NewJob) {
	names, err := json.Marshal(domain.Collect(jobs, func(j *store.NewJob) string { return j.Spec.Name }))
	if err == nil { // a list of names always marshals
		domain.AuditOf(ctx).Object(domain.AuditObject{After: string(names)})
	}
}

func (js *jobs) refuseItem(ctx context.Context, item *JobBatchItem, err error) {
	item.Problem = js.problem(ctx, err)
	item.Status = item.Problem.Status
}
