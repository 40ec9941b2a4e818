package alertsql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// alertingTurn is a row that whoever groups events, or tells of incidents, has
// locked: one at a time in the cluster, so that nobody opens an incident twice.
const alertingTurn = "alerting_turn"

func takeAlertingTurn(t *db.Tx) error {
	_, err := t.Exec(t.Ctx, "INSERT INTO cluster_values (name, value) VALUES (?, '')"+t.Dialect.OnDuplicate("name")+" value = ''", alertingTurn)
	return err
}

// ExpandAlertEvents marks an event done also when nobody has to know of it.
func (s *Alerts) ExpandAlertEvents(ctx context.Context, limit int, group func(*notify.AlertBatch)) (n int, err error) {
	if pending, err := s.unexpanded(ctx); err != nil || !pending {
		return 0, err // so that a look alone writes nothing
	}
	return db.Value(ctx, s.RunRepeatable, "expand alert events", func(t *db.Tx) (n int, err error) {
		if err := takeAlertingTurn(t); err != nil {
			return 0, err
		}
		now, err := t.Clock()
		if err != nil {
			return 0, err
		}
		read, err := readOutbox(t, now, limit)
		if err != nil {
			return 0, err
		}
		n, rows, err := takeEvents(t, now, limit)
		n = max(n, read)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		g := grouping{s: s, t: t, rows: rows, now: now, before: map[*noun.Incident]incidentEdge{}}
		if err := g.load(); err != nil {
			return 0, err
		}
		if err := panics.Catch(func() error {
			group(&g.batch) // decides in its argument
			return nil
		}); err != nil {
			// They are told to nobody, and keep no other from being told.
			s.Logger.Error("alerts cannot be grouped", "events", len(rows), "err", err, "stack", panics.Stack(err))
			for i := range g.batch.Events {
				g.batch.Events[i].Incident = nil
			}
			g.batch.Direct = nil
		}
		return n, g.save()
	})
}

// unexpanded reports whether there is an event whose time has come.
func (s *Alerts) unexpanded(ctx context.Context) (pending bool, err error) {
	err = s.LookRows(ctx, "look for alert events", func(rows *sql.Rows) error { return rows.Scan(&pending) },
		fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM outbox WHERE topic = %d) OR EXISTS (SELECT 1 FROM alert_events WHERE expanded_at = 0 AND tell_at <= %s)", domain.TopicEvents, s.Dialect.ClockNow()))
	return pending, err
}

// incidentEdge is what an incident was when it was loaded.
type incidentEdge struct {
	events, last int64
}

// grouping is one transaction of ExpandAlertEvents.
type grouping struct {
	s      *Alerts
	t      *db.Tx
	now    time.Time
	rows   []eventRow
	batch  notify.AlertBatch
	before map[*noun.Incident]incidentEdge // those that were there
}

func (g *grouping) load() error {
	contexts, err := g.s.alertContexts(g.t.Ctx, g.t.Conn, g.t.Gorm, g.rows, false)
	if err != nil {
		return err
	}
	b := &g.batch
	b.Now, b.NewID = g.now, g.s.newIncidentID
	b.Live, b.Recent = map[noun.IncidentKey]*noun.Incident{}, map[domain.ExecutorID][]*noun.Incident{}
	if b.Tenants, err = g.loadTenants(contexts); err != nil {
		return err
	}
	b.Events = make([]notify.GroupedEvent, len(contexts))
	keys := map[domain.TenantID]map[string]bool{}
	executors := map[domain.ExecutorID]domain.TenantID{}
	for i, c := range contexts {
		e := &b.Events[i]
		e.AlertContext = c
		e.Decide(b.Tenants[c.Event.TenantID].Rules)
		if keys[c.Event.TenantID] == nil {
			keys[c.Event.TenantID] = map[string]bool{}
		}
		for _, key := range e.Keys() {
			keys[c.Event.TenantID][key] = true
		}
		if c.Executor.ID != 0 {
			executors[c.Executor.ID] = c.Event.TenantID
		}
	}
	if err := g.loadFacts(); err != nil {
		return fmt.Errorf("load what rules ask for: %w", err)
	}
	if err := g.loadOffline(); err != nil {
		return fmt.Errorf("look for instances: %w", err)
	}
	if err := g.loadLive(keys); err != nil {
		return fmt.Errorf("load incidents: %w", err)
	}
	for _, executor := range slices.Sorted(maps.Keys(executors)) {
		if err := g.loadRecent(executors[executor], executor); err != nil {
			return fmt.Errorf("load incidents of executor: %w", err)
		}
	}
	return nil
}

