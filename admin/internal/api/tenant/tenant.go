package tenant

import (
	"context"
	"fmt"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tenant is an isolation boundary.
type Tenant struct {
	ID        string  `json:"id" doc:"Id of the tenant, a decimal string"`
	Name      string  `json:"name" doc:"Its name, unique on the platform"`
	State     string  `json:"state" enum:"enabled,disabled,deleted,moving,moved" doc:"disabled: it lets nobody in and starts nothing; deleted: likewise, and its rows go at deleteAt; moving: on its way to or from another cell; moved: it lives in the cell that cell names"`
	Note      string  `json:"note,omitempty" doc:"Why it is disabled"`
	Version   int64   `json:"version" doc:"Grows with each change; for If-Match"`
	Cell      string  `json:"cell,omitempty" doc:"Which other cell it lives in or moves to"`
	CreatedAt string  `json:"createdAt" format:"date-time" doc:"When it was made"`
	DeleteAt  *string `json:"deleteAt" format:"date-time" doc:"Until when it can be restored; null: it is not deleted"`
}

func tenantOf(t *domain.Tenant) Tenant {
	out := Tenant{
		ID: t.ID.String(), Name: t.Name, State: t.State.String(), Note: t.Note, Version: t.Version, Cell: t.Cell,
		CreatedAt: web.Instant(t.CreatedAt),
	}
	if t.State == domain.TenantDeleted {
		out.DeleteAt = web.InstantOrNull(t.DeleteAt)
	}
	return out
}

type createTenantInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	}
}

func (a *api) registerTenants() {
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/tenants", ID: "list-tenants", Tag: "platform", Summary: "List all tenants",
		Description: "All of the platform, for its administrators.",
	}, func(ctx context.Context, _ auth.Identity, in *web.PageQuery) (*web.PageOutput[Tenant], error) {
		tenants, err := a.deps.Store.ListTenants(ctx)
		return web.ListPage(tenants, err, tenantOf, in.ShortPage, "tenants")
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/tenants", ID: "create-tenant", Tag: "platform",
		Summary:     "Make a tenant",
		Description: "It is empty at first, except for the alert channel default if the server has addresses for it (--alert-to).", Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, _ auth.Identity, in *createTenantInput) (*struct{ Body Tenant }, error) {
		if !domain.TenantNames.MatchString(in.Body.Name) {
			return nil, errTenantName()
		}
		t := domain.Tenant{ID: domain.TenantID(a.deps.NewID()), Name: in.Body.Name, Version: 1, CreatedAt: a.deps.Now()}
		if err := a.deps.Store.CreateTenant(ctx, t); err != nil {
			return nil, err
		}
		a.deps.Made(ctx, t)
		return &struct{ Body Tenant }{tenantOf(&t)}, nil
	})
	a.registerTenantEdits()
}

// Quota is how much a tenant may have of a kind, and has.
type Quota struct {
	Kind    string `json:"kind" enum:"jobs,fires_per_minute,executors,instances,users,api_keys,timers,stored_bytes,api_calls_per_second" doc:"timers: those that are pending; stored_bytes: of pending timers, revisions of jobs, versions of scripts, calendars and catalogues, with 128 for each row; fires_per_minute: over all enabled jobs, the most that each schedule fires in a minute; api_calls_per_second: of each node, half of it for one API key"`
	Limit   int64  `json:"limit" doc:"0 = no limit. The default of fires_per_minute is 0 while no other enabled tenant has an enabled job"`
	Used    int64  `json:"used" doc:"0 of api_calls_per_second, which nobody counts. May be above the limit: a quota stops growth and takes nothing away"`
	Default bool   `json:"default" doc:"The limit is the default; nothing was set for this tenant"`
}

// QuotaWrite sets one quota.
type QuotaWrite struct {
	Kind  string `json:"kind" enum:"jobs,fires_per_minute,executors,instances,users,api_keys,timers,stored_bytes,api_calls_per_second" doc:"What there may be only so many of"`
	Limit int64  `json:"limit" minimum:"-1" maximum:"1125899906842624" doc:"0 = no limit, -1 = the default. At most 100000000 of all kinds but stored_bytes"`
}

type setQuotasInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body struct {
		Items []QuotaWrite `json:"items" minItems:"1" maxItems:"32" doc:"Kinds that are left out stay as they are"`
	}
}

func (a *api) registerQuotas() {
	web.Register(a.Server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/quotas", ID: "list-quotas", Tag: "access",
		Summary:     "List how much the tenant may have, and has",
		Description: "One entry for each kind: how many there may be, by the tenant's own setting or the default, and how many there are. The default of fires_per_minute protects other tenants and has no effect for a tenant that is alone.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*web.PageOutput[Quota], error) {
		return a.listQuotas(ctx, id.Tenant)
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/tenants/{id}/quotas", ID: "list-tenant-quotas", Tag: "platform",
		Summary:     "List how much a tenant may have, and has",
		Description: "As list-quotas, of any tenant.",
	}, func(ctx context.Context, _ auth.Identity, in *web.IDInput) (*web.PageOutput[Quota], error) {
		tid, err := domain.ParseID[domain.TenantID](in.ID)
		if err != nil {
			return nil, err
		}
		return a.listQuotas(ctx, tid)
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPut, Path: web.Base + "/tenants/{id}/quotas", ID: "set-tenant-quotas", Tag: "platform",
		Summary: "Change how much a tenant may have", Description: "What is there stays, also where it is more: a quota stops growth.",
	}, a.setQuotas)
}

func (a *api) listQuotas(ctx context.Context, tenant domain.TenantID) (*web.PageOutput[Quota], error) {
	quotas, err := a.deps.Store.ListQuotas(ctx, tenant)
	if err != nil {
		return nil, err
	}
	items := make([]Quota, 0, len(quotas))
	for _, q := range quotas {
		items = append(items, Quota{Kind: string(q.Kind), Limit: q.Max, Used: q.Used, Default: q.Default})
	}
	return web.OnePage(items), nil
}

func (a *api) setQuotas(ctx context.Context, id auth.Identity, in *setQuotasInput) (*web.PageOutput[Quota], error) {
	tid, err := domain.ParseID[domain.TenantID](in.ID)
	if err != nil {
		return nil, err
	}
	p := store.SetQuotasParams{Tenant: tid, Max: map[domain.QuotaKind]int64{}, By: id.Actor()}
	for i, q := range in.Body.Items {
		if most := domain.QuotaKind(q.Kind).Most(); q.Limit > most {
			return nil, domain.Invalid(fmt.Sprintf("body.items[%d].limit", i), "must be at most %d", most)
		}
		p.Max[domain.QuotaKind(q.Kind)] = q.Limit
	}
	if err := a.deps.Store.SetQuotas(ctx, p); err != nil {
		return nil, err
	}
	for _, q := range in.Body.Items {
		a.deps.Log.Info("quota set", "tenant_id", tid, "quota", q.Kind, "limit", q.Limit, "by", p.By)
	}
	return a.listQuotas(ctx, tid)
}
