package alertsql

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/document"
)

// Channels is the table of alert channels in a database.
func Channels(database *db.DB) *document.Table {
	t := channels(database)
	t.UsedBy, t.Deleting = []*document.Table{rules(database)}, refuseDefault
	return t
}

// refuseDefault refuses the deletion of a default channel.
func refuseDefault(g *gorm.DB, row *resource.Row) error {
	var rows []alertSettingsRow
	if err := g.Where("tenant_id = ?", int64(row.Tenant)).Find(&rows).Error; err != nil || len(rows) == 0 {
		return err
	}
	s, err := rows[0].settings(row.Tenant)
	if err == nil && slices.Contains(s.DefaultChannels, domain.ChannelID(row.ID)) {
		err = domain.Errorf(domain.CodeConflict, "failures that have no other receiver are told by this channel; choose other default channels in the alert settings first")
	}
	return err
}

func channels(database *db.DB) *document.Table {
	return &document.Table{
		DB: database, Kind: noun.AlertChannelKind, Name: "alert_channels",
		Side: func(row *resource.Row) (map[string]any, error) {
			c, err := noun.AlertChannelOf(row)
			return map[string]any{"kind": string(c.Spec.Kind), "enabled": c.Spec.Enabled, "settings": "{}"}, err // settings: of before the mechanism
		},
	}
}

// channelRow is counted.
type channelRow struct{}

func (channelRow) TableName() string { return "alert_channels" }

// FindAlertChannel implements notify.AlertChannels.
func (s *Alerts) FindAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) (noun.AlertChannel, error) {
	row, err := Channels(s.DB).Find(ctx, tenant, int64(id))
	if err != nil {
		return noun.AlertChannel{}, err
	}
	return noun.AlertChannelOf(&row)
}

// ListAlertChannels implements notify.AlertChannels.
func (s *Alerts) ListAlertChannels(ctx context.Context, tenant domain.TenantID) (out []noun.AlertChannel, err error) {
	err = s.Look(ctx, "list alert channels", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		out, err = channelsIn(s.DB, g, func(g *gorm.DB) *gorm.DB { return g.Where("d.tenant_id = ?", int64(tenant)).Order("d.name") })
		return err
	})
	return out, err
}

// channelsIn reads channels in a transaction.
func channelsIn(database *db.DB, g *gorm.DB, choose func(*gorm.DB) *gorm.DB) ([]noun.AlertChannel, error) {
	rows, err := Channels(database).In(g, choose)
	if err != nil {
		return nil, fmt.Errorf("load alert channels: %w", err)
	}
	return domain.TryCollect(rows, noun.AlertChannelOf)
}

// channelsOf reads the channels that deliveries name. One that is gone is missing;
// one that cannot be read, too, and is logged.
func (s *Alerts) channelsOf(t *db.Tx, deliveries []deliveryRow) (map[int64]*noun.AlertChannel, error) {
	ids := db.IDs(deliveries, func(d deliveryRow) int64 { return d.ChannelID })
	ids = slices.DeleteFunc(ids, func(id int64) bool { return id == 0 })
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := Channels(s.DB).In(t.Gorm, func(g *gorm.DB) *gorm.DB { return g.Where("d.id IN ?", ids) })
	if err != nil {
		return nil, fmt.Errorf("load alert channels: %w", err)
	}
	out := make(map[int64]*noun.AlertChannel, len(rows))
	for i := range rows {
		if rows[i].Problem != "" {
			s.Logger.Error("an alert channel cannot be read", "channel_id", rows[i].ID, "err", rows[i].Problem)
			continue
		}
		c, err := noun.AlertChannelOf(&rows[i])
		if err != nil {
			return nil, err
		}
		out[rows[i].ID] = &c
	}
	return out, nil
}
