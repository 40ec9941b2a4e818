package admin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// metrics are the engine's own; the API and alerting add theirs to the same
// registry.
type metrics struct {
	registry   *prometheus.Registry
	claimed    prometheus.Counter
	planned    prometheus.Counter
	claim      prometheus.Histogram
	ended      *prometheus.CounterVec
	lateness   prometheus.Histogram
	clockJumps prometheus.Counter
	rollbacks  prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		claimed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "carillon_triggers_claimed_total", Help: "Trigger rows claimed by this node."}),
		planned: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "carillon_executions_planned_total", Help: "Executions written by this node's claims."}),
		claim: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "carillon_claim_seconds", Help: "Duration of claim transactions that found something.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13)}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "carillon_attempts_ended_total", Help: "Moves of executions out of an attempt, by the state they moved to."},
			[]string{"state"}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "carillon_start_lateness_seconds", Help: "From the fire time to the start of the first attempt's handler, of scheduled runs.",
			Buckets: []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}}),
	}
	m.clockJumps = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "carillon_clock_jumps_total", Help: "Leaps forward of the database's clock that this node did not believe."})
	m.rollbacks = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "carillon_rollbacks_total", Help: "Times that this node found that the database had lost commits, or was told so."})
	m.registry.MustRegister(m.clockJumps, m.rollbacks, m.claimed, m.planned, m.claim, m.ended, m.lateness,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// gauge exports a value that is read when asked for.
func (m *metrics) gauge(name, help string, read func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// seconds is gauge for durations.
func (m *metrics) seconds(name, help string, read func() time.Duration) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(
		prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return read().Seconds() }))
}

func (m *metrics) observeClaim(claimed, planned int, took time.Duration) {
	m.claimed.Add(float64(claimed))
	m.planned.Add(float64(planned))
	m.claim.Observe(took.Seconds())
}

func (m *metrics) observeEnded(list []domain.Execution) {
	for i := range list {
		e := &list[i]
		m.ended.WithLabelValues(e.State.String()).Inc()
		if late, ok := e.Lateness(); ok && e.Attempt == 1 && e.Cause == domain.CauseSchedule {
			m.lateness.Observe(late.Seconds())
		}
	}
}
