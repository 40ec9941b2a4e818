package tenant

import (
	"context"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type tenantOutput struct{ Body Tenant }

type renameTenantInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"The version that was edited, in quotes; * for any"`
	Body    struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	}
}

type deleteTenantInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
	Name    string `query:"name" required:"true" doc:"Its name, typed in to confirm"`
	Grace   string `query:"grace" doc:"How long it can be restored, from 0s to 2160h; default 168h. 0s: not at all, and its secrets go with the answer"`
}

func errTenantName() error {
	return domain.Invalid("body.name", "must be lower-case letters, digits and hyphens, beginning with a letter")
}

// How long a deleted tenant can be restored.
const (
	tenantGrace    = 7 * 24 * time.Hour
	maxTenantGrace = 90 * 24 * time.Hour
)

func (a *api) registerTenantEdits() {
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/tenants/{id}", ID: "get-tenant", Tag: "platform", Summary: "One tenant",
		Description: "Of the whole platform.",
	}, func(ctx context.Context, _ auth.Identity, in *web.IDInput) (*tenantOutput, error) {
		t, err := a.tenant(ctx, in.ID)
		return &tenantOutput{tenantOf(&t)}, err
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPatch, Path: web.Base + "/tenants/{id}", ID: "rename-tenant", Tag: "platform", Summary: "Rename a tenant",
		Description: "Log-ins name the new one from then on; sessions, keys and executors go on.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusPreconditionRequired},
	}, func(ctx context.Context, id auth.Identity, in *renameTenantInput) (*tenantOutput, error) {
		before, err := a.tenant(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		version, err := web.IfMatch(ctx, in.IfMatch)
		if err != nil {
			return nil, err
		}
		if !domain.TenantNames.MatchString(in.Body.Name) {
			return nil, errTenantName()
		}
		t, err := a.deps.Store.RenameTenant(ctx, before.ID, version, in.Body.Name)
		if err != nil {
			return nil, err
		}
		a.deps.Log.Info("tenant renamed", "tenant_id", t.ID, "tenant", t.Name, "former_name", before.Name, "by", id.Actor())
		return &tenantOutput{tenantOf(&t)}, nil
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/tenants/{id}/disable", ID: "disable-tenant", Tag: "platform", Summary: "Let nobody of a tenant in, and start nothing",
		Description: "Within a second on all nodes: log-ins, sessions and API keys are refused (tenant_disabled), but for platform administrators; its processes are let out when they run nothing; its jobs are paused; its timers stay pending. It can be enabled again.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *web.DisableInput) (*tenantOutput, error) {
		return a.setTenantState(ctx, id, in.ID, in.IfMatch, store.SetTenantStateParams{State: domain.TenantDisabled, Note: in.Note()})
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/tenants/{id}/enable", ID: "enable-tenant", Tag: "platform", Summary: "Let a tenant take part again",
		Description: "Jobs that were paused because it was disabled go on with the first fire time from then; timers that came due meanwhile run now, each within its own deadline.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *web.EnableInput) (*tenantOutput, error) {
		return a.setTenantState(ctx, id, in.ID, in.IfMatch, store.SetTenantStateParams{State: domain.TenantEnabled})
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodDelete, Path: web.Base + "/tenants/{id}", ID: "delete-tenant", Tag: "platform", Summary: "Delete a tenant that is disabled",
		Description: "It can be restored until the grace is over. Then all that it has goes, its secrets first, in small steps beside the work of others, and accounts that belong to no other tenant.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, a.deleteTenant)
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/tenants/{id}/restore", ID: "restore-tenant", Tag: "platform", Summary: "Take the deletion of a tenant back",
		Description: "Before deleteAt. It is disabled then.",
		Errors:      []int{http.StatusConflict, http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *web.EnableInput) (*tenantOutput, error) {
		t, err := a.tenant(ctx, in.ID)
		if err == nil && t.State != domain.TenantDeleted {
			err = domain.Errorf(domain.CodeConflict, "the tenant %q is not deleted", t.Name)
		}
		if err != nil {
			return nil, err
		}
		return a.setTenantState(ctx, id, in.ID, in.IfMatch, store.SetTenantStateParams{State: domain.TenantDisabled})
	})
}

// tenant finds one by the id in the path.
func (a *api) tenant(ctx context.Context, text string) (domain.Tenant, error) {
	id, err := domain.ParseID[domain.TenantID](text)
	if err != nil {
		return domain.Tenant{}, err
	}
	return a.deps.Store.FindTenant(ctx, id)
}

func (a *api) setTenantState(ctx context.Context, id auth.Identity, text, ifMatch string, p store.SetTenantStateParams) (*tenantOutput, error) {
	t, err := a.tenant(ctx, text)
	if err != nil {
		return nil, err
	}
	if t.ID == id.Tenant && p.State != domain.TenantEnabled {
		return nil, domain.Errorf(domain.CodeConflict, "you are in the tenant %q yourself; switch to another one first", t.Name)
	}
	p.ID = t.ID
	if p.IfVersion, err = web.IfMatchOrAny(ctx, ifMatch); err != nil {
		return nil, err
	}
	if t.State == domain.TenantEnabled && p.State == domain.TenantDisabled {
		if err := a.deps.BeforeDisable(domain.WithAudit(ctx, nil)); err != nil {
			return nil, err
		}
	}
	if t, err = a.deps.Store.SetTenantState(ctx, p); err != nil {
		return nil, err
	}
	a.deps.DisabledChanged(ctx)
	out := tenantOf(&t)
	a.deps.Log.Info("tenant state changed", "tenant_id", t.ID, "tenant", t.Name, "state", out.State, "by", id.Actor())
	return &tenantOutput{out}, nil
}

func (a *api) deleteTenant(ctx context.Context, id auth.Identity, in *deleteTenantInput) (*tenantOutput, error) {
	t, err := a.tenant(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	var r web.Reader
	grace := r.Duration("query.grace", in.Grace, tenantGrace)
	if grace < 0 || grace > maxTenantGrace {
		r.Fail("query.grace", in.Grace, "must be from 0s to 2160h (90 days)")
	}
	if in.Name != t.Name {
		r.Fail("query.name", in.Name, "must be the tenant's name, to confirm that it is the one to delete")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return a.setTenantState(ctx, id, in.ID, in.IfMatch, store.SetTenantStateParams{State: domain.TenantDeleted, Grace: grace})
}
