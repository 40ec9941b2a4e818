package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// MaintenanceView is what the engine asks of maintenance, and those who show it.
type MaintenanceView interface {
	// Maintenances are those that are on, and those that were within
	// domain.MaintenanceKept, as of a moment ago (run.MaintenanceFor) at most.
	Maintenances(ctx context.Context) (domain.Maintenances, error)
	// KnownMaintenances is that as far as this process knows. It asks nobody.
	KnownMaintenances() domain.Maintenances
}

// Maintenance switches maintenance on and off. All nodes hold to it at the latest
// run.MaintenanceFor later: what was granted before goes on, and nothing is offered or
// granted after that.
type Maintenance interface {
	// StartMaintenance switches it on; Since and ID are set. What is on for the
	// same scope ends then. CodeNotFound: there is no such tenant, or executor in it.
	StartMaintenance(ctx context.Context, m domain.Maintenance) (domain.Maintenance, error)
	// EndMaintenance switches off what is on for the scope, and returns it.
	// CodeNotFound: nothing is.
	EndMaintenance(ctx context.Context, scope domain.MaintenanceScope, by string) (domain.Maintenance, error)
	// ListMaintenance returns what is on for a tenant, its executors and the
	// cluster, and, where Ended is set, what was, newest first.
	ListMaintenance(ctx context.Context, p ListMaintenanceParams) ([]MaintenanceEntry, error)
}

type ListMaintenanceParams struct {
	Tenant domain.TenantID // 0 = of all tenants
	Ended  bool
	Limit  int
}

// MaintenanceEntry is one with what lists show.
type MaintenanceEntry struct {
	domain.Maintenance
	TenantName, ExecutorName string // empty where the scope is larger
	Active                   bool
}
