package gormstore

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/alertsql"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

var alertStatement = regexp.MustCompile("(?s)(FROM|UPDATE) `?(outbox|alert_events|alert_incidents|alert_receivers|alert_rules|alert_silences|deliveries|executions|attempts|executors)\\b")

// Alerts are counted, told and listed by indexes, in transactions too: the tables
// keep what was told for months.
func TestAlertsUseTheirIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			require.NoError(t, Migrate(t.Context(), o))
			w := &written{form: alertStatement}
			o.Connector = func(c driver.Connector) driver.Connector { return writtenPool{c, w} }
			s := openStore(t, o)
			world := newWorld(t, s, 20, domain.BlockParallel)
			world.plan(50)
			fillAlerts(t, world)
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE alert_events, alert_incidents, alert_receivers, alert_rules, alert_silences, deliveries, executions")
				require.NoError(t, err)
			}
			alertLife(t, world)
			e := &explainer{t: t, s: s, few: 100, tables: map[string]bool{
				"outbox": true, "alert_events": true, "alert_incidents": true, "alert_receivers": true, "alert_silences": true, "deliveries": true, "executions": true, "attempts": true, "i": true,
			}}
			seen := map[string]bool{}
			for _, st := range w.all() {
				if !seen[st.text] {
					seen[st.text] = true
					e.explain(t.Context(), st.text, st.args...)
				}
			}
			require.Greater(t, len(seen), 40, "the statements were looked at")
			e.tables = map[string]bool{"alert_rules": true}
			e.explain(t.Context(), alertsql.SelectSuccesses(s.Dialect))
		})
	}
}

