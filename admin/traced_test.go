package admin_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/tracing"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// tracedSpan is a span as a trace store sees it.
type tracedSpan struct{ name, trace, id, parent, link string }

// collector is a trace store that takes OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []tracedSpan // guarded by mu
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var batch otlp.ExportTraceServiceRequest
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(raw, &batch)
		}
		if err != nil {
			t.Error(err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, resource := range batch.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					one := tracedSpan{s.Name, hex.EncodeToString(s.TraceId), hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), ""}
					for _, l := range s.Links {
						one.link = hex.EncodeToString(l.TraceId) + "/" + hex.EncodeToString(l.SpanId)
					}
					c.spans = append(c.spans, one)
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// of returns the spans of a trace by name.
func (c *collector) of(trace string) map[string]tracedSpan {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]tracedSpan{}
	for _, s := range c.spans {
		if s.trace == trace {
			out[s.name] = s
		}
	}
	return out
}

// named returns all spans of a name, of one trace or, with "", of all.
func (c *collector) named(trace, name string) (out []tracedSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.name == name && (trace == "" || s.trace == trace) {
			out = append(out, s)
		}
	}
	return out
}

const (
	callerTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan  = "00f067aa0ba902b7"
)

// runTraced asks for a run as a caller that is traced.
func (n *node) runTraced(job string) string {
	n.t.Helper()
	return n.askTraced("/api/v1/jobs/"+job+"/run", `{}`)
}

// askTraced asks for something as a caller that is traced, and returns its id.
func (n *node) askTraced(path, body string) string {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPost, n.admin.URL()+path, strings.NewReader(body))
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+n.token)
	req.Header.Set("Traceparent", "00-"+callerTrace+"-"+callerSpan+"-01")
	res, err := http.DefaultClient.Do(req)
	require.NoError(n.t, err)
	defer res.Body.Close()
	require.Equal(n.t, http.StatusCreated, res.StatusCode)
	var r run
	require.NoError(n.t, json.NewDecoder(res.Body).Decode(&r))
	return r.ID
}

// TestOneTraceFromTheCallerIntoTheHandler follows a run over every boundary:
// request, database, wire, handler, result, alert.
func TestOneTraceFromTheCallerIntoTheHandler(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			store := newCollector(t)
			hook := testenv.HTTPSink(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", store.URL)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			inside := tracetest.NewInMemoryExporter()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(inside))
			var seen executor.Task
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				ex.Use(tracing.Interceptor(tracing.WithTracerProvider(provider)))
				executor.HandleFunc(ex, "close-day", func(ctx context.Context) error {
					seen = executor.TaskFrom(ctx)
					_, own := provider.Tracer("shop").Start(ctx, "count the till")
					own.End()
					return errors.New("the till is empty")
				})
			})
			id := n.runTraced(n.newJob("shop", "close-day", map[string]any{
				"alert": map[string]any{"onFailure": true, "webhookUrl": hook.URL, "webhookSecret": "whsec-0123456789abcdef"},
			}))
			n.until(id, "failed")
			hook.Wait(t, 1)
			n.eventually(func() bool { return len(store.of(callerTrace)) == 6 }, func() string { return "the trace has not come: " + toText(store.of(callerTrace)) })

			all := store.of(callerTrace)
			require.Equal(t, callerSpan, all["trigger"].parent)
			require.Equal(t, all["trigger"].id, all["attempt"].parent)
			for _, step := range []string{"offer", "grant", "result", "alert"} {
				require.Equal(t, all["attempt"].id, all[step].parent, step)
			}
			var handler, own tracetest.SpanStub
			for _, s := range inside.GetSpans() {
				if s.Name == "count the till" {
					own = s
				} else {
					handler = s
				}
			}
			require.Equal(t, "handler close-day", handler.Name)
			require.Equal(t, callerTrace, handler.SpanContext.TraceID().String())
			require.Equal(t, all["attempt"].id, handler.Parent.SpanID().String())
			require.Equal(t, handler.SpanContext.SpanID(), own.Parent.SpanID(), "what the handler begins is below it")
			require.Equal(t, callerTrace, seen.TraceID())

			var shown struct{ TraceID string }
			n.do(http.MethodGet, "/api/v1/runs/"+id, nil, &shown, 200)
			require.Equal(t, callerTrace, shown.TraceID)
			var explained struct{ Run struct{ TraceID string } }
			n.do(http.MethodGet, "/api/v1/runs/"+id+"/explain", nil, &explained, 200)
			require.Equal(t, callerTrace, explained.Run.TraceID)
		})
	}
}

