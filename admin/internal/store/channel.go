package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// AlertChannels keeps by which means tenants are told. Secrets come and go
// sealed.
type AlertChannels interface {
	// CreateAlertChannel writes version 1. CodeConflict: the name is taken, or
	// there are domain.MaxAlertChannels.
	CreateAlertChannel(ctx context.Context, c domain.AlertChannel) (domain.AlertChannel, error)
	// UpdateAlertChannel writes the spec and the secrets, and adds one to the
	// version. CodeConflict: the name is taken. CodeRevisionMismatch: it is at
	// another version than c.Version.
	UpdateAlertChannel(ctx context.Context, c domain.AlertChannel) (domain.AlertChannel, error)
	// DeleteAlertChannel forgets it. Deliveries that name it fail from then on.
	DeleteAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) error

	FindAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) (domain.AlertChannel, error)
	// ListAlertChannels lists all of a tenant by name.
	ListAlertChannels(ctx context.Context, tenant domain.TenantID) ([]domain.AlertChannel, error)
}
