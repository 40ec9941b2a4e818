package admin

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Access is what an application needs to take part: a join token for its
// executor and an API key. Both are secrets.
type Access struct {
	JoinToken string `json:"joinToken"`
	APIKey    string `json:"apiKey"`
}

// Provision makes the executor in the first tenant, unless it exists, and
// gives access to it. It is for whoever owns the process, such as the demo;
// everybody else uses the API.
func (a *Admin) Provision(ctx context.Context, executor string) (Access, error) {
	tenant, err := a.store.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return Access{}, err
	}
	e, err := a.store.FindExecutorByName(ctx, tenant.ID, executor)
	if domain.Is(err, domain.CodeNotFound) {
		e = domain.Executor{
			ID: domain.ExecutorID(a.ids.Next()), TenantID: tenant.ID, Name: executor, CreatedAt: time.Now().UTC(),
		}
		err = a.store.CreateExecutor(ctx, e)
	}
	if err != nil {
		return Access{}, err
	}
	owner := auth.Identity{
		Kind: auth.KindUser, Tenant: tenant.ID, Name: "demo",
		Role: domain.RoleAdmin, Permissions: domain.RoleAdmin.Permissions(),
	}
	var out Access
	if _, out.JoinToken, err = a.auth.CreateJoinToken(ctx, owner, auth.JoinTokenParams{Executor: e.ID, Name: executor}); err != nil {
		return Access{}, err
	}
	_, out.APIKey, err = a.auth.CreateAPIKey(ctx, owner, executor, domain.RoleOperator, time.Time{})
	return out, err
}
