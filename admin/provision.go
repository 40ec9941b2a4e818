package admin

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"os"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting"
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

// defaultChannel is the name of the channel that a tenant gets.
const defaultChannel = "default"

// receivers returns the addresses of the default channel that a tenant gets. They come from
// --alert-to, or else from the operators. Without a mail server there are none.
func (c Config) receivers() (out []string) {
	list := c.Alerts.To
	if len(list) == 0 {
		list = c.Operators.Emails
	}
	if c.Mail.Host == "" {
		return nil
	}
	for _, text := range list[:min(len(list), domain.MaxChannelEmails)] {
		if address, err := netmail.ParseAddress(text); err == nil {
			out = append(out, address.Address)
		}
	}
	return out
}

// checkReceivers holds addresses against what this server sends.
func (c Config) checkReceivers(addresses []string) error {
	switch {
	case len(addresses) == 0:
		return nil
	case len(addresses) > domain.MaxChannelEmails:
		return fmt.Errorf("%d addresses are too many: use at most %d, such as that of a list", len(addresses), domain.MaxChannelEmails)
	case c.Mail.Host == "":
		return errors.New("alerts to addresses need a mail server: name one with --mail-host")
	}
	sender, err := c.Mail.sender(alerting.English, c.Operators, nil)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		if err := sender.Check(address); err != nil {
			return fmt.Errorf("%q: %w", address, err)
		}
	}
	return nil
}

// checkDeclaredReceivers refuses addresses in the provision file that this server
// sends no mails to.
func (a *Admin) checkDeclaredReceivers() error {
	for _, t := range a.provision.Receivers {
		if err := a.config.checkReceivers(t.Emails); err != nil {
			return &ProvisionError{File: a.config.ProvisionFile, Problems: []provision.Problem{{Line: t.Line, Where: t.Where, Text: err.Error()}}}
		}
	}
	return nil
}

// giveReceivers gives each tenant without saved alert settings a default channel, to
// the addresses that the provision file declares for it or else to Config.receivers.
func (a *Admin) giveReceivers(ctx context.Context, declared []provision.Receiver) error {
	of := map[string][]string{}
	for _, t := range declared {
		of[t.Tenant] = t.Emails
	}
	if a.config.NoFire || len(of) == 0 && len(a.config.receivers()) == 0 {
		return nil
	}
	unheard, err := a.store.ListUnheardTenants(ctx, true)
	if err != nil {
		return fmt.Errorf("default receivers: %w", err)
	}
	for n := range unheard {
		if !unheard[n].Fresh {
			continue
		}
		emails, ok := of[unheard[n].Name]
		if !ok {
			emails = a.config.receivers()
		}
		if err := a.giveReceiver(ctx, &unheard[n].Tenant, emails); err != nil {
			return fmt.Errorf("default receivers: %w", err)
		}
	}
	return nil
}

func (a *Admin) giveReceiver(ctx context.Context, t *domain.Tenant, emails []string) error {
	if len(emails) == 0 {
		return nil
	}
	made, err := a.store.CreateDefaultReceiver(ctx, domain.AlertChannel{
		ID: domain.ChannelID(a.ids.Next()), TenantID: t.ID, CreatedBy: "carillon",
		Spec: domain.AlertChannelSpec{Name: defaultChannel, Kind: domain.ChannelEmail, Enabled: true, Emails: emails,
			Description: "Receives failures of timers and calls, and of jobs that name no receiver."},
	})
	if err == nil && made {
		a.log.Info("default alert channel made", "component", "alerting", "tenant", t.Name, "tenant_id", t.ID, "addresses", len(emails))
	}
	return err
}

// tenantMade gives a new tenant its default channel. If that fails, the next start of a
// node does it.
func (a *Admin) tenantMade(ctx context.Context, t domain.Tenant) {
	if err := a.giveReceiver(ctx, &t, a.config.receivers()); err != nil {
		a.log.Warn("the tenant has no default alert channel yet", "component", "alerting", "tenant", t.Name, "err", err)
	}
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
