package store

import "github.com/carillon-sched/carillon/admin/internal/domain"

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
