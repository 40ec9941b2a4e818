package tracing_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/tracing"
)

const caller = domain.Trace("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")

func newTracer(t testing.TB) (*tracing.Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	out := tracetest.NewInMemoryExporter()
	tr, err := tracing.New(context.Background(), tracing.Options{
		Node: "n1", Version: "test", Logger: slog.New(slog.DiscardHandler), Exporter: out, Getenv: func(string) string { return "" },
	})
	require.NoError(t, err)
	t.Cleanup(func() { tr.Stop() })
	return tr, out
}

// spans are what was written, by name.
func spans(t *testing.T, tr *tracing.Tracer, out *tracetest.InMemoryExporter) map[string]tracetest.SpanStub {
	t.Helper()
	require.NoError(t, tr.Flush(t.Context()))
	all := map[string]tracetest.SpanStub{}
	for _, s := range out.GetSpans() {
		all[s.Name] = s
	}
	return all
}

func run(now time.Time) *domain.Execution {
	return &domain.Execution{
		ID: 7, TenantID: 1, JobID: 2, Cause: domain.CauseSchedule, FireAt: now, NotBefore: now, State: domain.Succeeded, Attempt: 1, Fence: 3,
		OfferedAt: now, FinishedAt: now.Add(time.Second),
	}
}

// A run's spans hang together whoever writes them: all that is handed on is
// what stands in the row.
func TestSpansOfARunAreOneTree(t *testing.T) {
	now := time.Now()
	first, out := newTracer(t)
	e := run(now)
	first.Plan(e).Done()
	require.True(t, e.Trace.Sampled())

	second := *e // as another node reads it
	first.Step("offer", e, now, now.Add(time.Millisecond))
	first.Attempt(&second)
	all := spans(t, first, out)
	require.Len(t, all, 3)
	trigger, attempt, offer := all["trigger"], all["attempt"], all["offer"]
	require.False(t, trigger.Parent.IsValid())
	require.Equal(t, e.Trace.ID(), trigger.SpanContext.TraceID().String())
	require.Equal(t, trigger.SpanContext.SpanID(), attempt.Parent.SpanID())
	require.Equal(t, attempt.SpanContext.SpanID(), offer.Parent.SpanID())
	require.Equal(t, string(e.Trace.Attempt(3)), "00-"+attempt.SpanContext.TraceID().String()+"-"+attempt.SpanContext.SpanID().String()+"-01",
		"the executor is told this context")
	require.True(t, attempt.StartTime.Equal(e.OfferedAt) && attempt.EndTime.Equal(e.FinishedAt))
	require.Equal(t, codes.Unset, attempt.Status.Code)
}

func TestAFailedAttemptSaysWhy(t *testing.T) {
	tr, out := newTracer(t)
	e := run(time.Now())
	tr.Plan(e).Done()
	e.State, e.Reason = domain.Failed, domain.ReasonHandlerPanic
	tr.Attempt(e)
	require.Equal(t, sdktrace.Status{Code: codes.Error, Description: "handler_panic"}, spans(t, tr, out)["attempt"].Status)
}

func TestARunThatIsNotStoredLeavesNoTrace(t *testing.T) {
	tr, out := newTracer(t)
	tr.Plan(run(time.Now())) // its transaction was repeated: no Done
	require.Empty(t, spans(t, tr, out))
}

func TestAskedForByATracedCaller(t *testing.T) {
	now := time.Now()
	tr, out := newTracer(t)
	e := run(now)
	e.Trace = caller
	tr.Ask(e, now).Done()
	trigger := spans(t, tr, out)["trigger"]
	require.Equal(t, caller.ID(), e.Trace.ID())
	require.NotEqual(t, caller, e.Trace)
	require.Equal(t, "00f067aa0ba902b7", trigger.Parent.SpanID().String())
}

