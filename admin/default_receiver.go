package admin

import (
	"context"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/provision"
)

// defaultChannel is the name of the channel that a tenant gets.
const defaultChannel = "default"

// receivers returns the addresses of the default channel that a tenant gets: those of
// --alert-to, or else the operators'. Without a mail server there are none.
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

// shownUnheard is how many tenants the doctor names.
const shownUnheard = 10

// lookAtReceivers names tenants whose failures may reach nobody.
func (e *examination) lookAtReceivers(ctx context.Context) []doctor.Result {
	unheard, err := e.store.ListUnheardTenants(ctx, e.Config.Mail.Host != "")
	if err != nil {
		return unasked(ctx, err)
	}
	var names []string
	for n := range unheard {
		if !unheard[n].Fresh || len(e.Config.receivers()) == 0 { // the others get one at the next start
			names = append(names, unheard[n].Name)
		}
	}
	if len(names) == 0 {
		return []doctor.Result{doctor.Passed("each tenant has an alert channel for failures that name no receiver")}
	}
	shown := strings.Join(names[:min(len(names), shownUnheard)], ", ")
	if more := len(names) - shownUnheard; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return []doctor.Result{doctor.Warn("alerts_reach_nobody", "Give the server addresses with --alert-to (and --mail-host), or each tenant a default channel: carillon alert default CHANNEL-ID",
		"failures of timers and calls, and of jobs that name no receiver, reach nobody in these tenants: %s", shown)}
}
