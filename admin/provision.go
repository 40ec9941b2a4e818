package admin

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/provision"
	"github.com/carillon-sched/carillon/admin/internal/secret"
)

// ProvisionError says what is wrong with a provision file, by line.
type ProvisionError = provision.Error

// CheckProvision judges a provision file with its secrets as New does, and counts
// what it declares. What is wrong is a *ProvisionError.
func CheckProvision(path string) (summary string, err error) {
	d, err := provision.Read(path, os.Getenv)
	if err != nil {
		return "", err
	}
	return d.Summary(), nil
}

// readProvision reads the provision file, if there is one, before anything is
// opened.
func (a *Admin) readProvision() (err error) {
	if a.config.ProvisionFile == "" {
		return nil
	}
	if a.provision, err = provision.Read(a.config.ProvisionFile, os.Getenv); err != nil {
		return err
	}
	if err := a.checkDeclaredReceivers(); err != nil {
		return err
	}
	if given := a.provision.AdminPassword; given != "" {
		if a.config.AdminPassword != "" {
			return &ProvisionError{File: a.config.ProvisionFile, Problems: []provision.Problem{{
				Where: "administrator.password", Text: "it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too: leave one of them out",
			}}}
		}
		a.config.AdminPassword = given
	}
	return nil
}

// provisionLimit bounds what a start takes to make what is declared.
const provisionLimit = time.Minute

// applyProvision makes what the provision file declares, and default receivers. Differences
// in the database are told and left alone. A node that runs its jobs is worth more.
func (a *Admin) applyProvision(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, provisionLimit)
	defer cancel()
	if a.provision == nil {
		return a.giveReceivers(ctx, nil)
	}
	steps, err := a.provision.Apply(ctx, a.store, func(ctx context.Context, password string) (string, error) {
		return a.auth.HashPassword(ctx, 0, password)
	})
	if err != nil {
		return fmt.Errorf("provision: %w", err)
	}
	log := a.log.With("component", "provisioning")
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
	log.Info("what the provision file declares is there", "file", a.config.ProvisionFile, "declared", a.provision.Summary(), "made", made)
	declared := a.provision.Receivers
	a.provision = nil // and its passwords
	return a.giveReceivers(ctx, declared)
}

// NewSecret makes a random secret of a kind of SecretKinds.
func NewSecret(kind string) (string, error) {
	for _, k := range secretKinds {
		if k.name == kind {
			return k.make()
		}
	}
	return "", fmt.Errorf("%q is none of %s", kind, strings.Join(SecretKinds(), ", "))
}

// SecretKinds are what NewSecret makes.
func SecretKinds() (out []string) {
	for _, k := range secretKinds {
		out = append(out, k.name)
	}
	return out
}

var secretKinds = []struct {
	name string
	make func() (string, error)
}{
	{"password", auth.GeneratePassword}, {"join-token", auth.NewJoinToken}, {"api-key", auth.NewAPIKey}, {"sealing-key", secret.NewKey},
}

// Access is what an application needs to take part: a join token for its
// executor, and API keys that call its handlers and set timers for them. All are
// secrets.
type Access struct {
	JoinToken string `json:"joinToken"`
	APIKey    string `json:"apiKey"`
	TimerKey  string `json:"timerKey"`
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
	scope := domain.KeyScope{Executors: []string{executor}}
	if _, out.APIKey, err = a.auth.CreateAPIKey(ctx, owner, executor, domain.RoleCaller, time.Time{}, scope); err != nil {
		return Access{}, err
	}
	_, out.TimerKey, err = a.auth.CreateAPIKey(ctx, owner, executor+" timers", domain.RoleTimer, time.Time{}, scope)
	return out, err
}
