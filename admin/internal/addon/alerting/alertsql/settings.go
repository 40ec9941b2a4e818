package alertsql

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type alertSettingsRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Version   int64  `gorm:"column:version"`
	Settings  string `gorm:"column:settings"`
	UpdatedAt int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	UpdatedBy string `gorm:"column:updated_by"`
}

func (alertSettingsRow) TableName() string { return "alert_settings" }

type alertSettingsDocument struct {
	DefaultChannels []domain.ChannelID `json:"defaultChannels,omitempty"`
	Quiet           *noun.QuietHours   `json:"quiet,omitempty"`
}

func (r *alertSettingsRow) settings(tenant domain.TenantID) (noun.AlertSettings, error) {
	out := noun.AlertSettings{TenantID: tenant, Version: r.Version, UpdatedAt: db.Instant(r.UpdatedAt), UpdatedBy: r.UpdatedBy}
	if r.Version == 0 {
		return out, nil
	}
	var d alertSettingsDocument
	if err := json.Unmarshal([]byte(r.Settings), &d); err != nil {
		return out, fmt.Errorf("decode alert settings of tenant %s: %w", tenant, err)
	}
	out.DefaultChannels = d.DefaultChannels
	if d.Quiet != nil {
		out.Quiet = *d.Quiet
	}
	return out, nil
}

func encodeSettings(s *noun.AlertSettings) (string, error) {
	document := alertSettingsDocument{DefaultChannels: s.DefaultChannels}
	if !s.Quiet.IsZero() {
		document.Quiet = &s.Quiet
	}
	text, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("encode alert settings: %w", err)
	}
	return string(text), nil
}

func (s *Alerts) FindAlertSettings(ctx context.Context, tenant domain.TenantID) (noun.AlertSettings, error) {
	rows, err := db.FindAll[alertSettingsRow](ctx, s.DB, "find alert settings", "tenant_id", "tenant_id = ?", int64(tenant))
	if err != nil {
		return noun.AlertSettings{}, err
	}
	if len(rows) == 0 {
		return noun.AlertSettings{TenantID: tenant}, nil
	}
	return rows[0].settings(tenant)
}

func (s *Alerts) SaveAlertSettings(ctx context.Context, settings noun.AlertSettings) (noun.AlertSettings, error) {
	text, err := encodeSettings(&settings)
	if err != nil {
		return noun.AlertSettings{}, err
	}
	err = s.Run(ctx, "save alert settings", func(t *db.Tx) error {
		var tenant record.TenantRow // so that two who say something for the first time come one after the other
		if err := t.Gorm.Clauses(t.Locking()...).Where("id = ?", int64(settings.TenantID)).Take(&tenant).Error; err != nil {
			return err
		}
		var rows []alertSettingsRow
		if err := t.Gorm.Where("tenant_id = ?", int64(settings.TenantID)).Find(&rows).Error; err != nil {
			return err
		}
		version, before := int64(0), ""
		if len(rows) > 0 {
			version, before = rows[0].Version, rows[0].Settings
		}
		if version != settings.Version {
			return domain.Errorf(domain.CodeRevisionMismatch, "the alert settings are at version %d, not %d", version, settings.Version)
		}
		t.Audited(domain.AuditObject{Before: before, After: text})
		now, err := t.Clock()
		if err != nil {
			return err
		}
		return saveSettings(t, settings.TenantID, version+1, text, now, settings.UpdatedBy)
	})
	if err != nil {
		return noun.AlertSettings{}, err
	}
	return s.FindAlertSettings(ctx, settings.TenantID)
}

// tenantAlerts reads settings and channels of tenants.
func tenantAlerts(t *db.Tx, tenants []domain.TenantID) (map[domain.TenantID]notify.TenantAlerts, error) {
	out := make(map[domain.TenantID]notify.TenantAlerts, len(tenants))
	for _, id := range tenants {
		of := notify.TenantAlerts{Settings: noun.AlertSettings{TenantID: id}, Channels: map[domain.ChannelID]noun.AlertChannel{}}
		var settings []alertSettingsRow
		if err := t.Gorm.Where("tenant_id = ?", int64(id)).Find(&settings).Error; err != nil {
			return nil, fmt.Errorf("load alert settings: %w", err)
		}
		for n := range settings {
			var err error
			if of.Settings, err = settings[n].settings(id); err != nil {
				return nil, err
			}
		}
		channels, err := channelsIn(t.DB, t.Gorm, func(g *gorm.DB) *gorm.DB { return g.Where("d.tenant_id = ?", int64(id)) })
		if err != nil {
			return nil, err
		}
		for _, c := range channels {
			of.Channels[c.ID] = c
		}
		out[id] = of
	}
	return out, nil
}
