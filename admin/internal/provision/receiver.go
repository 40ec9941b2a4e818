package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/mail"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Receiver has the default addresses for failures of a tenant.
type Receiver struct {
	Tenant string
	Emails []string
	// Line and Where are its place in the file.
	Line  int
	Where string
}

// defaultChannel is the name of the channel that a tenant gets.
const defaultChannel = "default"

// ReceiverStore is what Receivers asks of the store.
type ReceiverStore interface {
	ListUnheardTenants(ctx context.Context, mails bool) ([]store.UnheardTenant, error)
	CreateDefaultReceiver(ctx context.Context, c domain.AlertChannel) (made bool, err error)
}

// Receivers gives tenants without saved alert settings a default channel.
type Receivers struct {
	Store ReceiverStore
	NewID func() int64
	// Default are the addresses of a tenant for which the file names none; empty: it gets no
	// channel.
	Default []string
	Log     *slog.Logger
}

// Give gives each tenant its channel, to the addresses that the file declares for it or else
// to Default.
func (r *Receivers) Give(ctx context.Context, declared []Receiver) error {
	of := map[string][]string{}
	for _, t := range declared {
		of[t.Tenant] = t.Emails
	}
	if len(of) == 0 && len(r.Default) == 0 {
		return nil
	}
	unheard, err := r.Store.ListUnheardTenants(ctx, true)
	for n := range unheard {
		emails, ok := of[unheard[n].Name]
		if !ok {
			emails = r.Default
		}
		if unheard[n].Fresh {
			err = errors.Join(err, r.give(ctx, &unheard[n].Tenant, emails))
		}
	}
	if err != nil {
		return fmt.Errorf("default receivers: %w", err)
	}
	return nil
}

// TenantMade gives a new tenant its channel. If that fails, the next start of a node does it.
func (r *Receivers) TenantMade(ctx context.Context, t domain.Tenant) {
	if err := r.give(ctx, &t, r.Default); err != nil {
		r.Log.Warn("the tenant has no default alert channel yet", "tenant", t.Name, "err", err)
	}
}

func (r *Receivers) give(ctx context.Context, t *domain.Tenant, emails []string) error {
	if len(emails) == 0 {
		return nil
	}
	made, err := r.Store.CreateDefaultReceiver(ctx, domain.AlertChannel{
		ID: domain.ChannelID(r.NewID()), TenantID: t.ID, CreatedBy: "carillon",
		Spec: domain.AlertChannelSpec{Name: defaultChannel, Kind: domain.ChannelEmail, Enabled: true, Emails: emails,
			Description: "Receives failures of timers and calls, and of jobs that name no receiver."},
	})
	if err == nil && made {
		r.Log.Info("default alert channel made", "tenant", t.Name, "tenant_id", t.ID, "addresses", len(emails))
	}
	return err
}

// Addresses are those of a list that people wrote, at most as many as a channel may have. A
// text that is no address is left out.
func Addresses(list []string) (out []string) {
	for _, text := range list[:min(len(list), domain.MaxChannelEmails)] {
		if address, err := mail.ParseAddress(text); err == nil {
			out = append(out, address.Address)
		}
	}
	return out
}

// CheckAddresses holds addresses against what the server sends; a nil check: it has no server
// for mails.
func CheckAddresses(addresses []string, check func(address string) error) error {
	switch {
	case len(addresses) == 0:
		return nil
	case len(addresses) > domain.MaxChannelEmails:
		return fmt.Errorf("%d addresses are too many: use at most %d, such as that of a list", len(addresses), domain.MaxChannelEmails)
	case check == nil:
		return errors.New("alerts to addresses need a mail server: name one with --mail-host")
	}
	for _, address := range addresses {
		if err := check(address); err != nil {
			return fmt.Errorf("%q: %w", address, err)
		}
	}
	return nil
}
