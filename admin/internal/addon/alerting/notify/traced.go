package notify

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Trace opens a span around one telling. The run may be nil.
type Trace = func(ctx context.Context, channel string, run *domain.Execution) (context.Context, func(error))

// Traced puts a span around each telling.
func Traced(senders []Sender, trace Trace) []Sender {
	out := make([]Sender, len(senders))
	for i, s := range senders {
		out[i] = tracedSender{s, trace}
	}
	return out
}

type tracedSender struct {
	Sender
	trace Trace
}

// Send implements Sender.
func (s tracedSender) Send(ctx context.Context, n *Notice) error {
	ctx, done := s.trace(ctx, s.Channel(), n.Execution)
	err := s.Sender.Send(ctx, n)
	done(err)
	return err
}
