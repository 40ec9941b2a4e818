package tracing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/executor-sdk/tracing"
	"github.com/carillon-sched/carillon/proto"
)

const (
	traceID  = "4bf92f3577b34da6a3ce929d0e0e4736"
	attempt  = "00f067aa0ba902b7"
	recorded = "00-" + traceID + "-" + attempt + "-01"
	dropped  = "00-" + traceID + "-" + attempt + "-00"
)

// patience bounds waits that end sooner.
const patience = 30 * time.Second

// handled runs an offer through a real executor and returns what was written.
func handled(t *testing.T, traceparent string, handler func(context.Context) error) (spans []tracetest.SpanStub, task executor.Task) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	admin := &fakeadmin.Admin{}
	require.NoError(t, admin.Start())
	defer admin.Close()
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{admin.Address()}, Token: fakeadmin.Token, JournalDir: t.TempDir(),
	})
	require.NoError(t, err)
	ex.Use(tracing.Interceptor(tracing.WithTracerProvider(provider)))
	executor.HandleFunc(ex, "close-day", func(ctx context.Context) error {
		task = executor.TaskFrom(ctx)
		_, inner := provider.Tracer("application").Start(ctx, "inner")
		inner.End()
		return handler(ctx)
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	_, err = admin.Wait(patience, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	require.NoError(t, err)
	s := admin.Sessions()[0]
	require.NoError(t, s.Offer(&proto.Offer{
		ExecutionId: 7, Fence: 2, Handler: "close-day", JobName: "Close the day", Attempt: 1, MaxAttempts: 1, Granted: true, Traceparent: traceparent,
	}))
	_, err = admin.Wait(patience, func(s fakeadmin.Seen) bool { return len(s.Results) == 1 })
	require.NoError(t, err)
	stop()
	require.NoError(t, <-done)
	return out.GetSpans(), task
}

// named returns the span of that name.
func named(t *testing.T, spans []tracetest.SpanStub, name string) tracetest.SpanStub {
	t.Helper()
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span %q in %v", name, spans)
	return tracetest.SpanStub{}
}

func TestAHandlerContinuesTheTraceOfItsRun(t *testing.T) {
	spans, task := handled(t, recorded, func(context.Context) error { return nil })
	handler, inner := named(t, spans, "handler close-day"), named(t, spans, "inner")
	require.Equal(t, traceID, handler.SpanContext.TraceID().String())
	require.Equal(t, attempt, handler.Parent.SpanID().String(), "the attempt's span, which the admin writes")
	require.True(t, handler.Parent.IsRemote())
	require.Equal(t, handler.SpanContext.SpanID(), inner.Parent.SpanID(), "the handler's own spans are its children")
	require.Equal(t, codes.Unset, handler.Status.Code)
	require.Equal(t, traceID, task.TraceID())
	about := map[string]string{}
	for _, a := range handler.Attributes {
		about[string(a.Key)] = a.Value.String()
	}
	require.Equal(t, "7", about["carillon.run.id"])
	require.Equal(t, "Close the day", about["carillon.job.name"])
}

func TestWhatTheAdminDoesNotRecordIsNotRecorded(t *testing.T) {
	spans, task := handled(t, dropped, func(context.Context) error { return nil })
	require.Empty(t, spans)
	require.Equal(t, traceID, task.TraceID(), "its id is still good for log lines")
}

func TestWithoutATraceItBeginsOne(t *testing.T) {
	spans, task := handled(t, "", func(context.Context) error { return nil })
	handler := named(t, spans, "handler close-day")
	require.False(t, handler.Parent.IsValid())
	require.Empty(t, task.TraceID())
}

func TestAnEndThatIsNoSuccess(t *testing.T) {
	spans, _ := handled(t, recorded, func(context.Context) error { return executor.Permanent(errors.New("the till is empty")) })
	handler := named(t, spans, "handler close-day")
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "the till is empty"}, handler.Status)

	spans, _ = handled(t, recorded, func(context.Context) error { panic("out of tune") })
	handler = named(t, spans, "handler close-day")
	require.Equal(t, codes.Error, handler.Status.Code)
	require.Len(t, handler.Events, 1)
	stack := ""
	for _, a := range handler.Events[0].Attributes {
		if a.Key == "exception.stacktrace" {
			stack = a.Value.AsString()
		}
	}
	require.Contains(t, stack, "tracing_test.go")
}
