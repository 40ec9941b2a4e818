package notify

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertChannels keeps the means by which tenants get alerts. Secrets are sealed.
type AlertChannels interface {
	FindAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) (noun.AlertChannel, error)
	// ListAlertChannels lists all of a tenant by name.
	ListAlertChannels(ctx context.Context, tenant domain.TenantID) ([]noun.AlertChannel, error)

	// CreateDefaultReceiver writes the channel and alert settings that name it as the
	// only default channel. made is false, and nothing is written, if the tenant has
	// alert settings or a channel of that name.
	CreateDefaultReceiver(ctx context.Context, c noun.AlertChannel, by string) (made bool, err error)
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
