package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Admission lets runs start that found no room under a limit.
type Admission interface {
	// LimitsOn returns which limits bound the runs of an executor, as far as
	// this process knows. It asks nobody.
	LimitsOn(tenant domain.TenantID, executor domain.ExecutorID) []domain.LimitKey
	// AdmitWaiting wakes who may be offered now, first in precedence first, and
	// returns them; nil keys mean all limits under which somebody waits, but
	// for those that another transaction holds. A woken run keeps its place
	// until it is offered, so that nobody overtakes it.
	AdmitWaiting(ctx context.Context, keys []domain.LimitKey) ([]domain.Execution, error)
}

// Limits bounds how many runs of a tenant or an executor are on instances at
// once. OfferExecutions holds to the limits: a run that finds no room is
// answered with OfferBlocked and waits (domain.ReasonWaitLimit). Nothing that
// ends a run knows of limits; the caller that hears of the end asks
// AdmitWaiting, and any node asks it once a second for what was not heard.
type Limits interface {
	// SetLimit sets a limit, or takes it away with Max 0. Runs that are on
	// instances then are counted, and not stopped. All nodes hold to it at the
	// latest a second later. CodeNotFound: no such tenant, or executor in it.
	SetLimit(ctx context.Context, l domain.Limit) error
	// ListLimits lists a tenant's own limit and those of its executors.
	ListLimits(ctx context.Context, tenant domain.TenantID) ([]LimitView, error)
}

// LimitView is a limit with what lists show.
type LimitView struct {
	domain.Limit
	ExecutorName string // empty for the tenant's own
	Running      int
	Waiting      int
}
