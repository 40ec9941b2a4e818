package alertsql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// TellIncidents looks without the turn first: there is hardly ever anything.
func (s *Alerts) TellIncidents(ctx context.Context, limit int, tell func(now time.Time, due []*notify.DueIncident)) (n int, wait time.Duration, err error) {
	if due, wait, err := s.nextIncident(ctx); err != nil || !due {
		return 0, wait, err
	}
	n, err = db.Value(ctx, s.RunRepeatable, "tell incidents", func(t *db.Tx) (int, error) {
		if err := takeAlertingTurn(t); err != nil {
			return 0, err
		}
		now, err := t.Clock()
		if err != nil {
			return 0, err
		}
		var rows []incidentRow
		err = t.Gorm.Clauses(t.Locking()...).Where("wake_at <= ?", db.Millis(now)).Order("wake_at").Limit(limit).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return 0, err
		}
		due, err := s.loadDue(t, rows)
		if err != nil {
			return 0, err
		}
		if err := panics.Catch(func() error {
			tell(now, due) // decides in its argument
			return nil
		}); err != nil {
			return 0, fmt.Errorf("decide what to tell: %w", err)
		}
		for _, d := range due {
			if err := s.saveTold(t, d, now); err != nil {
				return 0, err
			}
		}
		return len(rows), nil
	})
	if err != nil {
		return 0, 0, err
	}
	_, wait, err = s.nextIncident(ctx)
	return n, wait, err
}

// nextIncident is how long it is until the next incident is to be looked at, or an
// event that gathers to be counted (0: there is neither), and whether there is an
// incident now.
func (s *Alerts) nextIncident(ctx context.Context) (due bool, wait time.Duration, err error) {
	err = s.LookRows(ctx, "find next incident", func(rows *sql.Rows) error {
		var now, wake, tell int64
		err := rows.Scan(&now, &wake, &tell)
		due = wake > 0 && wake <= now
		if wake == 0 || tell > 0 && tell < wake {
			wake = tell
		}
		if wake > 0 {
			wait = time.Duration(max(wake-now, 1)) * time.Millisecond
		}
		return err
	}, "SELECT "+s.Dialect.Clock()+", COALESCE((SELECT wake_at FROM alert_incidents WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1), 0),"+
		" COALESCE((SELECT tell_at FROM alert_events WHERE expanded_at = 0 AND tell_at > "+s.Dialect.ClockNow()+" ORDER BY tell_at LIMIT 1), 0)")
	return due, wait, err
}

func (s *Alerts) loadDue(t *db.Tx, rows []incidentRow) ([]*notify.DueIncident, error) {
	list, err := domain.TryCollect(rows, (*incidentRow).incident)
	if err != nil {
		return nil, err
	}
	due := make([]*notify.DueIncident, len(list))
	byID := map[domain.IncidentID]*notify.DueIncident{}
	ids := make([]int64, len(list))
	for n, i := range list {
		due[n] = &notify.DueIncident{Incident: i}
		byID[i.ID], ids[n] = due[n], int64(i.ID)
	}
	var receivers []receiverRow
	if err := t.Gorm.Where("incident_id IN ?", ids).Find(&receivers).Error; err != nil {
		return nil, fmt.Errorf("load receivers: %w", err)
	}
	for n := range receivers {
		d := byID[domain.IncidentID(receivers[n].IncidentID)]
		d.Receivers = append(d.Receivers, receivers[n].receiver())
	}
	if err := loadWishes(t, due); err != nil {
		return nil, err
	}
	for _, d := range due {
		if d.Momentary() && d.State == noun.IncidentResolved {
			err := db.Query(t.Ctx, t.Conn, func(*sql.Rows) error { d.Unsent = true; return nil },
				"SELECT 1 FROM deliveries WHERE incident_id = ? AND state = ? LIMIT 1", int64(d.ID), int64(noun.DeliveryPending))
			if err != nil {
				return nil, fmt.Errorf("look for pending deliveries: %w", err)
			}
		}
		if d.State == noun.IncidentResolved || d.Executor == 0 {
			continue
		}
		if err := s.loadRecovery(t, d); err != nil {
			return nil, fmt.Errorf("look for recovery: %w", err)
		}
	}
	return due, nil
}

