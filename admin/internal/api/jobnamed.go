package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/catalogue"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type namedJobInput struct {
	Name string `path:"name" doc:"Name of the job"`
}

type putJobInput struct {
	Name                string `path:"name" doc:"Name of the job"`
	AllowUnknownHandler bool   `query:"allowUnknownHandler" doc:"Accept a handler that no instance has registered yet"`
	AllowUnfitInput     bool   `query:"allowUnfitInput" doc:"Accept an input that does not fit what is registered of the handler"`
	Body                JobWrite
}

type putJobOutput struct {
	Status int
	ETag   string `header:"ETag" doc:"The revision in quotes"`
	Body   Job
}

// registerNamed adds the operations on a job by its name, which programs use.
func (js *jobs) registerNamed(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/by-name/{name}", ID: "get-job-by-name", Tag: "jobs", Summary: "One job by its name",
		Description: "As get-job.",
	}, func(ctx context.Context, id auth.Identity, in *namedJobInput) (*jobOutput, error) {
		v, err := js.named(ctx, id, in.Name)
		if err != nil {
			return nil, err
		}
		return js.getJob(ctx, id, v, store.RecentRuns)
	})
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/jobs/by-name/{name}", ID: "put-job", Computes: true, Tag: "jobs", Summary: "Create a job, or replace its settings, by its name",
		Description: "The same request twice is the same job: if nothing differs, there is no new revision. The name in the body is the same. state counts only when the job is created. 409 if the job belongs to another executor than the one in the body.",
		Status:      http.StatusCreated, Errors: []int{http.StatusConflict, http.StatusPreconditionFailed},
		Also: map[int]string{http.StatusOK: "The job was there: it was replaced, or is as asked already"},
	}, js.putJob)
}

// named finds a job by its name, within reach.
func (js *jobs) named(ctx context.Context, id auth.Identity, name string) (store.JobView, error) {
	v, err := js.store.FindJobByName(ctx, id.Tenant, name)
	if domain.Is(err, domain.CodeNotFound) || err == nil && !id.Reach.Has(v.Executor) {
		return store.JobView{}, domain.Errorf(domain.CodeNotFound, "there is no job named %q", name)
	}
	return v, err
}

// reachNamed is the caller's reach, or of it the executor with a name.
func (js *jobs) reachNamed(ctx context.Context, id auth.Identity, executor string) (domain.Reach, error) {
	if executor == "" {
		return id.Reach, nil
	}
	e, err := js.store.FindExecutorByName(ctx, id.Tenant, executor)
	if domain.Is(err, domain.CodeNotFound) {
		return domain.Within(), nil
	}
	return id.Reach.Only(e.ID), err
}

func (js *jobs) putJob(ctx context.Context, id auth.Identity, in *putJobInput) (*putJobOutput, error) {
	allow := catalogue.Lenient{Handler: in.AllowUnknownHandler, Input: in.AllowUnfitInput}
	out, err := js.putOnce(ctx, id, in, allow)
	if domain.Is(err, domain.CodeConflict) {
		// Another request may have created the job since it was looked for.
		if _, found := js.named(ctx, id, in.Name); found == nil {
			out, err = js.putOnce(ctx, id, in, allow)
		}
	}
	return out, err
}

func (js *jobs) putOnce(ctx context.Context, id auth.Identity, in *putJobInput, allow catalogue.Lenient) (*putJobOutput, error) {
	v, err := js.named(ctx, id, in.Name)
	missing := domain.Is(err, domain.CodeNotFound)
	if err != nil && !missing {
		return nil, err
	}
	spec, executor, err := js.readJob(ctx, id, &in.Body, v.Job, allow)
	switch {
	case err != nil:
		return nil, err
	case in.Name != spec.Name:
		return nil, domain.Invalid("body.name", "is %q, and the address names %q: use the same name", spec.Name, in.Name)
	case missing:
		out, err := js.createJob(ctx, id, &createJobInput{AllowUnknownHandler: allow.Handler, AllowUnfitInput: allow.Input, Body: in.Body})
		return putAnswer(http.StatusCreated, out, err)
	case v.Executor != executor.ID:
		return nil, domain.Errorf(domain.CodeConflict, "the job %q belongs to the executor %q, not to %q: use another name, or move it with PUT %s/jobs/%s", in.Name, v.ExecutorName, executor.Name, web.Base, v.ID)
	}
	keepAnchor(v, &in.Body, &spec)
	if newSecret := in.Body.Alert != nil && in.Body.Alert.WebhookSecret != ""; !newSecret && len(changesOf(specOf(&v.Spec), specOf(&spec))) == 0 {
		domain.AuditOf(ctx).Drop()
		out, err := jobAnswer(ctx, js.names(), id, v)
		return putAnswer(http.StatusOK, out, err)
	}
	out, err := js.replace(ctx, id, v, v.Revision, &in.Body, spec, executor.ID)
	return putAnswer(http.StatusOK, out, err)
}

func putAnswer(status int, job *jobOutput, err error) (*putJobOutput, error) {
	if err != nil {
		return nil, err
	}
	return &putJobOutput{Status: status, ETag: job.ETag, Body: job.Body}, nil
}
