package alertsql

import (
	"context"
	"encoding/json"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// CreateDefaultReceiver implements notify.AlertChannels.
func (s *Alerts) CreateDefaultReceiver(ctx context.Context, c noun.AlertChannel, by string) (made bool, err error) {
	spec, err := json.Marshal(&c.Spec)
	if err != nil {
		return false, err
	}
	return db.Value(ctx, s.Run, "create default receiver", func(t *db.Tx) (bool, error) {
		there, err := record.CountOfTenant(t, c.TenantID, &channelRow{}, "1 = 1") // with a lock on the tenant
		if err != nil || there == 0 && len(c.Spec.Emails) == 0 {
			return false, err
		}
		var said int64
		if err := t.Gorm.Model(&alertSettingsRow{}).Where("tenant_id = ?", int64(c.TenantID)).Count(&said).Error; err != nil || said > 0 {
			return false, err
		}
		var same []int64
		if err := t.Gorm.Model(&channelRow{}).Where("tenant_id = ? AND name = ?", int64(c.TenantID), c.Spec.Name).Limit(1).Pluck("id", &same).Error; err != nil {
			return false, err
		}
		now, err := t.Clock()
		if err != nil {
			return false, err
		}
		channel := c.ID
		switch {
		case len(same) > 0:
			channel = domain.ChannelID(same[0])
		case len(c.Spec.Emails) == 0:
			return false, nil
		default:
			row := resource.Row{Meta: resource.Meta{ID: int64(channel), Tenant: c.TenantID, Name: c.Spec.Name, Version: 1, CreatedBy: by, UpdatedBy: by}, Spec: spec}
			if _, err := Channels(s.DB).Insert(t, row, db.Millis(now)); err != nil {
				return false, err
			}
		}
		text, err := encodeSettings(&noun.AlertSettings{DefaultChannels: []domain.ChannelID{channel}})
		if err != nil {
			return false, err
		}
		return true, saveSettings(t, c.TenantID, 1, text, now, by)
	})
}

// saveSettings writes a version of a tenant. The row of the tenant is locked.
func saveSettings(t *db.Tx, tenant domain.TenantID, version int64, text string, now time.Time, by string) error {
	row := alertSettingsRow{TenantID: int64(tenant), Version: version, Settings: text, UpdatedAt: db.Millis(now), UpdatedBy: by}
	return t.Gorm.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// ListUnheardTenants implements notify.AlertChannels.
func (s *Alerts) ListUnheardTenants(ctx context.Context, mails bool) ([]notify.UnheardTenant, error) {
	tenants, err := db.FindAll[record.TenantRow](ctx, s.DB, "list unheard tenants", "name", "state IN ?", []int64{int64(domain.TenantEnabled), int64(domain.TenantDisabled)})
	if err != nil {
		return nil, err
	}
	rows, err := db.FindAll[alertSettingsRow](ctx, s.DB, "list unheard tenants", "tenant_id", "1 = 1")
	if err != nil {
		return nil, err
	}
	channels := map[domain.ChannelID]noun.AlertChannel{}
	err = s.Look(ctx, "list unheard tenants", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		open, err := channelsIn(s.DB, g, func(g *gorm.DB) *gorm.DB {
			return g.Where("d.enabled = ? AND (d.kind <> ? OR ?)", true, string(noun.ChannelEmail), mails)
		})
		for _, c := range open {
			channels[c.ID] = c
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	said := make(map[int64]*alertSettingsRow, len(rows))
	for n := range rows {
		said[rows[n].TenantID] = &rows[n]
	}
	var out []notify.UnheardTenant
	for n := range tenants {
		var settings noun.AlertSettings
		row, found := said[tenants[n].ID]
		if found {
			if settings, err = row.settings(domain.TenantID(tenants[n].ID)); err != nil {
				return nil, err
			}
		}
		if len(settings.Receivers(channels)) == 0 {
			out = append(out, notify.UnheardTenant{Tenant: tenants[n].Tenant(), Fresh: !found})
		}
	}
	return out, nil
}
