package notify

import "github.com/prometheus/client_golang/prometheus"

// metrics count what this node does. Labels are few: no tenant, no target.
type metrics struct {
	expanded prometheus.Counter
	results  *prometheus.CounterVec   // by channel and result
	duration *prometheus.HistogramVec // by channel
}

// newMetrics makes the series of the channels that are configured.
func newMetrics(registerer prometheus.Registerer, channels []string) *metrics {
	m := &metrics{
		expanded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "carillon_alert_events_expanded_total", Help: "Alert events that this node counted in incidents."}),
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "carillon_alert_deliveries_total",
			Help: "What became of claimed deliveries: delivered, retry, failed (given up), put_off (not tried)."},
			[]string{"channel", "result"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "carillon_alert_send_seconds", Help: "How long receivers took.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"channel"}),
	}
	for _, channel := range channels {
		for _, result := range [...]string{"delivered", "retry", "failed", "put_off"} {
			m.results.WithLabelValues(channel, result) // from zero: the first one is an event too
		}
		m.duration.WithLabelValues(channel)
	}
	if registerer != nil {
		registerer.MustRegister(m.expanded, m.results, m.duration)
	}
	return m
}
