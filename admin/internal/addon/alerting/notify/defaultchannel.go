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
	// CreateDefaultReceiver makes a channel the default one of a tenant without saved settings. A
	// channel of the same name takes its place. Without addresses no channel is made.
	CreateDefaultReceiver(ctx context.Context, c noun.AlertChannel, by string) (made bool, err error)
}

// Receivers gives tenants without saved alert settings a default channel.
type Receivers struct {
	Store ReceiverStore
	NewID func() int64
	// Default are the addresses of a tenant that has no channel with the name default; empty: it
	// gets none.
	Default []string
	Log     *slog.Logger
}

// Give gives each tenant its channel.
func (r *Receivers) Give(ctx context.Context) error {
	unheard, err := r.Store.ListUnheardTenants(ctx, true)
	for n := range unheard {
		if unheard[n].Fresh {
			err = errors.Join(err, r.give(ctx, &unheard[n].Tenant))
		}
	}
	if err != nil {
		return fmt.Errorf("default receivers: %w", err)
	}
	return nil
}

// TenantMade gives a new tenant its channel. If that fails, the next start of a node does it.
func (r *Receivers) TenantMade(ctx context.Context, t domain.Tenant) {
	if err := r.give(ctx, &t); err != nil {
		r.Log.Warn("the tenant has no default alert channel yet", "tenant", t.Name, "err", err)
	}
}

func (r *Receivers) give(ctx context.Context, t *domain.Tenant) error {
	made, err := r.Store.CreateDefaultReceiver(ctx, noun.AlertChannel{
		ID: domain.ChannelID(r.NewID()), TenantID: t.ID,
		Spec: noun.AlertChannelSpec{Name: defaultChannel, Kind: noun.ChannelEmail, Enabled: true, Emails: r.Default,
			Description: "Receives failures of timers and calls, and of jobs that name no receiver."},
	}, "carillon")
	if err == nil && made {
		r.Log.Info("default alert channel made", "tenant", t.Name, "tenant_id", t.ID, "addresses", len(r.Default))
	}
	return err
}
