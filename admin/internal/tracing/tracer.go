package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// FarApart is how long after what caused it something still belongs to the
// same trace.
const FarApart = 5 * time.Minute

// Options of New.
type Options struct {
	Node, Version string
	Logger        *slog.Logger
	Getenv        func(string) string
	// Exporter takes the spans; nil: OTLP over HTTP, as the environment says.
	Exporter sdktrace.SpanExporter
}

// Tracer writes spans. A nil Tracer is one that is off.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

// New returns nil when the environment asks for no traces: that is, unless an
// OTLP endpoint is named or OTEL_TRACES_EXPORTER is otlp. It connects to nothing.
func New(ctx context.Context, o Options) (*Tracer, error) {
	if o.Exporter == nil {
		wanted, err := wanted(o.Getenv)
		if err != nil || !wanted {
			return nil, err
		}
		if o.Exporter, err = otlptracehttp.New(ctx); err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
	}
	// The environment wins: OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "carillon"), attribute.String("service.version", o.Version),
			attribute.String("service.instance.id", o.Node)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: %w", err)
	}
	// The sampler, the limits and the batches are configured by the environment
	// as well; the default of the sampler is parentbased_always_on.
	log := o.Logger.With("component", "tracing")
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithBatcher(&toldExporter{SpanExporter: o.Exporter, log: log}),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("github.com/carillon-sched/carillon"), log: log}, nil
}

// wanted reads who is to get traces. Exporters that are not built in are an
// error: whoever names one would wait for traces in vain.
func wanted(getenv func(string) string) (bool, error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	for _, name := range [...]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		if protocol := getenv(name); protocol != "" && protocol != "http/protobuf" {
			return false, fmt.Errorf("traces: %s is %q; this server speaks http/protobuf", name, protocol)
		}
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
		return true, nil
	case "":
		return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != "", nil
	default:
		return false, fmt.Errorf("traces: OTEL_TRACES_EXPORTER is %q; this server knows otlp and none", exporter)
	}
}

// stopTime is how long the last spans may take to be sent.
const stopTime = 3 * time.Second

// Stop sends the last spans and ends the exporter. Spans that cannot be sent are lost, and
// the log says so.
func (t *Tracer) Stop() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces were not sent", "err", err)
	}
}

// Flush sends what waits.
func (t *Tracer) Flush(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.ForceFlush(ctx)
}

// toldExporter says in the log when exports begin to fail and when they work
// again. Spans that could not be sent are lost; nothing waits for them.
type toldExporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	failed atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *toldExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if failed := err != nil; e.failed.Swap(failed) != failed {
		if failed {
			e.log.Warn("traces cannot be exported; they are lost", "err", err)
		} else {
			e.log.Info("traces are exported again")
		}
	}
	return nil // told
}

// contextOf makes a trace the parent of what is begun with the context.
func contextOf(ctx context.Context, t domain.Trace) context.Context {
	if t == "" {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, spanContext(t))
}

func spanContext(t domain.Trace) trace.SpanContext {
	traceID, spanID := t.IDs()
	flags := trace.TraceFlags(0)
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: spanID, TraceFlags: flags.WithSampled(t.Sampled()), Remote: true,
	})
}

func traceOf(s trace.SpanContext) domain.Trace {
	return domain.NewTrace(s.TraceID(), s.SpanID(), s.IsSampled())
}
