package admin

// MetricsURL returns where /metrics is.
func (a *Admin) MetricsURL() string {
	if a.metricsListener == nil {
		return a.URL() + "/metrics"
	}
	return "http://" + a.metricsListener.Addr().String() + "/metrics"
}
