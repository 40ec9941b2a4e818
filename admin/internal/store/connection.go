package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Connections keeps what leads to the tenants' brokers. Secrets come and go
// sealed.
type Connections interface {
	// CreateConnection writes version 1. The tenant has the built-in executor then,
	// which publishes. CodeConflict: the name is taken, or
	// there are domain.MaxConnections.
	CreateConnection(ctx context.Context, c domain.Connection) (domain.Connection, error)
	// UpdateConnection writes the spec and the secrets, and adds one to the version.
	// CodeConflict: the name is taken. CodeRevisionMismatch: it is at another version
	// than c.Version.
	UpdateConnection(ctx context.Context, c domain.Connection) (domain.Connection, error)
	// DeleteConnection forgets it. Runs that name it fail from then on.
	DeleteConnection(ctx context.Context, tenant domain.TenantID, id domain.ConnectionID) error

	FindConnection(ctx context.Context, tenant domain.TenantID, id domain.ConnectionID) (domain.Connection, error)
	FindConnectionByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Connection, error)
	// ListConnections lists all of a tenant by name.
	ListConnections(ctx context.Context, tenant domain.TenantID) ([]domain.Connection, error)
}