// loadOffline finds the executors without an instance that is heard, among the executors of events that
// an outage may have caused.
func (g *grouping) loadOffline() error {
	b := &g.batch
	b.Offline = map[domain.ExecutorID]bool{}
	for n := range b.Events {
		e := &b.Events[n]
		if _, looked := b.Offline[e.Executor.ID]; looked || e.Executor.ID == 0 || !noun.Shows(&e.Event) {
			continue
		}
		b.Offline[e.Executor.ID] = true
		err := db.Query(g.t.Ctx, g.t.Conn, func(*sql.Rows) error {
			b.Offline[e.Executor.ID] = false
			return nil
		}, fmt.Sprintf("SELECT 1 FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > %[1]s"+
			// A dispatch timeout may be shorter than the lease of a dead process (domain.Instance.Silent).
			" AND (lease_until >= %[1]s + %[2]d OR last_seen_at >= %[1]s - %[3]d) LIMIT 1",
			g.t.Dialect.ClockNow(), (domain.LeaseTTL-domain.SilentAfter).Milliseconds(), domain.SilentAfter.Milliseconds()),
			int64(e.Event.TenantID), int64(e.Executor.ID))
		if err != nil {
			return err
		}
	}
	return nil
}

// loadTenants reads what the events' tenants say.
func (g *grouping) loadTenants(contexts []notify.AlertContext) (map[domain.TenantID]notify.TenantAlerts, error) {
	var ids []domain.TenantID
	for _, c := range contexts {
		if c.Event.TenantID != 0 && !slices.Contains(ids, c.Event.TenantID) {
			ids = append(ids, c.Event.TenantID)
		}
	}
	out, err := tenantAlerts(g.t, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		of := out[id]
		if of.Rules, err = rulesIn(g.t, "d.tenant_id = ?", int64(id)); err != nil {
			return nil, err
		}
		out[id] = of
	}
	return out, nil
}

// loadFacts reads what the rules of the batch's events ask for, once per job, and
// what runs say of their ends.
func (g *grouping) loadFacts() error {
	bad := map[domain.JobID][]bool{}
	var runs []int64
	for n := range g.batch.Events {
		e := &g.batch.Events[n]
		if e.Rule == nil {
			continue
		}
		switch e.Rule.Spec.Condition.Kind {
		case noun.ConditionFailures:
			if _, known := bad[e.Event.JobID]; !known {
				list, err := lastEnds(g.t, e.Event.TenantID, e.Event.JobID)
				if err != nil {
					return err
				}
				bad[e.Event.JobID] = list
			}
			e.Facts.Bad = bad[e.Event.JobID]
		case noun.ConditionKeyword:
			runs = append(runs, int64(e.Event.ExecutionID))
			e.Facts.Text = e.Event.Detail
		}
	}
	if len(runs) == 0 {
		return nil
	}
	texts := map[domain.ExecutionID]string{}
	err := db.Query(g.t.Ctx, g.t.Conn, func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var message, text string
		var output []byte
		err := rows.Scan(&id, &message, &text, &output)
		texts[id] = message + "\n" + text + "\n" + string(output)
		return err
	}, "SELECT id, message, COALESCE(error, ''), output FROM executions"+g.t.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(runs)+")")
	for n := range g.batch.Events {
		e := &g.batch.Events[n]
		e.Facts.Text += texts[e.Event.ExecutionID]
	}
	return err
}

