package store

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// SettleInventoryParams is an inventory with the identity of the session that
// it came in on.
type SettleInventoryParams struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Instance domain.InstanceID
	Items    []domain.Held
}

// SettledItem is the answer to one item.
type SettledItem struct {
	Verdict domain.Verdict
	// GivenBack: the execution is due again by this answer.
	GivenBack bool
	Execution domain.Execution // as it is now; zero when there is none for this executor
}

// SettledInventory is the answer to one inventory, in the order of its items.
type SettledInventory struct {
	Items []SettledItem
	Err   error // CodeUnavailable, CodeRolledBack and the like
}

// EndOrphansParams is an inventory that leaves nothing out.
type EndOrphansParams struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Instance domain.InstanceID
	// Since is when the instance registered first, and Taken an instant before
	// the inventory was made; both by the database's clock.
	Since, Taken time.Time
	Has          []domain.Held // phases do not matter
}

// EndedOrphans is what EndOrphans has moved.
type EndedOrphans struct {
	Ended []domain.Execution // lost, cancelled, to be retried, or lingering no more
	Woken []domain.Execution // by the slots that became free
}
