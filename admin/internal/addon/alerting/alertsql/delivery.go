package alertsql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type deliveryRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	EventID     int64  `gorm:"column:event_id"`
	IncidentID  int64  `gorm:"column:incident_id"`
	JobID       int64  `gorm:"column:job_id"`
	Channel     string `gorm:"column:channel"`
	ChannelID   int64  `gorm:"column:channel_id"`
	Target      string `gorm:"column:target"`
	State       int64  `gorm:"column:state"`
	Attempts    int64  `gorm:"column:attempts"`
	NextAt      int64  `gorm:"column:next_at"`
	LastError   string `gorm:"column:last_error"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
	DeliveredAt int64  `gorm:"column:delivered_at"`
	ClaimedBy   string `gorm:"column:claimed_by"`
}

func (deliveryRow) TableName() string { return "deliveries" }

func (r deliveryRow) delivery(event domain.AlertEvent) noun.Delivery {
	return noun.Delivery{
		ID: r.ID, TenantID: domain.TenantID(r.TenantID), EventID: r.EventID, Event: event, Incident: domain.IncidentID(r.IncidentID), Job: domain.JobID(r.JobID), Channel: r.Channel,
		ChannelID: domain.ChannelID(r.ChannelID), Target: r.Target, State: noun.DeliveryState(r.State), Attempts: int(r.Attempts), NextAt: db.Instant(r.NextAt), LastError: r.LastError,
		CreatedAt: db.Instant(r.CreatedAt), DeliveredAt: db.Instant(r.DeliveredAt),
	}
}

func (s *Alerts) newDelivery(d *noun.Delivery, now time.Time) (row deliveryRow, err error) {
	row = deliveryRow{
		ID: d.ID, TenantID: int64(d.TenantID), EventID: d.EventID, IncidentID: int64(d.Incident), JobID: int64(d.Job), Channel: d.Channel, ChannelID: int64(d.ChannelID), Target: record.Clip(d.Target, 2048),
		State: int64(d.State), Attempts: int64(d.Attempts), NextAt: db.Millis(d.NextAt), LastError: record.Clip(d.LastError, record.MessageSize), CreatedAt: db.Millis(now),
	}
	if row.State == 0 {
		row.State = int64(noun.DeliveryPending)
	}
	if row.NextAt == 0 {
		row.NextAt = db.Millis(now)
	}
	if row.ID == 0 {
		row.ID, err = s.NewID()
	}
	return row, err
}

// ClaimDueDeliveries hides what it returns: a node that dies while delivering
// delays the next attempt until its death is known, and loses nothing.
func (s *Alerts) ClaimDueDeliveries(ctx context.Context, p notify.ClaimDeliveriesParams) ([]notify.DueDelivery, error) {
	return db.Value(ctx, s.RunRepeatable, "claim deliveries", func(t *db.Tx) ([]notify.DueDelivery, error) {
		now, err := t.Clock()
		if err != nil {
			return nil, err
		}
		if err := freeClaims(t, now, p.Living); err != nil {
			return nil, err
		}
		var rows []deliveryRow
		err = t.Gorm.Clauses(t.SkipLocked()...).Where("state = ? AND next_at <= ?", int64(noun.DeliveryPending), db.Millis(now)).
			Order("next_at").Limit(record.PageSize(p.Limit)).Find(&rows).Error
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		ids, events := make([]int64, len(rows)), make([]int64, len(rows))
		for i := range rows {
			rows[i].Attempts++
			rows[i].NextAt = db.Millis(now.Add(p.Hold))
			ids[i], events[i] = rows[i].ID, rows[i].EventID
		}
		_, err = t.Exec(t.Ctx, "UPDATE deliveries SET attempts = attempts + 1, next_at = ?, claimed_by = ? WHERE id IN ("+db.IDList(ids)+")",
			db.Millis(now.Add(p.Hold)), p.Boot)
		if err != nil {
			return nil, err
		}
		return s.dueDeliveries(t, rows, events)
	})
}

// freeLimit bounds the claims that one call frees.
const freeLimit = 1000

// freeClaims makes due what nodes had claimed that are not among the living.
// It reads without locks first: there is hardly ever anything.
func freeClaims(t *db.Tx, now time.Time, living []string) error {
	if len(living) == 0 {
		return nil
	}
	var ids []int64
	err := t.Gorm.Model(&deliveryRow{}).Where("claimed_by > '' AND claimed_by NOT IN ? AND state = ?", living, int64(noun.DeliveryPending)).
		Limit(freeLimit).Pluck("id", &ids).Error
	if err != nil || len(ids) == 0 {
		return err
	}
	return t.Gorm.Model(&deliveryRow{}).Where("id IN ? AND claimed_by NOT IN ? AND state = ?", ids, living, int64(noun.DeliveryPending)).
		Updates(map[string]any{"next_at": db.Millis(now), "claimed_by": ""}).Error
}

func (s *Alerts) ReleaseDeliveries(ctx context.Context, boot string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	return s.RunRepeatableAt(ctx, "release deliveries", func(t *db.Tx, now time.Time) error {
		_, err := t.Exec(t.Ctx, "UPDATE deliveries SET next_at = ?, claimed_by = '' WHERE id IN ("+db.IDList(ids)+") AND claimed_by = ? AND state = ?",
			db.Millis(now), boot, int64(noun.DeliveryPending))
		return err
	})
}

// FinishDelivery leaves a delivery alone that another node has settled.
func (s *Alerts) FinishDelivery(ctx context.Context, id int64, state noun.DeliveryState, retryIn time.Duration, lastError string) error {
	return s.RunRepeatableAt(ctx, "finish delivery", func(t *db.Tx, now time.Time) error {
		deliveredAt, nextAt := int64(0), db.Millis(now)
		switch state {
		case noun.DeliveryDelivered:
			deliveredAt = db.Millis(now)
		case noun.DeliveryPending:
			nextAt = db.Millis(now.Add(retryIn))
		}
		_, err := t.Exec(t.Ctx, "UPDATE deliveries SET state = ?, next_at = ?, delivered_at = ?, last_error = ?, claimed_by = '' WHERE id = ? AND state = ?",
			int64(state), nextAt, deliveredAt, record.Clip(lastError, record.MessageSize), id, int64(noun.DeliveryPending))
		return err
	})
}

// ListDeliveries reads an index that has them in the order of their ids. That of an
// incident has them so for each state.
func (s *Alerts) ListDeliveries(ctx context.Context, p notify.ListDeliveriesParams) (out []noun.Delivery, err error) {
	states, index := []noun.DeliveryState{p.State}, "ix_deliveries_tenant"
	switch {
	case p.Incident != 0:
		index = "ix_deliveries_incident"
		if p.State == 0 {
			states = []noun.DeliveryState{noun.DeliveryPending, noun.DeliveryDelivered, noun.DeliveryFailed}
		}
	case p.Job != 0:
		index = "ix_deliveries_job"
	case p.State != 0:
		index = "ix_deliveries_state"
	}
	err = s.Look(ctx, "list deliveries", func(ctx context.Context, _ db.Querier, g *gorm.DB) error {
		var all []deliveryRow
		for _, state := range states {
			q := g.Table("deliveries"+s.Dialect.ByIndex(index)).Where("tenant_id = ?", int64(p.Tenant))
			if p.Job != 0 {
				q = q.Where("job_id = ?", int64(p.Job))
			}
			if state != 0 {
				q = q.Where("state = ?", int64(state))
			}
			if p.Incident != 0 {
				q = q.Where("incident_id = ?", int64(p.Incident))
			}
			if p.Before != 0 {
				q = q.Where("id < ?", p.Before)
			}
			var rows []deliveryRow
			if err := q.Order("id DESC").Limit(record.PageSize(p.Limit)).Find(&rows).Error; err != nil {
				return err
			}
			all = append(all, rows...)
		}
		slices.SortFunc(all, func(a, b deliveryRow) int { return cmp.Compare(b.ID, a.ID) })
		rows := all[:min(len(all), record.PageSize(p.Limit))]
		events, err := db.ByID[eventRow](s.Reader.WithContext(ctx), "id IN ?", db.IDs(rows, func(r deliveryRow) int64 { return r.EventID }), func(r eventRow) int64 { return r.ID })
		if err != nil {
			return err
		}
		out = make([]noun.Delivery, len(rows))
		for i, r := range rows {
			out[i] = r.delivery(events[r.EventID].event())
		}
		return nil
	})
	return out, err
}

// dueDeliveries loads what is told by claimed deliveries, of these events.
func (s *Alerts) dueDeliveries(t *db.Tx, rows []deliveryRow, ids []int64) ([]notify.DueDelivery, error) {
	found, err := db.ByID[eventRow](t.Gorm, "id IN ?", ids, func(r eventRow) int64 { return r.ID })
	if err != nil {
		return nil, fmt.Errorf("load events: %w", err)
	}
	about, err := db.ByID[incidentRow](t.Gorm, "id IN ?", db.IDs(rows, func(r deliveryRow) int64 { return r.IncidentID }), func(r incidentRow) int64 { return r.ID })
	if err != nil {
		return nil, fmt.Errorf("load incidents: %w", err)
	}
	// Of an incident of several jobs a receiver hears as the owner of its own one.
	events := make([]eventRow, len(rows))
	for i, r := range rows {
		events[i] = found[r.EventID]
		if r.IncidentID != 0 && r.JobID != 0 && r.JobID != events[i].JobID {
			events[i].JobID, events[i].Revision, events[i].ExecutionID = r.JobID, 0, 0
		}
	}
	contexts, err := s.alertContexts(t.Ctx, t.Conn, t.Gorm, events, true)
	if err != nil {
		return nil, err
	}
	channels, err := s.channelsOf(t, rows)
	if err != nil {
		return nil, err
	}
	out := make([]notify.DueDelivery, len(rows))
	for i, r := range rows {
		out[i] = notify.DueDelivery{Delivery: r.delivery(contexts[i].Event), Context: contexts[i]}
		if c := channels[r.ChannelID]; c != nil && int64(c.TenantID) == r.TenantID {
			out[i].Channel = c
		}
		if row, ok := about[r.IncidentID]; ok {
			if out[i].Incident, err = row.incident(); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// OutboxLag looks at one row of each index: events that nobody has expanded,
// by id, and deliveries that are pending, by their time.
func (s *Alerts) OutboxLag(ctx context.Context) (lag time.Duration, err error) {
	err = s.Look(ctx, "read outbox lag", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var now, written, event, delivery int64
			if err := rows.Scan(&now, &written, &event, &delivery); err != nil {
				return err
			}
			oldest := now
			for _, since := range [...]int64{written, event, delivery} {
				if since > 0 {
					oldest = min(oldest, since)
				}
			}
			lag = time.Duration(now-oldest) * time.Millisecond
			return nil
		}, "SELECT "+s.Dialect.Clock()+", "+db.OldestOutbox(domain.TopicEvents)+","+
			" COALESCE((SELECT CASE WHEN tell_at = 0 THEN created_at ELSE tell_at END FROM alert_events WHERE expanded_at = 0 ORDER BY tell_at, id LIMIT 1), 0),"+
			" COALESCE((SELECT next_at FROM deliveries WHERE state = ? ORDER BY next_at LIMIT 1), 0)", int64(noun.DeliveryPending))
	})
	return lag, err
}
