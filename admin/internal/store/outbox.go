package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Outbox takes events. The transactions that move runs write there as well.
type Outbox interface {
	// RecordAlerts writes events. Their reader ignores one whose dedupe key it knows.
	RecordAlerts(ctx context.Context, events []domain.AlertEvent) error
}

// Feed hands out what the core has left in the outbox.
type Feed interface {
	// ReadOutbox returns up to limit rows of a topic, the oldest first; fewer if they are
	// large.
	ReadOutbox(ctx context.Context, topic domain.Topic, limit int) ([]OutboxRow, error)
	// DeleteOutbox forgets rows of a topic that their reader has done with.
	DeleteOutbox(ctx context.Context, topic domain.Topic, ids []int64) error
	// OutboxDepths says how much waits for each reader. It counts at most most rows of a
	// topic.
	OutboxDepths(ctx context.Context, most int) (map[domain.Topic]domain.OutboxDepth, error)
}

// OutboxRow is what one transaction has left to the reader of a topic. Body is a list, in
// the form of the topic: domain.DecodeList reads callbacks and events.
type OutboxRow struct {
	ID   int64
	Body []byte
}
