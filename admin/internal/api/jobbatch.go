package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

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
	reading.deps.Store = &remembering{Store: a.deps.Store, executors: map[string]domain.Executor{}, handlers: map[domain.ExecutorID][]domain.Handler{}}
	items := make([]JobBatchItem, len(in.Body.Items))
	var jobs []store.NewJob
	var at []int // of each in items
	for i := range in.Body.Items {
		items[i].Name = in.Body.Items[i].Name
		job, err := reading.newJob(ctx, id, &in.Body.Items[i], lenient{in.AllowUnknownHandler, in.AllowUnfitInput})
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
	handlers  map[domain.ExecutorID][]domain.Handler
}

func (r *remembering) FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	return once(r.executors, id.String(), func() (domain.Executor, error) { return r.Store.FindExecutor(ctx, tenant, id) })
}

func (r *remembering) FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	return once(r.executors, "name:"+name, func() (domain.Executor, error) { return r.Store.FindExecutorByName(ctx, tenant, name) })
}

func (r *remembering) ListHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Handler, error) {
	return once(r.handlers, executor, func() ([]domain.Handler, error) { return r.Store.ListHandlers(ctx, tenant, executor) })
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
