package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Trigger is the span of a run that is being created. A nil Trigger is none.
type Trigger struct{ spans []trace.Span }

// Plan begins the trigger span of a run that a schedule plans, and writes its
// context into the run when it is recorded.
func (t *Tracer) Plan(e *domain.Execution) *Trigger {
	if t == nil {
		return nil
	}
	return t.trigger(context.Background(), e)
}

// Ask begins the trigger span of a run that somebody asked for now; e.Trace is
// the caller's context until then.
func (t *Tracer) Ask(e *domain.Execution, now time.Time) *Trigger {
	if t == nil {
		return nil
	}
	caller := e.Trace
	if e.NotBefore.Sub(now) < FarApart {
		return t.trigger(contextOf(context.Background(), caller), e)
	}
	if caller == "" {
		return t.trigger(context.Background(), e)
	}
	// The run's trace begins when it is due; the caller's shows that it asked.
	own := t.trigger(context.Background(), e, trace.WithLinks(trace.Link{SpanContext: spanContext(caller)}))
	if own == nil {
		return nil
	}
	_, asked := t.tracer.Start(contextOf(context.Background(), caller), "schedule run", trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(about(e)...), trace.WithLinks(trace.Link{SpanContext: own.spans[0].SpanContext()}))
	own.spans = append(own.spans, asked)
	return own
}

// AskBackfill begins the span of a request for a backfill, below the caller's,
// and writes its context into it when it is recorded.
func (t *Tracer) AskBackfill(b *domain.Backfill) *Trigger {
	if t == nil {
		return nil
	}
	_, span := t.tracer.Start(contextOf(context.Background(), b.Trace), "backfill", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(
		attribute.String("carillon.backfill.id", b.ID.String()), attribute.String("carillon.job.id", b.JobID.String()),
		attribute.String("carillon.tenant.id", b.TenantID.String()), attribute.Int("carillon.backfill.fires", b.Planned)))
	if !span.SpanContext().IsSampled() {
		return nil
	}
	b.Trace = traceOf(span.SpanContext())
	return &Trigger{[]trace.Span{span}}
}

// Backfill begins the trigger span of a run of a backfill: a trace of its own
// that links to the request, since there may be thousands, for hours. Runs of
// one that its caller does not record are not recorded.
func (t *Tracer) Backfill(b *domain.Backfill, e *domain.Execution) *Trigger {
	return t.linked(b.Trace, e)
}

// Fire begins the trigger span of a timer's run: a trace of its own that links to
// the request which set the timer. e.Trace is that of the request until then.
func (t *Tracer) Fire(e *domain.Execution) *Trigger { return t.linked(e.Trace, e) }

func (t *Tracer) linked(asked domain.Trace, e *domain.Execution) *Trigger {
	if t == nil || asked != "" && !asked.Sampled() {
		return nil
	}
	var options []trace.SpanStartOption
	if asked != "" {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: spanContext(asked)}))
	}
	return t.trigger(context.Background(), e, options...)
}

func (t *Tracer) trigger(ctx context.Context, e *domain.Execution, more ...trace.SpanStartOption) *Trigger {
	_, span := t.tracer.Start(ctx, "trigger", append(more, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(about(e)...))...)
	if !span.SpanContext().IsSampled() {
		if span.SpanContext().IsValid() && e.Trace != "" {
			return nil // not recorded, and everybody further on is to know: the caller's context goes on
		}
		e.Trace = ""
		return nil
	}
	e.Trace = traceOf(span.SpanContext())
	return &Trigger{[]trace.Span{span}}
}

// Done ends the span: the run is stored. Without it nothing is written.
func (t *Trigger) Done() {
	if t == nil {
		return
	}
	for _, span := range t.spans {
		span.End()
	}
}

// Step writes a span about what was done for a run's current attempt.
func (t *Tracer) Step(name string, e *domain.Execution, began, ended time.Time, more ...attribute.KeyValue) {
	if t == nil || !e.Trace.Sampled() {
		return
	}
	_, span := t.tracer.Start(contextOf(context.Background(), domain.AttemptTrace(e)), name,
		trace.WithTimestamp(began), trace.WithAttributes(more...))
	span.End(trace.WithTimestamp(ended))
}

// Attempt writes the span of an attempt that is over, by the stamps of its row.
func (t *Tracer) Attempt(e *domain.Execution) {
	if t == nil || !e.Trace.Sampled() || e.OfferedAt.IsZero() || e.FinishedAt.IsZero() {
		return
	}
	t.part(e)
	_, id := domain.AttemptTrace(e).IDs()
	ctx := withSpanID(contextOf(context.Background(), domain.PartTrace(e)), id)
	_, span := t.tracer.Start(ctx, "attempt", trace.WithTimestamp(e.OfferedAt), trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(append(about(e), attribute.Int("carillon.attempt", e.Attempt), attribute.Int64("carillon.fence", e.Fence),
			attribute.String("carillon.instance.id", e.Instance.String()), attribute.String("carillon.state", e.State.String()))...))
	if e.State != domain.Succeeded {
		span.SetStatus(codes.Error, string(e.Reason))
	}
	span.End(trace.WithTimestamp(e.FinishedAt))
}

// part writes the span of a part of a family whose last attempt this was, from
// its birth to its end, below the trigger of the whole.
func (t *Tracer) part(e *domain.Execution) {
	if !e.IsPart() || !e.State.Terminal() {
		return
	}
	_, id := domain.PartTrace(e).IDs()
	_, span := t.tracer.Start(withSpanID(contextOf(context.Background(), e.Trace), id), e.Part.String(), trace.WithTimestamp(e.PlannedAt),
		trace.WithAttributes(append(about(e), attribute.String("carillon.parent.id", e.Parent.String()),
			attribute.Int("carillon.shard.index", e.Shard), attribute.Int("carillon.shard.total", e.Shards))...))
	if e.State != domain.Succeeded {
		span.SetStatus(codes.Error, string(e.Reason))
	}
	span.End(trace.WithTimestamp(e.FinishedAt))
}

// Tell is a telling about a run; its end is told to the function that it
// returns. e may be nil.
func (t *Tracer) Tell(ctx context.Context, channel string, e *domain.Execution) (context.Context, func(error)) {
	if t == nil || e == nil || !e.Trace.Sampled() {
		return ctx, func(error) {}
	}
	attempt := domain.AttemptTrace(e)
	var options []trace.SpanStartOption
	parent := contextOf(ctx, attempt)
	if time.Since(e.FinishedAt) >= FarApart {
		parent = ctx
		options = append(options, trace.WithLinks(trace.Link{SpanContext: spanContext(attempt)}))
	}
	options = append(options, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(append(about(e), attribute.String("carillon.channel", channel))...))
	ctx, span := t.tracer.Start(parent, "alert", options...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "not taken") // the error may hold the receiver's address
		}
		span.End()
	}
}

// about names a run. Ids are text: trace stores cut large numbers.
func about(e *domain.Execution) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("carillon.run.id", e.ID.String()), attribute.String("carillon.job.id", e.JobID.String()),
		attribute.String("carillon.tenant.id", e.TenantID.String()), attribute.String("carillon.cause", string(e.Cause)),
		attribute.String("carillon.fire_time", e.FireAt.UTC().Format(time.RFC3339Nano)),
	}
}
