package api

import (
	"context"
	"net/http"
	"regexp"

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
	return Tenant{ID: t.ID.String(), Name: t.Name, CreatedAt: instant(t.CreatedAt)}
}

type createTenantInput struct {
	Body struct {
		Name string `json:"name" minLength:"1" maxLength:"64" doc:"Lower-case letters, digits and hyphens"`
	}
}

// tenantName can stand in a URL and cannot be taken for an id.
var tenantName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$|^[a-z]$`)

func (a *API) registerTenants() {
	register(a, platformAdmin, operation{
		method: http.MethodGet, path: base + "/tenants", id: "list-tenants", tag: "platform", summary: "List all tenants",
		description: "All of the platform, for its administrators.",
	}, func(ctx context.Context, _ auth.Identity, in *PageQuery) (*pageOutput[Tenant], error) {
		tenants, err := a.deps.Store.ListTenants(ctx)
		if err != nil {
			return nil, err
		}
		items := []Tenant{}
		for _, t := range tenants {
			items = append(items, tenantOf(t))
		}
		return slicePage(items, in.ShortPage, "tenants")
	})
	register(a, platformAdmin, operation{
		method: http.MethodPost, path: base + "/tenants", id: "create-tenant", tag: "platform",
		summary:     "Make a tenant",
		description: "It is empty at first.", status: http.StatusCreated, errors: []int{http.StatusConflict},
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