// loadWishes reads what tenants say about their incidents: rules, settings, channels,
// silences that last, and the labels of single jobs.
func loadWishes(t *db.Tx, due []*notify.DueIncident) error {
	now, err := t.Clock()
	if err != nil {
		return err
	}
	var tenants []domain.TenantID
	var ruleIDs, jobIDs []int64
	for _, d := range due {
		if d.TenantID != 0 && !slices.Contains(tenants, d.TenantID) {
			tenants = append(tenants, d.TenantID)
		}
		ruleIDs, jobIDs = append(ruleIDs, int64(d.Incident.Rule)), append(jobIDs, int64(d.Job))
	}
	of, err := tenantAlerts(t, tenants)
	if err != nil {
		return err
	}
	quiet := map[domain.TenantID][]noun.AlertSilence{}
	for _, id := range tenants {
		var rows []silenceRow
		err := t.Gorm.Where("tenant_id = ? AND ends_at > ? AND starts_at <= ?", int64(id), db.Millis(now), db.Millis(now)).Limit(noun.MaxAlertSilences).Find(&rows).Error
		if err == nil {
			quiet[id], err = domain.TryCollect(rows, (*silenceRow).silence)
		}
		if err != nil {
			return fmt.Errorf("load silences: %w", err)
		}
	}
	rules, err := rulesIn(t, "d.id IN ?", ruleIDs)
	if err != nil {
		return err
	}
	jobs, err := db.ByID[record.JobRow](t.Gorm, "id IN ?", jobIDs, func(r record.JobRow) int64 { return r.ID })
	if err != nil {
		return fmt.Errorf("load jobs: %w", err)
	}
	for _, d := range due {
		d.TenantAlerts, d.Silences = of[d.TenantID], quiet[d.TenantID]
		if rule := noun.RuleByID(rules, d.Incident.Rule); rule != nil && rule.TenantID == d.TenantID {
			d.Rule = rule
		}
		if job, ok := jobs[int64(d.Job)]; ok {
			d.Labels = job.LabelMap()
		}
	}
	return nil
}

// recoveryRuns bounds how many runs are looked at for one that succeeded.
const recoveryRuns = 50

// loadRecovery looks at the newest runs of the incident's job or executor.
func (s *Alerts) loadRecovery(t *db.Tx, d *notify.DueIncident) error {
	if d.Kind == domain.AlertRunsPileUp {
		return loadWaiting(t, d)
	}
	from := fmt.Sprintf("%s WHERE job_id = %d ORDER BY fire_at DESC LIMIT %d", t.Dialect.ByIndex("uq_executions_occurrence"), d.Job, recoveryRuns)
	if d.Job == 0 {
		from = fmt.Sprintf("%s WHERE tenant_id = %d AND executor_id = %d ORDER BY id DESC LIMIT %d", t.Dialect.ByIndex("ix_executions_executor"), d.TenantID, d.Executor, recoveryRuns)
	}
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var tenant, state, parent, finished int64
		err := rows.Scan(&tenant, &state, &parent, &finished)
		if domain.TenantID(tenant) == d.TenantID && domain.State(state) == domain.Succeeded && parent == 0 && finished > db.Millis(d.LastAt) {
			d.Succeeded = db.Instant(finished)
		}
		return err
	}, "SELECT tenant_id, state, parent_id, finished_at FROM executions"+from)
	if err != nil || d.Job != 0 {
		return err
	}
	return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&d.Online) },
		"SELECT COUNT(*) FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > "+t.Dialect.ClockNow(), int64(d.TenantID), int64(d.Executor))
}

