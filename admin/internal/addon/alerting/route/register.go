package route

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
	store.Alerts
	store.AlertChannels
	store.AlertRules
	FindTenant(ctx context.Context, id domain.TenantID) (domain.Tenant, error)
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (store.JobView, error)
	FindExecution(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (store.ExecutionView, error)
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store    Store
	Secrets  web.Sealer
	Channels Channels
	NewID    func() int64
	Now      func() time.Time
	Log      *slog.Logger
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerIncidents()
	a.registerAlertChannels()
	a.registerAlertRules()
	a.registerSilences()
	a.registerDeliveries()
}