// lastEnds says of the newest ended runs of a job, newest first, which ended badly.
func lastEnds(t *db.Tx, tenant domain.TenantID, job domain.JobID) (bad []bool, err error) {
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var of domain.TenantID
		var state domain.State
		var parent int64
		err := rows.Scan(&of, &state, &parent)
		if of != tenant || parent != 0 || len(bad) == noun.MaxFailuresOf {
			return err
		}
		switch state {
		case domain.Succeeded:
			bad = append(bad, false)
		case domain.Failed, domain.TimedOut, domain.Lost, domain.Missed:
			bad = append(bad, true)
		}
		return err
	}, fmt.Sprintf("SELECT tenant_id, state, parent_id FROM executions%s WHERE job_id = %d ORDER BY fire_at DESC LIMIT %d",
		t.Dialect.ByIndex("uq_executions_occurrence"), job, 4*noun.MaxFailuresOf))
	return bad, err
}

func (s *Alerts) newIncidentID() domain.IncidentID {
	id, err := s.NewID()
	if err != nil {
		panic(err) // ids are there since the node was registered; the transaction ends with it
	}
	return domain.IncidentID(id)
}

// loadLive locks the incidents of keys, tenant by tenant.
func (g *grouping) loadLive(keys map[domain.TenantID]map[string]bool) error {
	for _, tenant := range slices.Sorted(maps.Keys(keys)) {
		for part := range slices.Chunk(slices.Sorted(maps.Keys(keys[tenant])), 500) {
			var rows []incidentRow
			if err := g.t.Gorm.Clauses(g.t.Locking()...).Where("tenant_id = ? AND live_key IN ?", int64(tenant), part).Find(&rows).Error; err != nil {
				return err
			}
			if err := g.keep(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *grouping) loadRecent(tenant domain.TenantID, executor domain.ExecutorID) error {
	var rows []incidentRow
	err := g.t.Gorm.Clauses(g.t.Locking()...).Where("tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor)).
		Order("id DESC").Limit(notify.RecentIncidents).Find(&rows).Error
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r incidentRow) bool { return r.JobID == 0 || r.WakeAt == nil })
	if err := g.keep(rows); err != nil {
		return err
	}
	for _, r := range rows {
		g.batch.Recent[executor] = append(g.batch.Recent[executor], g.batch.Live[noun.IncidentKey{Tenant: domain.TenantID(r.TenantID), Key: r.LiveKey}])
	}
	return nil
}

// keep takes what was loaded, each incident once.
func (g *grouping) keep(rows []incidentRow) error {
	list, err := domain.TryCollect(rows, (*incidentRow).incident)
	if err != nil {
		return err
	}
	for _, i := range list {
		key := noun.IncidentKey{Tenant: i.TenantID, Key: i.Key}
		if g.batch.Live[key] == nil && i.Live {
			g.batch.Live[key] = i
			g.before[i] = incidentEdge{i.Events, i.LastEvent}
		}
	}
	return nil
}

// save writes incidents, receivers and deliveries, and settles the events.
func (g *grouping) save() error {
	of := map[*noun.Incident][]int{} // its events
	var gone []int64                 // events that keep no row
	receivers := map[*noun.Incident][]noun.Receiver{}
	for i := range g.batch.Events {
		e := &g.batch.Events[i]
		switch {
		case e.Incident != nil:
			of[e.Incident] = append(of[e.Incident], i)
			receivers[e.Incident] = append(receivers[e.Incident], e.Receivers...)
		case e.Event.ExecutionID != 0 && e.Event.Kind != domain.AlertTest:
			gone = append(gone, e.Event.ID)
		}
	}
	settled := map[int64]domain.IncidentID{}
	for _, i := range sortedIncidents(g.batch.Live) {
		edge, known := g.before[i]
		if known && len(of[i]) == 0 && i.Live {
			continue // as it was
		}
		dropped := keepEvents(i, edge, of[i], g.batch.Events)
		gone = append(gone, dropped...)
		if err := g.dropSettled(i); err != nil {
			return fmt.Errorf("drop events of ended runs: %w", err)
		}
		for _, at := range of[i] {
			settled[g.batch.Events[at].Event.ID] = i.ID
		}
		if !known {
			row, err := toIncidentRow(i)
			if err != nil {
				return err
			}
			if err := g.t.Gorm.Create(&row).Error; err != nil {
				return fmt.Errorf("open incident: %w", err)
			}
		} else if err := saveIncident(g.t, i); err != nil {
			return err
		}
		if i.Parent != 0 {
			if err := g.moveParts(i); err != nil {
				return err
			}
		}
	}
	for i, list := range receivers {
		if err := addReceivers(g.t, i.ID, list); err != nil {
			return err
		}
	}
	if err := g.s.insertDeliveries(g.t, g.batch.Direct, g.now); err != nil {
		return err
	}
	return g.settle(settled, gone)
}

func sortedIncidents(live map[noun.IncidentKey]*noun.Incident) []*noun.Incident {
	out := slices.Collect(maps.Values(live))
	slices.SortFunc(out, func(a, b *noun.Incident) int { return int(min(max(a.ID-b.ID, -1), 1)) })
	return slices.CompactFunc(out, func(a, b *noun.Incident) bool { return a == b })
}

// keepEvents decides which of an incident's new events keep their rows: of a flood
// the first ones, the newest, and those that were told; and what a rule has found
// (dropSettled).
func keepEvents(i *noun.Incident, edge incidentEdge, list []int, events []notify.GroupedEvent) (gone []int64) {
	looked := false
	for _, at := range list {
		id := events[at].Event.ID
		looked = looked || events[at].Event.Rule != 0
		if i.Kept < noun.MaxIncidentEvents || events[at].Event.Rule != 0 {
			i.Kept++
		} else if id != i.LastEvent {
			gone = append(gone, id)
		}
	}
	if len(list) > 0 && i.Kept >= noun.MaxIncidentEvents && edge.events >= noun.MaxIncidentEvents && edge.last != i.ToldEvent && edge.last != i.LastEvent && !looked {
		gone = append(gone, edge.last) // of the last round, which nobody has told
	}
	return gone
}

// dropSettled drops of an incident that has too many events the newest of those that a
// rule has found and will not find again, because their run does not live any more or
// their day is over. Those that it would find again keep their rows, whose keys keep
// them from being counted twice: as many as a look finds (lookRuns), or as there are jobs.
func (g *grouping) dropSettled(i *noun.Incident) error {
	over := i.Kept - noun.MaxIncidentEvents
	if over <= 0 {
		return nil
	}
	var ids []int64
	ids, err := db.SelectColumn[int64](g.t.Ctx, g.t.Conn,
		fmt.Sprintf("SELECT a.id FROM alert_events AS a%s LEFT JOIN executions AS x ON x.id = a.execution_id WHERE a.incident_id = %d AND a.rule_id <> 0 AND a.id NOT IN (%d, %d)"+
			" AND CASE WHEN a.execution_id = 0 THEN a.created_at < %d ELSE x.id IS NULL OR x.phase <> %d END ORDER BY a.id DESC LIMIT %d",
			g.t.Dialect.ByIndex("ix_alert_events_incident"), i.ID, i.LastEvent, i.ToldEvent, db.Millis(absentSince(g.now)), record.PhaseAlive, over))
	if err != nil || len(ids) == 0 {
		return err
	}
	i.Kept -= int64(len(ids))
	return g.deleteEvents(ids)
}

func (g *grouping) deleteEvents(ids []int64) error {
	for part := range slices.Chunk(ids, 500) {
		if _, err := g.t.Exec(g.t.Ctx, "DELETE FROM alert_events WHERE id IN ("+db.IDList(part)+")"); err != nil {
			return err
		}
	}
	return nil
}

// settle marks the events as counted, and removes those that keep no row.
func (g *grouping) settle(of map[int64]domain.IncidentID, gone []int64) error {
	removed := map[int64]bool{}
	for _, id := range gone {
		removed[id] = true
	}
	byIncident := map[domain.IncidentID][]int64{}
	for _, r := range g.rows {
		if !removed[r.ID] {
			byIncident[of[r.ID]] = append(byIncident[of[r.ID]], r.ID)
		}
	}
	for _, incident := range slices.Sorted(maps.Keys(byIncident)) {
		_, err := g.t.Exec(g.t.Ctx, "UPDATE alert_events SET expanded_at = ?, incident_id = ? WHERE id IN ("+db.IDList(byIncident[incident])+")",
			db.Millis(g.now), int64(incident))
		if err != nil {
			return fmt.Errorf("settle events: %w", err)
		}
	}
	if err := g.deleteEvents(gone); err != nil {
		return fmt.Errorf("remove counted events: %w", err)
	}
	return nil
}
