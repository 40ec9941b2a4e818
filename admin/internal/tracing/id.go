package tracing

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/trace"
)

// ids makes random ids, but for a span whose id was computed before.
type ids struct{}

type wantedSpan struct{}

// withSpanID makes the next span of ctx have that id.
func withSpanID(ctx context.Context, id trace.SpanID) context.Context {
	return context.WithValue(ctx, wantedSpan{}, id)
}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(context.Context) (trace.TraceID, trace.SpanID) {
	var id trace.TraceID
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) // never zero
	return id, randomSpan()
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if id, ok := ctx.Value(wantedSpan{}).(trace.SpanID); ok {
		return id
	}
	return randomSpan()
}

func randomSpan() (id trace.SpanID) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}
