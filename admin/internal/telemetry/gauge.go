package telemetry

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/httpconn"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Sources are the rooms that gauges read when a scrape asks. All are needed but Hot.
type Sources struct {
	Store   Counted
	Gateway *gateway.Gateway
	HTTP    *httpconn.Limiter // to UI and API
	Hot     *hotset.Set       // nil: there is none
	Planner interface {
		Lag() time.Duration
		HeldBack() bool
	}
	Dispatcher interface {
		Stalled() time.Duration
		Queues() []batch.Worker
	}
	Results batch.Worker
	Held    func() []domain.PartitionTerm
	Nodes   func() []domain.Node
	Now     func() time.Time // the database's clock
	// ClockHeld and HistoryHeld: firing is held because of the clock, or of lost commits.
	ClockHeld, HistoryHeld, Draining func() bool
	// Waits and Pending count runs in memory, and those of them in the timer.
	Waits, Pending func() int
	// OutboxLag is for how long the oldest alert that could be told has waited.
	OutboxLag func(ctx context.Context) (time.Duration, error)
}

// Counted is the part of the store that gauges read.
type Counted interface {
	OutboxDepths(ctx context.Context, most int) (map[domain.Topic]domain.OutboxDepth, error)
	KnownMaintenances() domain.Maintenances
	Pools() []db.Pool
}

// Gauges are read from the rooms. A chore looks at the numbers that the database has.
type Gauges struct {
	from Sources

	outboxLag atomic.Int64 // in nanoseconds
	outbox    atomic.Pointer[map[domain.Topic]domain.OutboxDepth]
}

// Export registers the gauges.
func (m *Metrics) Export(from Sources) *Gauges {
	g := &Gauges{from: from}
	m.number("carillon_partitions_held", "Partitions that this node may plan now.", func() int { return len(from.Held()) })
	m.number("carillon_nodes", "Admin nodes that are on the list, as this one knows.", func() int { return len(from.Nodes()) })
	m.seconds("carillon_planning_lag_seconds", "How long ago a fire time may have passed that this node did not plan; 0 while it keeps up.", from.Planner.Lag)
	m.seconds("carillon_clock_skew_seconds", "This node's wall clock less the database's.", func() time.Duration { return time.Since(from.Now().Round(0)) })
	m.state("carillon_clock_held", "1 while firing is held because the database's clock leapt.", from.ClockHeld)
	m.state("carillon_history_held", "1 while firing is held because the database has lost commits.", from.HistoryHeld)
	m.state("carillon_planning_held_back", "1 while triggers are left where they are because too many runs wait in this node's memory, or for their offer.", from.Planner.HeldBack)
	m.state("carillon_draining", "1 while this node stops: it begins nothing new and finishes what is under way.", from.Draining)
	m.number("carillon_runs_waiting", "Runs in this node's memory that wait for their time or for their offer.", from.Waits)
	m.seconds("carillon_oldest_startable_run_seconds", "For how long a run has waited although an instance of this node has room for it; 0 while none has for 5 s.", from.Dispatcher.Stalled)
	m.number("carillon_maintenance", "Scopes (cluster, tenants, executors) of which nothing starts because of maintenance, as this node knows.", func() int {
		return len(from.Store.KnownMaintenances().Stopping(from.Now()))
	})
	m.number("carillon_timer_pending", "Executions that wait in this node's timer.", from.Pending)
	m.seconds("carillon_outbox_lag_seconds", "How long the oldest alert that could be told has waited in the outbox; looked at every few seconds.", func() time.Duration {
		return time.Duration(g.outboxLag.Load())
	})
	m.registry.MustRegister(g.queueReading(), g.gatewayReading(), g.poolReading(), g.inletReading(), g.hotReading(), g.outboxReading())
	return g
}

const (
	// OutboxLookEvery is the pace of LookAtOutbox.
	OutboxLookEvery = 5 * time.Second
	// outboxLookMost is the most rows of a topic that a look counts.
	outboxLookMost = 10_000
)

// LookAtOutbox reads what waits in the outbox, and the lag of alerts.
func (g *Gauges) LookAtOutbox(ctx context.Context) error {
	depths, err := g.from.Store.OutboxDepths(ctx, outboxLookMost)
	if err != nil {
		return err
	}
	g.outbox.Store(&depths)
	lag, err := g.from.OutboxLag(ctx)
	if err == nil {
		g.outboxLag.Store(int64(lag))
	}
	return err
}

// outboxReading is what waits for the readers of the outbox, as the last look has found.
func (g *Gauges) outboxReading() *reading {
	r := &reading{}
	rows := r.desc("carillon_outbox_rows", fmt.Sprintf("Rows of the outbox that wait for their reader: ends of runs for statistics, callbacks, events for alerting. A look counts %d of a topic at most.", outboxLookMost), "topic")
	age := r.desc("carillon_outbox_age_seconds", "How long the oldest row of a topic of the outbox has waited for its reader.", "topic")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		depths := map[domain.Topic]domain.OutboxDepth{}
		if found := g.outbox.Load(); found != nil {
			depths = *found
		}
		for _, topic := range domain.Topics {
			emit(rows, prometheus.GaugeValue, float64(depths[topic].Rows), topic.String())
			emit(age, prometheus.GaugeValue, depths[topic].Age.Seconds(), topic.String())
		}
	}
	return r
}