// fillAlerts writes what was told long ago, a hundred rows of a table at once.
func fillAlerts(t *testing.T, w *world) {
	t.Helper()
	tables := []struct{ into, row string }{
		{"alert_events (id, tenant_id, kind, dedupe_key, created_at, expanded_at, incident_id)", "(?, ?, 'run_failed', ?, 1, 1, ?)"},
		{"alert_incidents (id, tenant_id, live_key, kind, executor_id, job_id, state, opened_at, last_at, wake_at)", "(?, ?, ?, 'run_failed', ?, ?, 3, 1, 1, NULL)"},
		{"alert_receivers (incident_id, receiver_key, channel)", "(?, 'k', 'email')"},
		{"alert_silences (id, tenant_id, matcher, reason, starts_at, ends_at, created_at)", "(?, ?, '{}', 'r', 1, ?, 1)"},
		{"deliveries (id, tenant_id, event_id, incident_id, job_id, channel, target, state, next_at, created_at)", "(?, ?, ?, ?, ?, 'email', 'a', ?, 1, 1)"},
	}
	const together = 100
	for first := 0; first < 2000; first += together {
		args := make([][]any, len(tables))
		for n := first; n < first+together; n++ {
			id, tenant := w.ids.Next(), int64(n%10)
			if n%2 == 0 {
				tenant = int64(w.tenant)
			}
			incident, job := id-int64(n%4), int64(w.jobs[n%len(w.jobs)])
			for i, more := range [][]any{
				{id, tenant, fmt.Sprint("old ", n), incident},
				{id, tenant, fmt.Sprint("old ", n), int64(n % 5), job},
				{id},
				{id, tenant, n},
				{id, tenant, id, incident, job, 2 + n%50/49},
			} {
				args[i] = append(args[i], more...)
			}
		}
		require.NoError(t, w.s.Run(t.Context(), "fill", func(x *db.Tx) error {
			for i, table := range tables {
				statement := "INSERT INTO " + table.into + " VALUES " + table.row + strings.Repeat(", "+table.row, together-1)
				if _, err := x.Exec(x.Ctx, statement, args[i]...); err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// alertLife takes alerts through all that happens to them, and lists them in all ways.
func alertLife(t *testing.T, w *world) {
	t.Helper()
	ctx, s := t.Context(), newAlertAging(w.s)
	channel := noun.Receiver{Channel: "email", Target: "ann@example.com", Job: w.jobs[0]}
	for _, condition := range []noun.AlertCondition{
		{Kind: noun.ConditionFailures, Failures: 1, Of: 5}, {Kind: noun.ConditionKeyword, Keyword: "x"}, {Kind: noun.ConditionLate, After: time.Second},
		{Kind: noun.ConditionLong, After: time.Second, Factor: 2}, {Kind: noun.ConditionAbsent, After: time.Second},
	} {
		_, err := storetest.PutRule(ctx, s, noun.AlertRule{ID: domain.AlertRuleID(w.ids.Next()), TenantID: w.tenant, Spec: noun.AlertRuleSpec{
			Name: string(condition.Kind), Enabled: true, Condition: condition, Match: noun.AlertMatcher{Jobs: w.jobs[len(condition.Kind)%2 : len(condition.Kind)%2+1]}}})
		require.NoError(t, err)
	}
	for found := true; found; {
		var err error
		found, err = s.EvaluateAlertRules(ctx)
		require.NoError(t, err)
	}
	events := make([]domain.AlertEvent, 20)
	for n := range events {
		events[n] = domain.AlertEvent{TenantID: w.tenant, Kind: domain.AlertRunFailed, JobID: w.jobs[n%2], Executor: w.executor, ExecutionID: w.last, DedupeKey: fmt.Sprint(n)}
	}
	require.NoError(t, s.RecordAlerts(ctx, events))
	var of *noun.Incident
	for _, half := range []int{10, 1000} {
		_, err := s.ExpandAlertEvents(ctx, half, func(b *notify.AlertBatch) {
			at := noun.IncidentKey{Tenant: w.tenant, Key: noun.JobIncidentKey(w.jobs[0], domain.AlertRunFailed)}
			if of = b.Live[at]; of == nil {
				of = &noun.Incident{ID: b.NewID(), TenantID: w.tenant, Key: at.Key, Live: true, Kind: domain.AlertRunFailed, Executor: w.executor, Job: w.jobs[0]}
				b.Live[at] = of
			}
			for n := range b.Events {
				of.Add(&b.Events[n].Event, "job", b.Now)
				b.Events[n].Incident, b.Events[n].Receivers = of, []noun.Receiver{channel}
			}
			of.WakeAt = b.Now
		})
		require.NoError(t, err)
	}
	for _, job := range []domain.JobID{w.jobs[0], 0} {
		_, err := s.ChangeIncident(ctx, w.tenant, of.ID, func(i *noun.Incident, now time.Time) error {
			i.Job, i.WakeAt = job, now
			return nil
		})
		require.NoError(t, err)
		_, _, err = s.TellIncidents(ctx, 100, func(now time.Time, due []*notify.DueIncident) {
			for _, d := range due {
				d.Told, d.WakeAt = []int{0}, now.Add(time.Hour)
				d.Tell(now)
			}
		})
		require.NoError(t, err)
	}
	due, err := s.ClaimDueDeliveries(ctx, notify.ClaimDeliveriesParams{Limit: 10, Hold: time.Minute, Boot: "b", Living: []string{"b"}})
	require.NoError(t, err)
	require.NotEmpty(t, due)
	require.NoError(t, s.ReleaseDeliveries(ctx, "b", []int64{due[0].Delivery.ID}))
	require.NoError(t, s.FinishDelivery(ctx, due[0].Delivery.ID, noun.DeliveryDelivered, 0, ""))
	_, err = s.OutboxLag(ctx)
	require.NoError(t, err)
	for _, p := range []notify.ListIncidentsParams{{}, {State: noun.IncidentOpen}, {Executor: w.executor}, {Executor: w.executor, State: noun.IncidentResolved}, {Before: of.ID}} {
		p.Tenant, p.Limit = w.tenant, 10
		_, err := s.ListIncidents(ctx, p)
		require.NoError(t, err)
	}
	for _, before := range []int64{0, of.LastEvent} {
		_, err := s.ListIncidentEvents(ctx, notify.ListIncidentEventsParams{Tenant: w.tenant, Incident: of.ID, Before: before, Limit: 10})
		require.NoError(t, err)
	}
	for _, p := range []notify.ListDeliveriesParams{
		{}, {Job: w.jobs[0]}, {State: noun.DeliveryPending}, {State: noun.DeliveryFailed}, {Incident: of.ID}, {Incident: of.ID, State: noun.DeliveryPending}, {Before: due[0].Delivery.ID},
	} {
		p.Tenant, p.Limit = w.tenant, 10
		_, err := s.ListDeliveries(ctx, p)
		require.NoError(t, err)
	}
	_, err = s.ListSilences(ctx, w.tenant, time.Now())
	require.NoError(t, err)
	_, err = s.DeleteOutboxBefore(ctx, time.Now().Add(-time.Hour), 10)
	require.NoError(t, err)
}

// What a rule finds again and again is counted once, also in an incident of more events
// than keep their rows.
func TestAFloodOfLateRunsIsCountedOnce(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := newAlertAging(openStore(t, options(t)))
			w := newWorld(t, s.Store, 100, domain.BlockParallel)
			all := w.plan(13)
			do := func(statement string, args ...any) {
				t.Helper()
				require.NoError(t, s.Run(t.Context(), "change", func(x *db.Tx) error {
					_, err := x.Exec(x.Ctx, statement, args...)
					return err
				}))
			}
			do("UPDATE executions SET fire_at = fire_at - 36000000, not_before = 0, version = version + 1")
			_, err := storetest.PutRule(t.Context(), s, noun.AlertRule{ID: domain.AlertRuleID(w.ids.Next()), TenantID: w.tenant, Spec: noun.AlertRuleSpec{
				Name: "late", Enabled: true, Condition: noun.AlertCondition{Kind: noun.ConditionLate, After: time.Minute}}})
			require.NoError(t, err)
			var of *noun.Incident
			look := func() {
				t.Helper()
				do("UPDATE alert_rules SET next_at = 0")
				_, err := s.EvaluateAlertRules(t.Context())
				require.NoError(t, err)
				for n := 1; n > 0; {
					n, err = s.ExpandAlertEvents(t.Context(), 500, func(b *notify.AlertBatch) {
						at := noun.IncidentKey{Tenant: w.tenant, Key: b.Events[0].Rule.Key(noun.ExecutorIncidentKey(w.executor, noun.AlertClass(domain.AlertRunLate)))}
						if of = b.Live[at]; of == nil {
							of = &noun.Incident{ID: b.NewID(), TenantID: w.tenant, Key: at.Key, Live: true, Kind: domain.AlertRunLate, Executor: w.executor}
							b.Live[at] = of
						}
						for n := range b.Events {
							of.Add(&b.Events[n].Event, "job", b.Now)
							b.Events[n].Incident = of
						}
						of.WakeAt = b.Now
					})
					require.NoError(t, err)
				}
			}
			kept := func() (n int64) {
				require.NoError(t, db.Query(t.Context(), s.Read, func(r *sql.Rows) error { return r.Scan(&n) }, "SELECT COUNT(*) FROM alert_events"))
				return n
			}
			look()
			require.EqualValues(t, noun.MaxIncidentEvents, of.Events)
			for ended := 100; ended <= 300; ended += 100 {
				do("UPDATE executions SET phase = ?, state = ?, wake_at = NULL, version = version + 1 WHERE id <= ?", int64(domain.Succeeded), int64(domain.Succeeded), int64(all[ended-1].ID))
				for range 3 {
					look()
					require.EqualValues(t, noun.MaxIncidentEvents+ended, of.Events, "each run is counted once")
				}
			}
			require.LessOrEqual(t, kept(), int64(noun.MaxIncidentEvents+100), "those of ended runs have gone")
		})
	}
}