// A run that a schedule planned begins a trace, and the handler is in it.
func TestAScheduleBeginsATrace(t *testing.T) {
	store := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", store.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
	n := startNode(t, nil)
	traces := make(chan string, 10)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
			select {
			case traces <- executor.TaskFrom(ctx).TraceID():
			default:
			}
			return nil
		}, executor.Idempotent())
	})
	n.newJob("shop", "tick", map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "* * * * * *", "dialect": "seconds", "zone": "UTC"}})
	select {
	case trace := <-traces:
		require.Len(t, trace, 32)
		n.eventually(func() bool { return len(store.of(trace)) == 4 }, func() string { return "the trace has not come: " + toText(store.of(trace)) })
		all := store.of(trace)
		require.Empty(t, all["trigger"].parent)
		require.Equal(t, all["attempt"].id, all["offer"].parent)
		require.NotContains(t, all, "grant", "the offer was the grant")
	case <-time.After(time.Minute):
		t.Fatal("the job did not run")
	}
}

// Each part of a fire that is spread is a span below the whole, with its own
// attempt and handler below it.
func TestShardsAreBelowTheirBroadcast(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			store := newCollector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", store.URL)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			var mu sync.Mutex
			seen := map[string]bool{} // parents of handlers
			told := func(ctx context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				seen[executor.TaskFrom(ctx).Traceparent] = true
				return nil
			}
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "prepare", told)
				executor.HandleFunc(ex, "clear", told)
				executor.Handle(ex, "collect", func(ctx context.Context, _ executor.ShardResults) (string, error) { return "", told(ctx) })
			})
			id := n.runTraced(n.newJob("shop", "clear", map[string]any{"sharding": map[string]any{
				"mode": "fixed", "shards": 3, "before": "prepare", "after": "collect",
			}}))
			n.until(id, "succeeded")
			n.eventually(func() bool { return len(store.named(callerTrace, "attempt")) == 5 }, func() string { return "the trace has not come: " + toText(store.of(callerTrace)) })

			trigger := store.named(callerTrace, "trigger")
			require.Len(t, trigger, 1)
			parts := map[string]int{}
			for _, kind := range []string{"before", "shard", "after"} {
				for _, part := range store.named(callerTrace, kind) {
					require.Equal(t, trigger[0].id, part.parent, kind)
					parts[part.id]++
				}
			}
			require.Len(t, parts, 5, "each has a span of its own")
			for _, a := range store.named(callerTrace, "attempt") {
				require.Equal(t, 1, parts[a.parent], "one attempt below each")
				parts[a.parent] = 0
				mu.Lock()
				require.True(t, seen["00-"+callerTrace+"-"+a.id+"-01"], "its handler is below it")
				mu.Unlock()
			}
			require.Len(t, store.named(callerTrace, "shard"), 3)
		})
	}
}

// A backfill has thousands of runs: each is a trace of its own, and says who
// asked for it.
func TestRunsOfABackfillLinkToItsRequest(t *testing.T) {
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			store := newCollector(t)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", store.URL)
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
			n := startNode(t, func(c *admin.Config) { c.Database = database(t, c.DataDir) })
			traces := make(chan string, 10)
			n.startExecutor("shop", nil, func(ex *executor.Executor) {
				executor.HandleFunc(ex, "close-day", func(ctx context.Context) error {
					traces <- executor.TaskFrom(ctx).TraceID()
					return nil
				})
			})
			job := n.newJob("shop", "close-day", map[string]any{"schedule": map[string]any{"kind": "cron", "expr": "0 0 * * *", "zone": "UTC"}})
			n.askTraced("/api/v1/jobs/"+job+"/backfill", `{"from":"2026-01-01T00:00:00Z","to":"2026-01-04T00:00:00Z","concurrency":3}`)
			n.eventually(func() bool { return len(store.named("", "attempt")) == 3 }, func() string { return "the traces have not come" })

			request := store.named(callerTrace, "backfill")
			require.Len(t, request, 1)
			require.Equal(t, callerSpan, request[0].parent)
			runs := store.named("", "trigger")
			require.Len(t, runs, 3)
			different := map[string]bool{callerTrace: true}
			for _, r := range runs {
				require.Equal(t, callerTrace+"/"+request[0].id, r.link)
				require.Empty(t, r.parent)
				different[r.trace] = true
			}
			require.Len(t, different, 4, "a trace for each")
			for range 3 {
				require.True(t, different[<-traces], "which the handler is in")
			}
		})
	}
}

// Without a collector a caller's context goes through all the same, and nothing
// else changes.
func TestATraceIsPassedOnWhenNoneAreRecorded(t *testing.T) {
	n := startNode(t, nil)
	traces := make(chan string, 2)
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "tick", func(ctx context.Context) error {
			traces <- executor.TaskFrom(ctx).Traceparent
			return nil
		})
	})
	job := n.newJob("shop", "tick", nil)
	n.until(n.runTraced(job), "succeeded")
	require.Equal(t, "00-"+callerTrace+"-"+callerSpan+"-01", <-traces)
	n.until(n.runNow(job, nil), "succeeded")
	require.Empty(t, <-traces)
}

func toText(v map[string]tracedSpan) string {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	text, err := json.Marshal(names)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
