package api

import (
	"context"
	"net/http"
	"regexp"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Tenant is an isolation boundary.
type Tenant struct {
	ID        string `json:"id" doc:"Id of the tenant, a decimal string"`
	Name      string `json:"name" doc:"Its name, unique on the platform"`
	CreatedAt string `json:"createdAt" format:"date-time" doc:"When it was made"`
}

func tenantOf(t domain.Tenant) Tenant {
	return Tenant{ID: t.ID.String(), Name: t.Name, CreatedAt: web.Instant(t.CreatedAt)}
}

type createTenantInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	}
}

// tenantName can stand in a URL and cannot be taken for an id.
var tenantName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$|^[a-z]$`)

func (a *API) registerTenants() {
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodGet, Path: web.Base + "/tenants", ID: "list-tenants", Tag: "platform", Summary: "List all tenants",
		Description: "All of the platform, for its administrators.",
	}, func(ctx context.Context, _ auth.Identity, in *PageQuery) (*web.PageOutput[Tenant], error) {
		tenants, err := a.deps.Store.ListTenants(ctx)
		if err != nil {
			return nil, err
		}
		items := []Tenant{}
		for _, t := range tenants {
			items = append(items, tenantOf(t))
		}
		return web.SlicePage(items, in.ShortPage, "tenants")
	})
	web.Register(a.Server, web.PlatformAdmin, web.Operation{
		Method: http.MethodPost, Path: web.Base + "/tenants", ID: "create-tenant", Tag: "platform",
		Summary:     "Make a tenant",
		Description: "It is empty at first.", Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, _ auth.Identity, in *createTenantInput) (*struct{ Body Tenant }, error) {
		if !tenantName.MatchString(in.Body.Name) {
			return nil, domain.Invalid("body.name", "must be lower-case letters, digits and hyphens, beginning with a letter")
		}
		t := domain.Tenant{ID: domain.TenantID(a.deps.NewID()), Name: in.Body.Name, CreatedAt: a.deps.Now()}
		if err := a.deps.Store.CreateTenant(ctx, t); err != nil {
			return nil, err
		}
		return &struct{ Body Tenant }{tenantOf(t)}, nil
	})
}
