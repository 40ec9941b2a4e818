package alertsql

import (
	"context"
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type alertRuleRow struct {
	ID        int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID  int64  `gorm:"column:tenant_id"`
	Name      string `gorm:"column:name"`
	Version   int64  `gorm:"column:version"`
	Spec      string `gorm:"column:spec"`
	NextAt    *int64 `gorm:"column:next_at"`
	NextJob   int64  `gorm:"column:next_job"`
	OnSuccess bool   `gorm:"column:on_success"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	UpdatedAt int64  `gorm:"column:updated_at;autoUpdateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
	UpdatedBy string `gorm:"column:updated_by"`
}

func (alertRuleRow) TableName() string { return "alert_rules" }

func toAlertRuleRow(r *noun.AlertRule) (alertRuleRow, error) {
	text, err := encodeAlertRule(&r.Spec)
	return alertRuleRow{
		ID: int64(r.ID), TenantID: int64(r.TenantID), Name: r.Spec.Name, Version: r.Version, Spec: text, OnSuccess: r.Spec.WantsSuccess(), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}, err
}

func (r *alertRuleRow) rule() (noun.AlertRule, error) {
	spec, err := decodeAlertRule(r.Spec)
	if err != nil {
		return noun.AlertRule{}, fmt.Errorf("decode alert rule %d: %w", r.ID, err)
	}
	spec.Name = r.Name
	return noun.AlertRule{
		ID: domain.AlertRuleID(r.ID), TenantID: domain.TenantID(r.TenantID), Version: r.Version, Spec: spec,
		CreatedAt: db.Instant(r.CreatedAt), UpdatedAt: db.Instant(r.UpdatedAt), CreatedBy: r.CreatedBy, UpdatedBy: r.UpdatedBy,
	}, nil
}

func rules(rows []alertRuleRow) ([]noun.AlertRule, error) {
	out, err := domain.TryCollect(rows, (*alertRuleRow).rule)
	noun.SortRules(out)
	return out, err
}

func (s *Alerts) rules() record.Definition[domain.AlertRuleID] {
	return record.Definition[domain.AlertRuleID]{DB: s.DB, Noun: "alert rule", Row: &alertRuleRow{}, Most: noun.MaxAlertRules}
}

func (s *Alerts) CreateAlertRule(ctx context.Context, r noun.AlertRule) (noun.AlertRule, error) {
	defer s.engine.ForgetSuccesses()
	r.Version, r.UpdatedBy = 1, r.CreatedBy
	row, err := toAlertRuleRow(&r)
	if err != nil {
		return noun.AlertRule{}, err
	}
	err = s.rules().Create(ctx, r.TenantID, row.Name, func(t *db.Tx, now time.Time) error {
		if err := holdChannels(t, &r); err != nil {
			return err
		}
		row.CreatedAt, row.UpdatedAt, row.NextAt = db.Millis(now), db.Millis(now), nextLook(&r.Spec, now)
		t.Audited(domain.AuditObject{ID: r.ID.String(), Name: row.Name, After: row.Spec})
		return t.Gorm.Create(&row).Error
	})
	if err != nil {
		return noun.AlertRule{}, err
	}
	return s.FindAlertRule(ctx, r.TenantID, r.ID)
}

func (s *Alerts) UpdateAlertRule(ctx context.Context, r noun.AlertRule) (noun.AlertRule, error) {
	defer s.engine.ForgetSuccesses()
	row, err := toAlertRuleRow(&r)
	if err != nil {
		return noun.AlertRule{}, err
	}
	err = s.rules().Update(ctx, r.TenantID, r.ID, r.Version, row.Name, func(t *db.Tx, now time.Time) error {
		if err := holdChannels(t, &r); err != nil {
			return err
		}
		_, err := t.Exec(t.Ctx, "UPDATE alert_rules SET name = ?, version = ?, spec = ?, on_success = ?, next_at = ?, next_job = 0, updated_at = ?, updated_by = ? WHERE id = ? AND tenant_id = ?",
			row.Name, row.Version+1, row.Spec, row.OnSuccess, nextLook(&r.Spec, now), db.Millis(now), row.UpdatedBy, row.ID, row.TenantID)
		return err
	})
	if err != nil {
		return noun.AlertRule{}, err
	}
	return s.FindAlertRule(ctx, r.TenantID, r.ID)
}

func (s *Alerts) DeleteAlertRule(ctx context.Context, tenant domain.TenantID, id domain.AlertRuleID) error {
	defer s.engine.ForgetSuccesses()
	return s.rules().Delete(ctx, tenant, id)
}

func (s *Alerts) FindAlertRule(ctx context.Context, tenant domain.TenantID, id domain.AlertRuleID) (noun.AlertRule, error) {
	row, err := db.FindOne[alertRuleRow](ctx, s.DB, "find alert rule", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return noun.AlertRule{}, err
	}
	return row.rule()
}

func (s *Alerts) ListAlertRules(ctx context.Context, tenant domain.TenantID) ([]noun.AlertRule, error) {
	rows, err := db.FindAll[alertRuleRow](ctx, s.DB, "list alert rules", "name", "tenant_id = ?", int64(tenant))
	if err != nil {
		return nil, err
	}
	return rules(rows)
}