// hotReading is what became of timers in the hot store; all of it is 0 without one.
func (g *Gauges) hotReading() *reading {
	r := &reading{}
	timers := r.desc("carillon_hot_store_timers_total", "Timers in the hot store: copied ahead of their time, added when they were set, dropped (set, and left to the database), named as due.", "result")
	looks := r.desc("carillon_hot_store_looks_total", "Looks for the due timers of a partition that the hot store answered (redis) or left to the database, while it is configured.", "result")
	failures := r.desc("carillon_hot_store_failures_total", "Times that the hot store did not answer, answered too late or had lost timers. After each the database is asked for 5 s or more.")
	available := r.desc("carillon_hot_store_available", "1 while a hot store is configured and works.")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		var s hotset.Stats
		if g.from.Hot != nil {
			s = g.from.Hot.Stats()
		}
		count := func(desc int, n int64, labels ...string) { emit(desc, prometheus.CounterValue, float64(n), labels...) }
		count(timers, s.Copied, "copied")
		count(timers, s.Added, "added")
		count(timers, s.Dropped, "dropped")
		count(timers, s.Found, "named")
		count(looks, s.Known, "redis")
		count(looks, s.Unknown, "database")
		count(failures, s.Failures)
		works := 0.0
		if s.Available {
			works = 1
		}
		emit(available, prometheus.GaugeValue, works)
	}
	return r
}

// queueReading is the length of the queues between the steps.
func (g *Gauges) queueReading() *reading {
	r := &reading{}
	length := r.desc("carillon_queue_length", "Items that wait for their transaction, by queue.", "queue")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		named := map[string][]batch.Worker{"results": {g.from.Results}}
		queues := g.from.Dispatcher.Queues() // offers, one per worker; then answers, give-backs, admissions
		rest := len(queues) - 3
		named["offers"] = queues[:rest]
		for i, name := range [...]string{"answers", "give_backs", "admissions"} {
			named[name] = queues[rest+i : rest+i+1]
		}
		for name, queues := range named {
			n := 0
			for _, q := range queues {
				n += q.Len()
			}
			emit(length, prometheus.GaugeValue, float64(n), name)
		}
	}
	return r
}

// gatewayReading is one look at all sessions.
func (g *Gauges) gatewayReading() *reading {
	r := &reading{}
	sessions := r.desc("carillon_sessions", "Executor sessions on this node; an instance has one on each node.")
	doubted := r.desc("carillon_sessions_doubted", "Sessions whose instance does not answer now: it gets no offers.")
	draining := r.desc("carillon_sessions_draining", "Sessions whose instance takes nothing more.")
	slots := r.desc("carillon_slots", "Slots of the instances connected here.")
	used := r.desc("carillon_slots_used", "Of these slots, those that are taken, by any node.")
	opened := r.desc("carillon_sessions_opened_total", "Sessions that began.")
	ended := r.desc("carillon_sessions_ended_total", "Sessions that ended.")
	refused := r.desc("carillon_handshakes_failed_total", "Connections without a session: refused (told why, such as a bad token), dropped (broken off, or too many at once).", "result")
	away := r.desc("carillon_connections_turned_away_total", "Connections to the executors' port that were closed at once: too many, in all or from one address.")
	bytes := r.desc("carillon_wire_bytes_total", "Bytes from and to executors, inside of TLS.", "connection", "direction")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		s := g.from.Gateway.Stats()
		for desc, n := range map[int]int{sessions: s.Sessions, doubted: s.Doubted, draining: s.Draining, slots: s.Slots, used: s.Used} {
			emit(desc, prometheus.GaugeValue, float64(n))
		}
		count := func(desc int, n uint64, labels ...string) { emit(desc, prometheus.CounterValue, float64(n), labels...) }
		count(opened, s.Opened)
		count(ended, s.Ended)
		count(refused, s.Refused, "refused")
		count(refused, s.Dropped, "dropped")
		count(away, uint64(g.from.Gateway.TurnedAway()))
		count(bytes, s.Control.In, "control", "in")
		count(bytes, s.Control.Out, "control", "out")
		count(bytes, s.Logs.In, "logs", "in")
		count(bytes, s.Logs.Out, "logs", "out")
	}
	return r
}

// inletReading is what becomes of connections to UI and API.
func (g *Gauges) inletReading() *reading {
	r := &reading{}
	open := r.desc("carillon_http_connections", "Connections to UI and API.")
	ended := r.desc("carillon_http_connections_limited_total", "Connections to UI and API that found no room: evicted (one that waited left for them), refused (their address has enough), crowded (let in for probes only).", "result")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		c := g.from.HTTP.Counts()
		emit(open, prometheus.GaugeValue, float64(c.Open))
		emit(ended, prometheus.CounterValue, float64(c.Evicted), "evicted")
		emit(ended, prometheus.CounterValue, float64(c.Refused), "refused")
		emit(ended, prometheus.CounterValue, float64(c.ProbeOnly), "crowded")
	}
	return r
}

// poolReading is the use of the database connections.
func (g *Gauges) poolReading() *reading {
	r := &reading{}
	open := r.desc("carillon_database_connections", "Open connections, by pool and by whether they are in use.", "pool", "state")
	limit := r.desc("carillon_database_connections_max", "Connections that the pool may open.", "pool")
	waits := r.desc("carillon_database_waits_total", "Times that somebody had to wait for a connection.", "pool")
	waited := r.desc("carillon_database_wait_seconds_total", "Time spent waiting for connections.", "pool")
	r.read = func(emit func(int, prometheus.ValueType, float64, ...string)) {
		for _, p := range g.from.Store.Pools() {
			emit(open, prometheus.GaugeValue, float64(p.InUse), p.Name, "in_use")
			emit(open, prometheus.GaugeValue, float64(p.Idle), p.Name, "idle")
			emit(limit, prometheus.GaugeValue, float64(p.MaxOpenConnections), p.Name)
			emit(waits, prometheus.CounterValue, float64(p.WaitCount), p.Name)
			emit(waited, prometheus.CounterValue, p.WaitDuration.Seconds(), p.Name)
		}
	}
	return r
}