// loadWaiting reads the slots of the incident's jobs by primary key.
func loadWaiting(t *db.Tx, d *notify.DueIncident) error {
	jobs := domain.Collect(d.Jobs, func(j *noun.IncidentJob) domain.JobID { return j.ID })
	if len(jobs) == 0 {
		return nil
	}
	return db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&d.Waiting) },
		"SELECT COALESCE(SUM(waiters), 0) FROM job_slots"+t.Dialect.ByPrimary()+" WHERE job_id IN ("+db.IDList(jobs)+") AND tenant_id = ?", int64(d.TenantID))
}

// saveTold writes what was decided about one.
func (s *Alerts) saveTold(t *db.Tx, d *notify.DueIncident, now time.Time) error {
	if len(d.Told) > 0 {
		pending, err := pendingReceivers(t, d.ID)
		if err != nil {
			return err
		}
		var deliveries []noun.Delivery
		var fresh []noun.Receiver
		for _, at := range d.Told {
			r := d.Receivers[at]
			if !r.Told {
				fresh = append(fresh, r)
			}
			for _, delivery := range deliveriesTo(d, &r) {
				if !pending[deliveryKey(&delivery)] { // else what waits there tells how the incident stands then
					deliveries = append(deliveries, delivery)
				}
			}
		}
		if err := s.insertDeliveries(t, deliveries, now); err != nil {
			return err
		}
		if len(fresh) > 0 {
			if err := addReceivers(t, d.ID, fresh); err != nil {
				return err
			}
			keys := domain.Collect(fresh, (*noun.Receiver).Key)
			err := t.Gorm.Model(&receiverRow{}).Where("incident_id = ? AND receiver_key IN ?", int64(d.ID), keys).Update("told", true).Error
			if err != nil {
				return fmt.Errorf("note receivers: %w", err)
			}
		}
	}
	return saveIncident(t, d.Incident)
}

// deliveriesTo are what it takes to tell a receiver: a channel may have several
// addresses. One that is gone fails with that reason.
func deliveriesTo(d *notify.DueIncident, r *noun.Receiver) []noun.Delivery {
	list := []noun.Delivery{{TenantID: d.TenantID, EventID: d.LastEvent, Channel: r.Channel, ChannelID: r.ChannelID, Target: r.Target, State: noun.DeliveryPending}}
	if c, ok := d.Channels[r.ChannelID]; ok {
		list = c.Deliveries(d.LastEvent)
	}
	for n := range list {
		list[n].Incident, list[n].Job = d.ID, r.Job
	}
	return list
}

// deliveryKey is the same for what goes to the same place by the same means.
func deliveryKey(d *noun.Delivery) string {
	return d.Channel + " " + d.ChannelID.String() + " " + d.Target
}

// pendingReceivers are those, by deliveryKey, that were not told yet of what was to
// be told earlier. What a node has claimed may be under way, and is none of them.
func pendingReceivers(t *db.Tx, incident domain.IncidentID) (map[string]bool, error) {
	var rows []deliveryRow
	err := t.Gorm.Clauses(t.SkipLocked()...).Where("incident_id = ? AND state = ? AND claimed_by = ''", int64(incident), int64(noun.DeliveryPending)).Find(&rows).Error
	out := map[string]bool{}
	for _, r := range rows {
		d := r.delivery(domain.AlertEvent{})
		out[deliveryKey(&d)] = true
	}
	if err != nil {
		err = fmt.Errorf("load pending deliveries: %w", err)
	}
	return out, err
}

func (s *Alerts) insertDeliveries(t *db.Tx, list []noun.Delivery, now time.Time) error {
	rows := make([]deliveryRow, len(list))
	for n := range list {
		var err error
		if rows[n], err = s.newDelivery(&list[n], now); err != nil {
			return err
		}
	}
	if len(rows) == 0 {
		return nil
	}
	if err := t.Gorm.CreateInBatches(rows, 200).Error; err != nil {
		return fmt.Errorf("write deliveries: %w", err)
	}
	return nil
}