func TestAskedForAheadOfItsTime(t *testing.T) {
	now := time.Now()
	tr, out := newTracer(t)
	e := run(now.Add(time.Hour))
	e.Trace = caller
	tr.Ask(e, now).Done()
	all := spans(t, tr, out)
	trigger, asked := all["trigger"], all["schedule run"]
	require.NotEqual(t, caller.ID(), e.Trace.ID(), "two traces")
	require.Equal(t, "00f067aa0ba902b7", asked.Parent.SpanID().String())
	require.Equal(t, trigger.SpanContext.SpanID(), asked.Links[0].SpanContext.SpanID(), "that name each other")
	require.Equal(t, "00f067aa0ba902b7", trigger.Links[0].SpanContext.SpanID().String())
}

// What the caller does not record is not recorded here, and the executor hears
// of that too.
func TestTheCallersDecisionHolds(t *testing.T) {
	now := time.Now()
	tr, out := newTracer(t)
	e := run(now)
	e.Trace = caller[:53] + "00"
	tr.Ask(e, now).Done()
	tr.Step("offer", e, now, now)
	tr.Attempt(e)
	require.Empty(t, spans(t, tr, out))
	require.Equal(t, caller[:53]+"00", e.Trace)
}

func TestAlerts(t *testing.T) {
	tr, out := newTracer(t)
	e := run(time.Now())
	tr.Plan(e).Done()
	ctx, done := tr.Tell(t.Context(), "webhook", e)
	require.NotEqual(t, t.Context(), ctx)
	done(errors.New("https://secret.example.test/hook said no"))
	alert := spans(t, tr, out)["alert"]
	require.Equal(t, e.Trace.ID(), alert.SpanContext.TraceID().String())
	require.Equal(t, codes.Error, alert.Status.Code)
	require.NotContains(t, alert.Status.Description, "secret")

	out.Reset()
	e.FinishedAt = time.Now().Add(-time.Hour)
	_, done = tr.Tell(t.Context(), "webhook", e)
	done(nil)
	alert = spans(t, tr, out)["alert"]
	require.NotEqual(t, e.Trace.ID(), alert.SpanContext.TraceID().String(), "long after it is a trace of its own")
	require.Equal(t, e.Trace.ID(), alert.Links[0].SpanContext.TraceID().String())
}

func TestOffUnlessAskedFor(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		on   bool
		fail string
	}{
		"nothing":              {nil, false, ""},
		"an endpoint":          {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, true, ""},
		"one for traces":       {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, true, ""},
		"by name":              {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		"none":                 {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, false, ""},
		"disabled":             {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}, false, ""},
		"one that is not here": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "zipkin"},
		"another protocol":     {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := tracing.New(t.Context(), tracing.Options{
				Logger: slog.New(slog.DiscardHandler), Getenv: func(key string) string { return test.env[key] },
			})
			if test.fail != "" {
				require.ErrorContains(t, err, test.fail)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.on, tr != nil)
			tr.Stop()
		})
	}
}

// A run that is not recorded costs nothing that could be measured: no
// allocation, whether tracing is off or the run is left out.
func TestWhatIsNotRecordedCostsNothing(t *testing.T) {
	on, _ := newTracer(t)
	now := time.Now()
	for name, tr := range map[string]*tracing.Tracer{"off": nil, "on": on} {
		e := run(now)
		e.Trace = ""
		require.Zero(t, testing.AllocsPerRun(100, func() {
			tr.Step("offer", e, now, now)
			tr.Attempt(e)
		}), name)
	}
}

func BenchmarkLifeOfARun(b *testing.B) {
	on, out := newTracer(b)
	now := time.Now()
	for name, tr := range map[string]*tracing.Tracer{"off": nil, "on": on} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				e := run(now)
				begun := tr.Plan(e)
				begun.Done()
				for _, step := range []string{"offer", "grant", "result"} {
					tr.Step(step, e, now, now)
				}
				tr.Attempt(e)
			}
		})
		out.Reset()
	}
}
