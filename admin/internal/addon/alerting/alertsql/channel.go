package alertsql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type channelRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Name      string `gorm:"column:name"`
	Kind      string `gorm:"column:kind"`
	Enabled   bool   `gorm:"column:enabled"`
	Version   int64  `gorm:"column:version"`
	Settings  string `gorm:"column:settings"`
	Secrets   []byte `gorm:"column:secrets"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	UpdatedBy string `gorm:"column:updated_by"`
}

func (channelRow) TableName() string { return "alert_channels" }

// channelDocument is the column settings.
type channelDocument struct {
	Description string           `json:"description,omitempty"`
	Language    string           `json:"language,omitempty"`
	Emails      []string         `json:"emails,omitempty"`
	BaseURL     string           `json:"baseUrl,omitempty"`
	ChatID      string           `json:"chatId,omitempty"`
	ThreadID    int64            `json:"threadId,omitempty"`
	Mentions    []string         `json:"mentions,omitempty"`
	MentionAll  bool             `json:"mentionAll,omitempty"`
	Templates   templateDocument `json:"templates,omitzero"`
	Host        string           `json:"host,omitempty"`
	HasSecret   bool             `json:"hasSecret,omitempty"`
	HasToken    bool             `json:"hasToken,omitempty"`
}

type templateDocument struct {
	Title       string `json:"title,omitempty"`
	Text        string `json:"text,omitempty"`
	HTML        string `json:"html,omitempty"`
	Body        string `json:"body,omitempty"`
	ContentType string `json:"contentType,omitempty"`
}

func toChannelRow(c *noun.AlertChannel) (channelRow, error) {
	s := &c.Spec
	text, err := json.Marshal(channelDocument{
		Description: s.Description, Language: s.Language, Emails: s.Emails, BaseURL: s.BaseURL, ChatID: s.ChatID, ThreadID: s.ThreadID,
		Mentions: s.Mentions, MentionAll: s.MentionAll, Templates: templateDocument(s.Templates), Host: c.Host, HasSecret: c.HasSecret, HasToken: c.HasToken,
	})
	if err != nil {
		return channelRow{}, fmt.Errorf("encode alert channel: %w", err)
	}
	secrets := c.Secrets
	if secrets == nil {
		secrets = []byte{}
	}
	return channelRow{
		ID: int64(c.ID), TenantID: int64(c.TenantID), Name: s.Name, Kind: string(s.Kind), Enabled: s.Enabled, Version: c.Version, Settings: string(text),
		Secrets: secrets, CreatedBy: c.CreatedBy, UpdatedBy: c.UpdatedBy,
	}, nil
}

func (r *channelRow) channel() (noun.AlertChannel, error) {
	var d channelDocument
	if err := json.Unmarshal([]byte(r.Settings), &d); err != nil {
		return noun.AlertChannel{}, fmt.Errorf("decode alert channel %d: %w", r.ID, err)
	}
	return noun.AlertChannel{
		ID: domain.ChannelID(r.ID), TenantID: domain.TenantID(r.TenantID), Version: r.Version, Secrets: r.Secrets,
		Host: d.Host, HasSecret: d.HasSecret, HasToken: d.HasToken,
		CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
		Spec: noun.AlertChannelSpec{
			Name: r.Name, Description: d.Description, Kind: noun.ChannelKind(r.Kind), Enabled: r.Enabled, Language: d.Language, Emails: d.Emails,
			BaseURL: d.BaseURL, ChatID: d.ChatID, ThreadID: d.ThreadID, Mentions: d.Mentions, MentionAll: d.MentionAll,
			Templates: noun.ChannelTemplates(d.Templates),
		},
	}, nil
}

func (s *Alerts) channels() record.Definition[domain.ChannelID] {
	return record.Definition[domain.ChannelID]{DB: s.DB, Noun: "alert channel", Row: &channelRow{}, Most: noun.MaxAlertChannels}
}

// CreateAlertChannel implements notify.AlertChannels.
func (s *Alerts) CreateAlertChannel(ctx context.Context, c noun.AlertChannel) (noun.AlertChannel, error) {
	c.Version, c.UpdatedBy = 1, c.CreatedBy
	row, err := toChannelRow(&c)
	if err != nil {
		return noun.AlertChannel{}, err
	}
	err = s.channels().Create(ctx, c.TenantID, row.Name, func(t *db.Tx, now time.Time) error {
		row.CreatedAt, row.UpdatedAt = db.Millis(now), db.Millis(now)
		t.Audited(domain.AuditObject{ID: c.ID.String(), Name: row.Name})
		return t.Gorm.Create(&row).Error
	})
	if err != nil {
		return noun.AlertChannel{}, err
	}
	return s.FindAlertChannel(ctx, c.TenantID, c.ID)
}

// UpdateAlertChannel implements notify.AlertChannels.
func (s *Alerts) UpdateAlertChannel(ctx context.Context, c noun.AlertChannel) (noun.AlertChannel, error) {
	row, err := toChannelRow(&c)
	if err != nil {
		return noun.AlertChannel{}, err
	}
	err = s.channels().Update(ctx, c.TenantID, c.ID, c.Version, row.Name, func(t *db.Tx, now time.Time) error {
		_, err := t.Exec(t.Ctx, "UPDATE alert_channels SET name = ?, enabled = ?, version = ?, settings = ?, secrets = ?, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			row.Name, row.Enabled, row.Version+1, row.Settings, row.Secrets, db.Millis(now), row.UpdatedBy, row.ID, row.TenantID)
		return err
	})
	if err != nil {
		return noun.AlertChannel{}, err
	}
	return s.FindAlertChannel(ctx, c.TenantID, c.ID)
}

// DeleteAlertChannel implements notify.AlertChannels.
func (s *Alerts) DeleteAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) error {
	return s.channels().Delete(ctx, tenant, id)
}

// FindAlertChannel implements notify.AlertChannels.
func (s *Alerts) FindAlertChannel(ctx context.Context, tenant domain.TenantID, id domain.ChannelID) (noun.AlertChannel, error) {
	row, err := db.FindOne[channelRow](ctx, s.DB, "find alert channel", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return noun.AlertChannel{}, err
	}
	return row.channel()
}

// ListAlertChannels implements notify.AlertChannels.
func (s *Alerts) ListAlertChannels(ctx context.Context, tenant domain.TenantID) ([]noun.AlertChannel, error) {
	rows, err := db.FindAll[channelRow](ctx, s.DB, "list alert channels", "name", "tenant_id = ?", int64(tenant))
	if err != nil {
		return nil, err
	}
	return domain.TryCollect(rows, (*channelRow).channel)
}

// channelsOf reads the channels that deliveries name. One that is gone is missing;
// one that cannot be read, too, and is logged.
func (s *Alerts) channelsOf(t *db.Tx, deliveries []deliveryRow) (map[int64]*noun.AlertChannel, error) {
	ids := map[int64]bool{}
	for _, d := range deliveries {
		if d.ChannelID != 0 {
			ids[d.ChannelID] = true
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	list := make([]int64, 0, len(ids))
	for id := range ids {
		list = append(list, id)
	}
	var rows []channelRow
	if err := t.Gorm.Where("id IN ?", list).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("load alert channels: %w", err)
	}
	out := make(map[int64]*noun.AlertChannel, len(rows))
	for i := range rows {
		c, err := rows[i].channel()
		if err != nil {
			s.Logger.Error("an alert channel cannot be read", "channel_id", rows[i].ID, "err", err)
			continue
		}
		out[rows[i].ID] = &c
	}
	return out, nil
}
