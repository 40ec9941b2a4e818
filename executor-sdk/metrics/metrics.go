// Package metrics exports an executor's Stats in the Prometheus text format,
// without any library:
//
//	http.Handle("/metrics/carillon", metrics.Handler(ex))
//
// An application that has a Prometheus registry of its own serves both, or
// appends what Write writes to what it answers. Names and labels are listed in
// docs/guide/metrics.md and do not change: labels are the executor's name, handlers
// (as many as are registered), and fixed words; never runs, jobs or tenants.
package metrics

import (
	"bufio"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	executor "github.com/carillon-sched/carillon/executor-sdk"
)

// ContentType is what Handler answers with.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Handler answers scrapes. The application decides where, and who may ask.
func Handler(ex *executor.Executor) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ContentType)
		_ = Write(w, ex.Stats()) // whoever asked has gone
	})
}

// Write writes all metrics of one executor.
func Write(w io.Writer, s executor.Stats) error {
	t := &text{w: bufio.NewWriter(w), own: label("executor", s.Name)}
	t.family("carillon_executor_info", "gauge", "Always 1; the labels name the versions of the application and of the SDK.")
	t.value(1, label("version", s.Version), label("sdk_version", s.SDKVersion))
	t.state("carillon_executor_ready", "1 while the executor can take runs (Executor.Health).", s.Ready)
	t.state("carillon_executor_draining", "1 while the process stops: it takes nothing new.", s.Draining)
	t.state("carillon_executor_lease_lost", "1 while no admin node renews the lease: everything was cancelled.", s.LeaseLost)
	t.gauge("carillon_executor_slots", "Handlers that may run at once.", s.Slots)
	t.gauge("carillon_executor_running", "Slots taken.", s.Running)
	t.gauge("carillon_executor_sessions", "Sessions to admin nodes.", s.Sessions)
	t.counter("carillon_executor_sessions_opened_total", "Sessions that began; it grows with every reconnect.", s.SessionsOpened)
	t.gauge("carillon_executor_results_waiting", "Attempts that have ended and that no admin node has acknowledged.", s.ResultsOwed)
	t.family("carillon_executor_offers_refused_total", "counter", "Offers that were refused, by reason.")
	for _, code := range slices.Sorted(maps.Keys(s.Refused)) {
		t.value(float64(s.Refused[code]), label("reason", code))
	}
	t.family("carillon_executor_attempts_total", "counter", "Attempts whose handler returned, by outcome.")
	for _, h := range s.Handlers {
		for _, outcome := range slices.Sorted(maps.Keys(h.Ended)) {
			t.value(float64(h.Ended[outcome]), label("handler", h.Name), label("outcome", outcome))
		}
	}
	t.family("carillon_executor_handler_seconds", "histogram", "How long handlers took, interceptors included.")
	for _, h := range s.Handlers {
		t.histogram(h.Took, label("handler", h.Name))
	}
	t.family("carillon_executor_journal_sync_seconds", "histogram", "How long the journal's fsyncs took; what waits at the same time shares one.")
	t.histogram(s.JournalSyncs)
	t.state("carillon_executor_journal_failing", "1 while nothing can be made durable: offers are refused.", s.JournalFailing)
	t.counter("carillon_executor_log_lines_total", "Lines that handlers wrote to the logs of their runs, dropped ones not included.", s.LogLines)
	t.counter("carillon_executor_log_lines_dropped_total", "Lines dropped because they came faster than they could be stored.", s.LogLinesDropped)
	t.gauge("carillon_executor_log_buffer_bytes", "Log lines that no admin node has stored yet.", s.LogBuffered)
	return t.w.Flush()
}

// text writes families one after the other. Errors stay in w until Flush.
type text struct {
	w    *bufio.Writer
	own  string // label that all series have
	name string // of the current family
}

func (t *text) family(name, kind, help string) {
	t.name = name
	t.write("# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n")
}

func (t *text) write(parts ...string) {
	for _, p := range parts {
		_, _ = t.w.WriteString(p) // bufio keeps the first error
	}
}

func (t *text) value(v float64, labels ...string) { t.sample("", v, labels...) }

func (t *text) sample(suffix string, v float64, labels ...string) {
	t.write(t.name, suffix, "{", t.own)
	for _, l := range labels {
		t.write(",", l)
	}
	t.write("} ", number(v), "\n")
}

func (t *text) gauge(name, help string, n int) {
	t.family(name, "gauge", help)
	t.value(float64(n))
}

func (t *text) counter(name, help string, n uint64) {
	t.family(name, "counter", help)
	t.value(float64(n))
}

func (t *text) state(name, help string, is bool) {
	n := 0
	if is {
		n = 1
	}
	t.gauge(name, help, n)
}

func (t *text) histogram(d executor.Durations, labels ...string) {
	for i, bound := range d.Bounds {
		t.sample("_bucket", float64(d.UpTo[i]), append(labels, label("le", seconds(bound)))...)
	}
	t.sample("_bucket", float64(d.Count), append(labels, label("le", "+Inf"))...)
	t.sample("_sum", d.Sum.Seconds(), labels...)
	t.sample("_count", float64(d.Count), labels...)
}

func seconds(d time.Duration) string { return number(d.Seconds()) }

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(name, value string) string { return name + `="` + escape.Replace(value) + `"` }
