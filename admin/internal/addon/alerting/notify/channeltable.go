package notify

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertChannels keeps by which means tenants are told. Secrets come and go
// sealed.
type AlertChannels interface {
	// CreateAlertChannel writes version 1. CodeConflict: the name is taken, or
	// there are noun.MaxAlertChannels.
	CreateAlertChannel(ctx context.Context, c noun.AlertChannel) (noun.AlertChannel, error)
	// UpdateAlertChannel writes the spec and the secrets, and adds one to the
	// version. CodeConflict: the name is taken. CodeRevisionMismatch: it is at
	// another version than c.Version.
	UpdateAlertChannel(ctx context.Context, c noun.AlertChannel) (noun.AlertChannel, error)
	// DeleteAlertChannel forgets it. Deliveries that name it fail from then on.
	DeleteAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) error

	FindAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) (noun.AlertChannel, error)
	// ListAlertChannels lists all of a tenant by name.
	ListAlertChannels(ctx context.Context, tenant domain.TenantID) ([]noun.AlertChannel, error)

	// CreateDefaultReceiver writes the channel and alert settings that name it as the
	// only default channel. made is false, and nothing is written, if the tenant has
	// alert settings or a channel of that name.
	CreateDefaultReceiver(ctx context.Context, c noun.AlertChannel) (made bool, err error)
	// ListUnheardTenants lists the enabled and disabled tenants by name that have no
	// enabled default channel. Without mails, channels for mails do not count.
	ListUnheardTenants(ctx context.Context, mails bool) ([]UnheardTenant, error)
}

// UnheardTenant has no enabled default channel. Failures of its timers and calls reach no
// receiver, and neither do those of jobs without one.
type UnheardTenant struct {
	domain.Tenant
	// Fresh is set if its alert settings were never saved.
	Fresh bool
}
