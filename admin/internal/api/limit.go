package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Limit bounds how many runs may be on instances at once, on all nodes together.
type Limit struct {
	Kind       string  `json:"kind" enum:"tenant,executor" doc:"What is limited: the whole tenant, or one executor"`
	Subject    web.Ref `json:"subject" doc:"The tenant, or the executor"`
	MaxRunning int     `json:"maxRunning" doc:"0 = no limit"`
	Running    int     `json:"running" doc:"Offered, running or cancelling"`
	Waiting    int     `json:"waiting" doc:"Due, and waiting for room under this limit"`
}

type setLimitInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		MaxRunning int `json:"maxRunning" minimum:"0" maximum:"100000" doc:"0 takes the limit away"`
	}
}

type limitOutput struct{ Body Limit }

// limits bound the runs that go on at once.
type limits struct {
	// fixed after construction
	store interface {
		store.Limits
		store.Executors
		FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error)
	}
	log *slog.Logger
}

func (ls *limits) register(server *web.Server) {
	const what = "Runs over it wait, the first in precedence first. Runs that are under way count and are not stopped. All nodes hold to it within a second."
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/limits", ID: "list-limits", Tag: "executors",
		Summary:     "List the limits of the tenant and of its executors",
		Description: "With how many runs go on and wait under each.",
	}, ls.listLimits)
	web.Register(server, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/executors/{id}/limit", ID: "set-executor-limit", Tag: "executors",
		Summary: "Limit how many runs of an executor go on at once", Description: what,
	}, func(ctx context.Context, id auth.Identity, in *setLimitInput) (*limitOutput, error) {
		e, err := web.ByID(ctx, id.Tenant, in.ID, ls.store.FindExecutor)
		if err != nil {
			return nil, err
		}
		return ls.setLimit(ctx, id, domain.LimitKey{Tenant: id.Tenant, Executor: e.ID}, web.Ref{ID: e.ID.String(), Name: e.Name}, in.Body.MaxRunning)
	})
	web.Register(server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPut, Path: web.Base + "/tenants/{id}/limit", ID: "set-tenant-limit", Tag: "platform",
		Summary: "Limit how many runs of a tenant go on at once", Description: what,
	}, func(ctx context.Context, id auth.Identity, in *setLimitInput) (*limitOutput, error) {
		tid, err := domain.ParseID[domain.TenantID](in.ID)
		if err != nil {
			return nil, err
		}
		t, err := ls.store.FindTenant(ctx, tid)
		if err != nil {
			return nil, err
		}
		return ls.setLimit(ctx, id, domain.LimitKey{Tenant: t.ID}, web.Ref{ID: t.ID.String(), Name: t.Name}, in.Body.MaxRunning)
	})
}

func (ls *limits) setLimit(ctx context.Context, id auth.Identity, key domain.LimitKey, subject web.Ref, maxRunning int) (*limitOutput, error) {
	if err := ls.store.SetLimit(ctx, domain.Limit{LimitKey: key, Max: maxRunning}); err != nil {
		return nil, err
	}
	ls.log.Info("limit set", "tenant_id", key.Tenant, "executor_id", key.Executor, "max_running", maxRunning, "by", id.Actor())
	views, err := ls.store.ListLimits(ctx, key.Tenant)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if v.LimitKey == key {
			return &limitOutput{limitOf(v, subject)}, nil
		}
	}
	return &limitOutput{limitOf(store.LimitView{Limit: domain.Limit{LimitKey: key}}, subject)}, nil // taken away
}

func limitOf(v store.LimitView, subject web.Ref) Limit {
	out := Limit{Kind: "tenant", Subject: subject, MaxRunning: v.Max, Running: v.Running, Waiting: v.Waiting}
	if v.Executor != 0 {
		out.Kind = "executor"
	}
	return out
}

func (ls *limits) listLimits(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Limit], error) {
	views, err := ls.store.ListLimits(ctx, id.Tenant)
	if err != nil {
		return nil, err
	}
	items := make([]Limit, 0, len(views))
	for _, v := range views {
		subject := web.Ref{ID: v.Executor.String(), Name: v.ExecutorName}
		if v.Executor == 0 {
			t, err := ls.store.FindTenant(ctx, id.Tenant)
			if err != nil {
				return nil, err
			}
			subject = web.Ref{ID: t.ID.String(), Name: t.Name}
		}
		items = append(items, limitOf(v, subject))
	}
	return web.SlicePage(items, in.ShortPage, "limits")
}
