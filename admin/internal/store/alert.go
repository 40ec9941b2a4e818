package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Outbox takes alert events.
type Outbox interface {
	// RecordAlerts writes events; one whose dedupe key exists is ignored.
	// Events of ended runs are written by the moves themselves.
	RecordAlerts(ctx context.Context, events []domain.AlertEvent) error
}

// Alerts makes deliveries of events, and is the log of them.
type Alerts interface {
	// ExpandAlertEvents takes up to limit events that have no deliveries yet,
	// asks expand for them, and writes the deliveries, in one transaction.
	ExpandAlertEvents(ctx context.Context, limit int, expand func(AlertContext) []domain.Delivery) (int, error)
	// ClaimDueDeliveries takes up to Limit deliveries whose time has come,
	// counts the attempt and hides them from others for Hold, or until their
	// claimer is not among the Living any more.
	ClaimDueDeliveries(ctx context.Context, p ClaimDeliveriesParams) ([]DueDelivery, error)
	// ReleaseDeliveries gives back what this boot has claimed, at once; what
	// another one has taken meanwhile stays with it.
	ReleaseDeliveries(ctx context.Context, boot string, ids []int64) error
	// FinishDelivery writes what became of an attempt to deliver. retryIn is
	// used with DeliveryPending.
	FinishDelivery(ctx context.Context, id int64, state domain.DeliveryState, retryIn time.Duration, lastError string) error
	ListDeliveries(ctx context.Context, p ListDeliveriesParams) ([]domain.Delivery, error)
	// OutboxLag is how long what has to be told waits already: since the oldest
	// event without deliveries, or since the earliest pending delivery was due.
	OutboxLag(ctx context.Context) (time.Duration, error)
}

type ClaimDeliveriesParams struct {
	Limit int
	Hold  time.Duration
	// Boot is the claiming node's.
	Boot string
	// Living are the boots of all nodes whose leases last, or may. The claims
	// of any other are free. Empty: not known, nothing becomes free.
	Living []string
}

// AlertContext is an event with what a message about it needs.
type AlertContext struct {
	Event     domain.AlertEvent
	Job       domain.Job // at the event's revision
	Executor  domain.Executor
	Execution *domain.Execution // nil for events that are not about a run
	Tenant    domain.Tenant
}

type DueDelivery struct {
	Delivery domain.Delivery
	Context  AlertContext
}

type ListDeliveriesParams struct {
	Tenant domain.TenantID
	Job    domain.JobID
	State  domain.DeliveryState // 0 = all
	Before int64                // cursor: ids below; 0 = newest
	Limit  int
}
