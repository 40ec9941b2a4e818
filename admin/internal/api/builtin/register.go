package builtin

import (
	"context"
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	store.Connections
	store.Scripts
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store   Store
	Secrets web.Sealer
	NewID   func() int64
	Publish func(ctx context.Context, m domain.Message) (permanent bool, err error)
	// Changed waits until this node goes by a tenant's changed connections: Within.
	Changed func(ctx context.Context, tenant domain.TenantID)
	Log     *slog.Logger
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerConnections()
	a.registerCallbacks()
}
