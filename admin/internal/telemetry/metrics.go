package telemetry

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Metrics are the engine's own; the API and alerting add theirs to the same
// registry. Names and labels are a contract: dashboards and alert rules hang on
// them (docs/guide/metrics.md). Labels have few values, all known beforehand, so
// that every series is there from the start: no tenants, jobs, runs or instances.
type Metrics struct {
	registry *prometheus.Registry

	claimed, planned prometheus.Counter
	claim            prometheus.Histogram
	// What is counted once per run is looked up beforehand.
	offers       map[store.OfferStatus]prometheus.Counter
	grants       map[bool]prometheus.Counter // by granted
	givenBack    map[domain.Reason]prometheus.Counter
	givenBackFor prometheus.Counter // other reasons
	results      map[resultKey]prometheus.Counter
	ended        map[domain.State]prometheus.Counter
	lateness     prometheus.Histogram
	stages       struct{ offer, grant, start, run prometheus.Observer }
	batch        *prometheus.HistogramVec // by step

	transaction *prometheus.HistogramVec // by step
	repeats     *prometheus.CounterVec   // by step
	failures    *prometheus.CounterVec   // by step

	logChunks *prometheus.CounterVec // by result
	logBytes  prometheus.Counter

	clockJumps prometheus.Counter
	rollbacks  prometheus.Counter
}

// resultKey is what executor and database said of a result.
type resultKey struct {
	outcome domain.Outcome
	code    store.FinishCode
}

var (
	offerNames = map[store.OfferStatus]string{
		store.OfferGone: "gone", store.OfferMade: "made", store.OfferBlocked: "blocked", store.OfferDiscarded: "discarded",
	}
	outcomeNames = map[domain.Outcome]string{
		domain.OutcomeSucceeded: "succeeded", domain.OutcomeFailed: "failed", domain.OutcomeTimedOut: "timed_out",
		domain.OutcomeCancelled: "cancelled", domain.OutcomeNeverStarted: "never_started", domain.OutcomeUnknown: "unknown",
	}
	finishCodes   = []store.FinishCode{store.FinishStored, store.FinishReturned, store.FinishDuplicate, store.FinishStale, store.FinishNotFound}
	returnReasons = []domain.Reason{domain.ReasonOfferRefused, domain.ReasonUnknownHandler, domain.ReasonSessionLost, domain.ReasonOfferExpired}
)

// Buckets, in seconds. Work of the node itself is a matter of milliseconds;
// lateness and handlers may take minutes.
var (
	workBuckets = []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}
	lateBuckets = []float64{.001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	sizeBuckets = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}
)

// New returns metrics with all series at zero.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.info(version)
	m.addWay()
	m.addDatabase()
	m.logChunks = m.counterVec("carillon_log_chunks_total", "Chunks of handlers' logs: stored, or dropped because their run is not known.", "result")
	series(m.logChunks, "stored", "dropped")
	m.logBytes = m.counter("carillon_log_bytes_total", "Bytes of the lines in chunks that came, before compression.")
	m.clockJumps = m.counter("carillon_clock_jumps_total", "Leaps forward of the database's clock that this node did not believe.")
	m.rollbacks = m.counter("carillon_rollbacks_total", "Times that this node found that the database had lost commits, or was told so.")
	return m
}

// Registry is where other rooms register theirs, and what a scrape gets.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// ClockJumped counts a leap of the database's clock.
func (m *Metrics) ClockJumped() { m.clockJumps.Inc() }

// RolledBack counts a finding that the database has lost commits.
func (m *Metrics) RolledBack() { m.rollbacks.Inc() }

// addWay makes what counts the steps of a run, in their order.
func (m *Metrics) addWay() {
	m.claimed = m.counter("carillon_triggers_claimed_total", "Trigger rows claimed by this node.")
	m.planned = m.counter("carillon_executions_planned_total", "Executions written by this node's claims.")
	m.claim = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "carillon_claim_seconds", Help: "Duration of claims that found something, from the search to the commit.", Buckets: workBuckets})
	offers := m.counterVec("carillon_offers_total", "Executions that this node tried to offer: made, blocked (waits for its slot or a limit), discarded, gone (somebody else was quicker).", "result")
	m.offers = map[store.OfferStatus]prometheus.Counter{}
	for status, name := range offerNames {
		m.offers[status] = offers.WithLabelValues(name)
	}
	grants := m.counterVec("carillon_grants_total", "Answers to accepted offers: granted, or refused because the offer is not valid any more. One-step offers need none.", "result")
	m.grants = map[bool]prometheus.Counter{true: grants.WithLabelValues("granted"), false: grants.WithLabelValues("refused")}
	returned := m.counterVec("carillon_offers_returned_total", "Offers taken back, by reason.", "reason")
	m.givenBack, m.givenBackFor = map[domain.Reason]prometheus.Counter{}, returned.WithLabelValues("other")
	for _, reason := range returnReasons {
		m.givenBack[reason] = returned.WithLabelValues(string(reason))
	}
	m.addEnds()
	m.batch = m.histogramVec("carillon_batch_size", "Items in one transaction.", sizeBuckets, "step")
	series(m.batch, "offer_executions", "grant_offers", "give_back_offers", "finish_attempts")
}

