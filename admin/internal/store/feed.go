package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Outbox takes alert events.
type Outbox interface {
	// RecordAlerts writes events; one whose dedupe key exists is ignored.
	// Events of ended runs are written by the moves themselves.
	RecordAlerts(ctx context.Context, events []domain.AlertEvent) error
}

// Feed hands the events of the outbox to subscribers.
type Feed interface {
	// TakeEvents returns up to limit events that no subscriber has taken and whose time has
	// come, the oldest first, and marks them as taken in the same transaction. A subscriber
	// with tables of its own takes them in its own transaction instead
	// (gormstore/engine.TakeEvents).
	TakeEvents(ctx context.Context, limit int) ([]domain.AlertEvent, error)
}
