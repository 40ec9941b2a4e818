package admin

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
)

// stopTraces is how long the last spans may take to be sent.
const stopTraces = 3 * time.Second

// closeTraces sends the last spans. What cannot be sent is lost, and logged.
func (a *Admin) closeTraces() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTraces)
	defer cancel()
	if err := a.tracer.Close(ctx); err != nil {
		a.log.Warn("the last traces were not sent", "component", "tracing", "err", err)
	}
}

// traced puts a span around each telling, if there are traces at all.
func (a *Admin) traced(senders []alerting.Sender) []alerting.Sender {
	if a.tracer == nil {
		return senders
	}
	out := make([]alerting.Sender, len(senders))
	for i, s := range senders {
		out[i] = tracedSender{s, a.tracer}
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
