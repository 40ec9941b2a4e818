package tenant

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	store.Accounts
	store.Cells
	store.Quotas
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store Store
	NewID func() int64
	Now   func() time.Time
	// Made gives a new tenant its default receiver. It may be nil.
	Made            func(ctx context.Context, t domain.Tenant)
	DisabledChanged func(ctx context.Context)
	BeforeDisable   func(ctx context.Context) error
	Log             *slog.Logger
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerTenants()
	a.registerQuotas()
	a.registerCells()
	a.registerCellDocuments()
}
