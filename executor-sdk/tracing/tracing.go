// Package tracing puts handlers into the OpenTelemetry trace of their run:
//
//	ex.Use(tracing.Interceptor())
//
// The span of a handler continues the trace that the admin began when the run
// was planned or asked for, and the handler's context carries it: spans that the
// handler begins with it are its children, and an HTTP client with otelhttp
// takes the trace along. Which spans are kept, and where they go, is for the
// application's tracer provider, as usual.
//
// The package is a module of its own, so that applications without OpenTelemetry
// do not inherit it. Whoever uses another tracer reads Task.Traceparent.
package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

const scope = "github.com/carillon-sched/carillon/executor-sdk/tracing"

// Option changes Interceptor.
type Option func(*config)

type config struct{ provider trace.TracerProvider }

// WithTracerProvider makes the spans go there. Default: the global provider
// (otel.GetTracerProvider) when Interceptor is called.
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.provider = p } }

// Interceptor writes a span around every call of a handler. Use it first, so
// that what the other interceptors do is within it.
func Interceptor(options ...Option) executor.Interceptor {
	c := config{provider: otel.GetTracerProvider()}
	for _, o := range options {
		o(&c)
	}
	tracer := c.provider.Tracer(scope, trace.WithInstrumentationVersion(executor.Version))
	return func(ctx context.Context, next executor.Next) error {
		task := executor.TaskFrom(ctx)
		ctx, span := tracer.Start(continued(ctx, task), "handler "+task.Handler,
			trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(about(task)...))
		defer span.End()
		err := next(ctx)
		if err != nil {
			finish(ctx, span, err)
		}
		return err
	}
}

// continued is a context in the trace that the admin told.
func continued(ctx context.Context, task executor.Task) context.Context {
	if task.Traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": task.Traceparent})
}

// about names the run, in the admin's words. Ids are text: trace stores cut
// large numbers.
func about(task executor.Task) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("carillon.run.id", task.Key()), attribute.Int64("carillon.fence", task.Fence),
		attribute.Int("carillon.attempt", task.Attempt), attribute.String("carillon.job.name", task.JobName),
		attribute.String("carillon.handler", task.Handler), attribute.String("carillon.cause", task.Cause),
	}
}

func finish(ctx context.Context, span trace.Span, err error) {
	span.SetAttributes(attribute.String("carillon.error_kind", string(executor.KindOf(err))))
	if cause := context.Cause(ctx); cause != nil {
		span.SetAttributes(attribute.String("carillon.cancelled_because", cause.Error()))
	}
	var crash *executor.PanicError
	if errors.As(err, &crash) {
		span.RecordError(err, trace.WithAttributes(attribute.String("exception.stacktrace", crash.Stack)))
	} else {
		span.RecordError(err)
	}
	span.SetStatus(codes.Error, err.Error())
}