// addEnds makes what counts how attempts end.
func (m *Metrics) addEnds() {
	results := m.counterVec("carillon_results_total", "Results from executors, by outcome and by what became of them; a result that is sent again counts again.", "outcome", "code")
	m.results = map[resultKey]prometheus.Counter{}
	for outcome, name := range outcomeNames {
		for _, code := range finishCodes {
			m.results[resultKey{outcome, code}] = results.WithLabelValues(name, string(code))
		}
	}
	ended := m.counterVec("carillon_attempts_ended_total", "Moves of executions out of an attempt, by the state they moved to.", "state")
	m.ended = map[domain.State]prometheus.Counter{}
	for _, s := range domain.States {
		if s.Terminal() || s == domain.RetryWait || s == domain.Due { // due: given back, never started
			m.ended[s] = ended.WithLabelValues(s.String())
		}
	}
	m.lateness = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "carillon_start_lateness_seconds", Help: "From the fire time to the start of the first attempt's handler, of scheduled runs.", Buckets: lateBuckets})
	m.registry.MustRegister(m.claim, m.lateness)
	stage := m.histogramVec("carillon_stage_seconds", "Of attempts that ended, in milliseconds' precision: offer (from its due time to the commit of the offer; nothing for one that was made ahead), "+
		"grant (to the commit of the grant), start (to the handler's start, by the executor's clock), run (to the commit of the result).", lateBuckets, "stage")
	m.stages.offer, m.stages.grant = stage.WithLabelValues("offer"), stage.WithLabelValues("grant")
	m.stages.start, m.stages.run = stage.WithLabelValues("start"), stage.WithLabelValues("run")
}

// addDatabase makes what watches transactions.
func (m *Metrics) addDatabase() {
	m.transaction = m.histogramVec("carillon_transaction_seconds", "Duration of transactions with all their repetitions, by step.", workBuckets, "step")
	m.repeats = m.counterVec("carillon_transaction_repeats_total", "Transactions tried once more: a deadlock, a lock that took too long, or a row that was not as believed.", "step")
	m.failures = m.counterVec("carillon_transaction_failures_total", "Transactions that the database refused or did not answer. Lost races and bad requests are not counted.", "step")
	for _, step := range steps {
		m.transaction.WithLabelValues(step)
		m.repeats.WithLabelValues(step)
		m.failures.WithLabelValues(step)
	}
}

// steps are the transactions with a series of their own: those on the way of a
// run, and those that leases and alerts hang on. The rest are "other".
var steps = []string{
	"claim_due_triggers", "create_execution", "offer_executions", "grant_offers", "settle_inventory", "give_back_offers", "record_waits",
	"record_starts", "finish_attempts", "sweep_executions", "cancel_execution", "admit_waiting_executions", "register_instance",
	"renew_instances", "expire_instances", "renew_partitions", "acquire_partitions", "node_heartbeat", "append_log",
	"expand_alert_events", "claim_deliveries", "finish_delivery", "other",
}

var stepLabel = func() map[string]string {
	out := map[string]string{}
	for _, s := range steps {
		out[strings.ReplaceAll(s, "_", " ")] = s
	}
	return out
}()

// ObserveTransaction counts a transaction after its end.
func (m *Metrics) ObserveTransaction(t db.Transaction) {
	step, known := stepLabel[t.Step]
	if !known {
		step = "other"
	}
	m.transaction.WithLabelValues(step).Observe(t.Took.Seconds())
	if t.Repeats > 0 {
		m.repeats.WithLabelValues(step).Add(float64(t.Repeats))
	}
	switch domain.CodeOf(t.Err) {
	case domain.CodeUnavailable, domain.CodeInternal:
		m.failures.WithLabelValues(step).Inc()
	}
}

// ObserveClaim counts a claim that found something.
func (m *Metrics) ObserveClaim(claimed, planned int, took time.Duration) {
	m.claimed.Add(float64(claimed))
	m.planned.Add(float64(planned))
	m.claim.Observe(took.Seconds())
}

// ObserveEnded counts executions that left an attempt on this node.
func (m *Metrics) ObserveEnded(list []domain.Execution) {
	for i := range list {
		e := &list[i]
		if c := m.ended[e.State]; c != nil {
			c.Inc()
		}
		if late, ok := domain.Lateness(e); ok && e.Attempt == 1 && e.Cause == domain.CauseSchedule {
			m.lateness.Observe(late.Seconds())
		}
		m.observeStages(e)
	}
}

// observeStages reads the stamps of an attempt. Those of the executor's clock
// may be a little before the database's.
func (m *Metrics) observeStages(e *domain.Execution) {
	if e.OfferedAt.IsZero() || e.GrantedAt.IsZero() {
		return
	}
	observe := func(stage prometheus.Observer, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() {
			stage.Observe(max(0, to.Sub(from)).Seconds())
		}
	}
	due := e.FireAt
	if e.Attempt > 1 || e.NotBefore.After(due) {
		due = e.NotBefore
	}
	switch offered := e.OfferedAt; {
	case !due.After(offered):
		observe(m.stages.offer, due, offered)
		observe(m.stages.grant, offered, e.GrantedAt)
	case !due.After(offered.Add(domain.OfferAhead)): // it was offered ahead, and nobody waited
		observe(m.stages.offer, due, due)
		observe(m.stages.grant, due, e.GrantedAt)
	default: // a retry's NotBefore is the next attempt's by now
		observe(m.stages.grant, offered, e.GrantedAt)
	}
	observe(m.stages.start, e.GrantedAt, e.StartedAt)
	if took, ok := e.Duration(); ok {
		observe(m.stages.run, e.StartedAt, e.StartedAt.Add(took))
	}
}
