package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// defaultChannel is the name of the channel that a tenant gets.
const defaultChannel = "default"

// ReceiverStore is what Receivers asks of the store.
type ReceiverStore interface {
	ListUnheardTenants(ctx context.Context, mails bool) ([]UnheardTenant, error)
	CreateDefaultReceiver(ctx context.Context, c noun.AlertChannel, by string) (made bool, err error)
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

// Give gives each tenant its channel, to the addresses that are declared for its name or else
// to Default.
func (r *Receivers) Give(ctx context.Context, declared map[string][]string) error {
	if len(declared) == 0 && len(r.Default) == 0 {
		return nil
	}
	unheard, err := r.Store.ListUnheardTenants(ctx, true)
	for n := range unheard {
		emails, ok := declared[unheard[n].Name]
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
	made, err := r.Store.CreateDefaultReceiver(ctx, noun.AlertChannel{
		ID: domain.ChannelID(r.NewID()), TenantID: t.ID,
		Spec: noun.AlertChannelSpec{Name: defaultChannel, Kind: noun.ChannelEmail, Enabled: true, Emails: emails,
			Description: "Receives failures of timers and calls, and of jobs that name no receiver."},
	}, "carillon")
	if err == nil && made {
		r.Log.Info("default alert channel made", "tenant", t.Name, "tenant_id", t.ID, "addresses", len(emails))
	}
	return err
}
