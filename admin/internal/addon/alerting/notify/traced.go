package notify

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Tracer opens a span around one telling. The run may be nil.
type Tracer interface {
	Tell(ctx context.Context, channel string, run *domain.Execution) (context.Context, func(error))
}

// Traced puts a span around each telling.
func Traced(senders []Sender, tracer Tracer) []Sender {
	out := make([]Sender, len(senders))
	for i, s := range senders {
		out[i] = tracedSender{s, tracer}
	}
	return out
}

type tracedSender struct {
	Sender
	tracer Tracer
}

// Send implements Sender.
func (s tracedSender) Send(ctx context.Context, n *Notice) error {
	ctx, done := s.tracer.Tell(ctx, s.Channel(), n.Execution)
	err := s.Sender.Send(ctx, n)
	done(err)
	return err
}
