package telemetry

import (
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// How metrics are made and registered, each kind in one line.

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) histogramVec(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(h)
	return h
}

// series makes the series of a label's values, so that they begin at zero: a
// counter that appears with its first event hides it from rate().
func series[T any](vec interface{ WithLabelValues(...string) T }, values ...string) {
	for _, v := range values {
		vec.WithLabelValues(v)
	}
}

// gauge exports a value that is read when asked for.
func (m *Metrics) gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// number is gauge for whole numbers, state for what is so or not, and seconds
// for durations.
func (m *Metrics) number(name, help string, read func() int) {
	m.gauge(name, help, func() float64 { return float64(read()) })
}

func (m *Metrics) state(name, help string, read func() bool) {
	m.gauge(name, help, func() float64 {
		if read() {
			return 1
		}
		return 0
	})
}

func (m *Metrics) seconds(name, help string, read func() time.Duration) {
	m.gauge(name, help, func() float64 { return read().Seconds() })
}

func (m *Metrics) info(version string) {
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "carillon_build_info", Help: "Always 1; the labels name the version of Carillon and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": goVersion()}})
	build.Set(1)
	m.registry.MustRegister(build)
}

func goVersion() string {
	if b, ok := debug.ReadBuildInfo(); ok {
		return b.GoVersion
	}
	return "unknown"
}

// reading is several metrics out of one look: what it returns belongs together.
type reading struct {
	descs []*prometheus.Desc
	read  func(emit func(desc int, kind prometheus.ValueType, value float64, labels ...string))
}

func (r *reading) desc(name, help string, labels ...string) int {
	r.descs = append(r.descs, prometheus.NewDesc(name, help, labels, nil))
	return len(r.descs) - 1
}

// Describe implements prometheus.Collector.
func (r *reading) Describe(out chan<- *prometheus.Desc) {
	for _, d := range r.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r *reading) Collect(out chan<- prometheus.Metric) {
	r.read(func(desc int, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(r.descs[desc], kind, value, labels...)
	})
}
