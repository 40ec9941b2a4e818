package alertsql

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Alerts) ListIncidents(ctx context.Context, p notify.ListIncidentsParams) (page store.Page[noun.Incident], err error) {
	limit := record.PageSize(p.Limit)
	err = s.Look(ctx, "list incidents", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var out []noun.Incident
		end := domain.IncidentID(0) // older incidents may lack others between them, which were not read
		size := map[domain.IncidentID]int{}
		// One bounded scan of the index per state, merged.
		for _, state := range noun.IncidentStates {
			if p.State != 0 && p.State != state {
				continue
			}
			q := g.Where("tenant_id = ? AND state = ?", int64(p.Tenant), int64(state))
			if p.Executor != 0 {
				q = q.Where("executor_id = ?", int64(p.Executor))
			}
			if p.Before != 0 {
				q = q.Where("id < ?", int64(p.Before))
			}
			rows, more, err := record.FindWithin(q.Order("id DESC"), limit, (*incidentRow).size)
			if err != nil {
				return err
			}
			if more {
				end = max(end, domain.IncidentID(rows[len(rows)-1].ID))
			}
			for i := range rows {
				size[domain.IncidentID(rows[i].ID)] = rows[i].size()
			}
			list, err := domain.TryCollect(rows, (*incidentRow).incident)
			if err != nil {
				return err
			}
			for _, i := range list {
				out = append(out, *i)
			}
		}
		slices.SortFunc(out, func(a, b noun.Incident) int { return int(min(max(b.ID-a.ID, -1), 1)) })
		read := slices.IndexFunc(out, func(i noun.Incident) bool { return i.ID < end })
		if read < 0 {
			read = len(out)
		}
		n := domain.FirstWithin(out[:min(read, limit)], domain.MaxPageBytes, func(i *noun.Incident) int64 { return int64(size[i.ID]) })
		page = store.Page[noun.Incident]{Items: out[:n], More: end > 0 || n < len(out)}
		return countTold(g, page.Items)
	})
	return page, err
}

// countTold sets Told to 0 for incidents without a receiver that was told. The stored number
// counts each round, also one without a receiver: the pace of rounds depends on it. countTold
// also counts the messages that were given up.
func countTold(g *gorm.DB, list []noun.Incident) error {
	if len(list) == 0 {
		return nil
	}
	var told []int64
	ids := domain.Collect(list, func(i *noun.Incident) int64 { return int64(i.ID) })
	if err := g.Model(&receiverRow{}).Where("incident_id IN ? AND told = ?", ids, true).Distinct().Pluck("incident_id", &told).Error; err != nil {
		return err
	}
	var lost []struct{ IncidentID, N int64 }
	if err := g.Model(&deliveryRow{}).Select("incident_id, COUNT(*) AS n").Where("incident_id IN ? AND state = ?", ids, int64(noun.DeliveryFailed)).Group("incident_id").Find(&lost).Error; err != nil {
		return err
	}
	undelivered := map[int64]int64{}
	for _, of := range lost {
		undelivered[of.IncidentID] = of.N
	}
	for n := range list {
		i := &list[n]
		i.Undelivered = undelivered[int64(i.ID)]
		if !slices.Contains(told, int64(i.ID)) {
			i.Told, i.ToldAt = 0, time.Time{}
		}
	}
	return nil
}

func (s *Alerts) FindIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID) (out noun.Incident, err error) {
	row, err := db.FindOne[incidentRow](ctx, s.DB, "find incident", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return out, err
	}
	i, err := row.incident()
	if err != nil {
		return out, err
	}
	list := []noun.Incident{*i}
	err = s.Look(ctx, "count messages", func(_ context.Context, _ db.Querier, g *gorm.DB) error { return countTold(g, list) })
	return list[0], err
}

func (s *Alerts) ChangeIncident(ctx context.Context, tenant domain.TenantID, id domain.IncidentID, change func(*noun.Incident, time.Time) error) (noun.Incident, error) {
	return db.Value(ctx, s.RunRepeatable, "find incident", func(t *db.Tx) (none noun.Incident, err error) {
		now, err := t.Clock()
		if err != nil {
			return none, err
		}
		var row incidentRow
		if err := t.Gorm.Clauses(t.Locking()...).Where("id = ? AND tenant_id = ?", int64(id), int64(tenant)).Take(&row).Error; err != nil {
			return none, err
		}
		i, err := row.incident()
		if err != nil {
			return none, err
		}
		before := incidentFacts(i)
		if err := change(i, now); err != nil {
			return none, err
		}
		t.AuditedChange(domain.AuditObject{}, before, incidentFacts(i))
		if err := saveIncident(t, i); err != nil {
			return none, err
		}
		list := []noun.Incident{*i}
		err = countTold(t.Gorm, list)
		return list[0], err
	})
}

func incidentFacts(i *noun.Incident) db.Facts {
	return db.Facts{"state": i.State, "acknowledgedBy": i.AcknowledgedBy, "resolvedBy": i.ResolvedBy}
}

func (s *Alerts) ListIncidentEvents(ctx context.Context, p notify.ListIncidentEventsParams) (out []domain.AlertEvent, err error) {
	rows, err := db.FindBy[eventRow](ctx, s.DB, "list events of incident", func(g *gorm.DB) *gorm.DB {
		g = g.Where("incident_id = ? AND tenant_id = ?", int64(p.Incident), int64(p.Tenant))
		if p.Before != 0 {
			g = g.Where("id < ?", p.Before)
		}
		return g.Order("id DESC").Limit(record.PageSize(p.Limit))
	})
	return domain.Collect(rows, (*eventRow).event), err
}
