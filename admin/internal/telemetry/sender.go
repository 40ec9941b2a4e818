package telemetry

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
)

// Senders puts a span around each telling; tracer nil: there are no traces.
func Senders(senders []alerting.Sender, tracer *tracing.Tracer) []alerting.Sender {
	if tracer == nil {
		return senders
	}
	out := make([]alerting.Sender, len(senders))
	for i, s := range senders {
		out[i] = tracedSender{s, tracer}
	}
	return out
}

type tracedSender struct {
	alerting.Sender
	tracer *tracing.Tracer
}

// Send implements alerting.Sender.
func (s tracedSender) Send(ctx context.Context, n *alerting.Notice) error {
	ctx, done := s.tracer.Tell(ctx, s.Channel(), n.Execution)
	err := s.Sender.Send(ctx, n)
	done(err)
	return err
}
