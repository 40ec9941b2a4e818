package provision

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Accounts is what this room asks of the store.
type Accounts interface {
	FindUserByName(ctx context.Context, username string) (domain.User, error)
	Provision(ctx context.Context, p store.ProvisionParams) ([]store.ProvisionStep, error)
}

// Apply makes what is declared and missing. Differences in the database are logged and left
// alone, since a node that runs its jobs is worth more. A password is hashed only for an
// account that is not there.
func (d *Declaration) Apply(ctx context.Context, accounts Accounts, hash func(ctx context.Context, password string) (string, error), log *slog.Logger) error {
	p := d.params
	p.Users = nil
	for i, u := range d.params.Users {
		_, err := accounts.FindUserByName(ctx, u.User.Username)
		if err == nil {
			continue
		}
		if !domain.Is(err, domain.CodeNotFound) {
			return fmt.Errorf("find user: %w", err)
		}
		if u.User.PasswordHash, err = hash(ctx, d.passwords[i]); err != nil {
			return fmt.Errorf("hash password: %w", err)
		}
		p.Users = append(p.Users, u)
	}
	steps, err := accounts.Provision(ctx, p)
	if err != nil {
		return err
	}
	made := 0
	for _, s := range steps {
		attributes := []any{"kind", s.Kind, "name", s.Name}
		if s.Tenant != "" {
			attributes = append(attributes, "tenant", s.Tenant)
		}
		switch {
		case s.Left != "":
			log.Warn("not as the provision file declares, and left so", append(attributes, "reason", s.Left)...)
		case s.Made:
			made++
			log.Info("made", attributes...)
		}
	}
	log.Info("what the provision file declares is there", "file", d.file, "declared", d.Summary(), "made", made)
	return nil
}

// Access is what an application needs to take part: a join token for its
// executor, and API keys that call its handlers and set timers for them. All are
// secrets.
type Access struct {
	JoinToken string `json:"joinToken"`
	APIKey    string `json:"apiKey"`
	TimerKey  string `json:"timerKey"`
}

// Executors is what GiveAccess asks of the store.
type Executors interface {
	FindTenantByName(ctx context.Context, name string) (domain.Tenant, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
	CreateExecutor(ctx context.Context, e domain.Executor) error
}

// GiveAccess makes the executor in the first tenant, unless it exists, and gives access to it.
// It is for the owner of the process, such as the demo. Others use the API.
func GiveAccess(ctx context.Context, s Executors, a *auth.Service, id int64, executor string) (Access, error) {
	tenant, err := s.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return Access{}, err
	}
	e, err := s.FindExecutorByName(ctx, tenant.ID, executor)
	if domain.Is(err, domain.CodeNotFound) {
		e = domain.Executor{ID: domain.ExecutorID(id), TenantID: tenant.ID, Name: executor, CreatedAt: time.Now().UTC()}
		err = s.CreateExecutor(ctx, e)
	}
	if err != nil {
		return Access{}, err
	}
	owner := auth.Identity{
		Kind: auth.KindUser, Tenant: tenant.ID, Name: "demo",
		Role: domain.RoleAdmin, Permissions: domain.RoleAdmin.Permissions(),
	}
	var out Access
	if _, out.JoinToken, err = a.CreateJoinToken(ctx, owner, auth.JoinTokenParams{Executor: e.ID, Name: executor}); err != nil {
		return Access{}, err
	}
	scope := domain.Scope{Executors: []string{executor}}
	if _, out.APIKey, err = a.CreateAPIKey(ctx, owner, executor, domain.RoleCaller, time.Time{}, scope); err != nil {
		return Access{}, err
	}
	_, out.TimerKey, err = a.CreateAPIKey(ctx, owner, executor+" timers", domain.RoleTimer, time.Time{}, scope)
	return out, err
}
