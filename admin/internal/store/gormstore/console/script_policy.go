package console

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

type scriptPolicyRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Revision  int64  `gorm:"column:revision;primaryKey;autoIncrement:false"`
	Languages string `gorm:"column:languages"`
	HTTP      bool   `gorm:"column:http"`
	Note      string `gorm:"column:note"`
	CreatedAt int64  `gorm:"column:created_at;autoCreateTime:false"`
	CreatedBy string `gorm:"column:created_by"`
}

func (scriptPolicyRow) TableName() string { return "script_policies" }

func (r *scriptPolicyRow) policy() domain.ScriptPolicy {
	p := domain.ScriptPolicy{
		TenantID: domain.TenantID(r.TenantID), Revision: r.Revision, HTTP: r.HTTP, Note: r.Note,
		CreatedAt: db.Instant(r.CreatedAt), CreatedBy: r.CreatedBy,
	}
	if r.Languages != "" {
		p.Languages = strings.Split(r.Languages, ",")
	}
	return p
}

func newestPolicies(g *gorm.DB, tenant domain.TenantID, limit int) (rows []scriptPolicyRow, err error) {
	err = g.Where("tenant_id = ?", int64(tenant)).Order("revision DESC").Limit(limit).Find(&rows).Error
	return rows, err
}

func (s *Scripts) FindScriptPolicy(ctx context.Context, tenant domain.TenantID) (domain.ScriptPolicy, error) {
	list, err := s.ListScriptPolicies(ctx, tenant, 1)
	if err != nil || len(list) == 0 {
		return domain.ScriptPolicy{TenantID: tenant}, err
	}
	return list[0], nil
}

func (s *Scripts) ListScriptPolicies(ctx context.Context, tenant domain.TenantID, limit int) (out []domain.ScriptPolicy, err error) {
	err = s.Look(ctx, "list script policies", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		rows, err := newestPolicies(g, tenant, record.PageSize(limit))
		out = domain.Collect(rows, (*scriptPolicyRow).policy)
		return err
	})
	return out, err
}

func (s *Scripts) SetScriptPolicy(ctx context.Context, p domain.ScriptPolicy) (domain.ScriptPolicy, error) {
	err := s.Run(ctx, "set script policy", func(t *db.Tx) error {
		now, err := t.Clock()
		if err != nil {
			return err
		}
		rows, err := newestPolicies(t.Gorm, p.TenantID, 1)
		if err != nil {
			return err
		}
		p.Revision, p.CreatedAt = 1, now
		if len(rows) > 0 {
			p.Revision = rows[0].Revision + 1
		}
		err = t.Gorm.Create(&scriptPolicyRow{
			TenantID: int64(p.TenantID), Revision: p.Revision, Languages: strings.Join(p.Languages, ","), HTTP: p.HTTP,
			Note: p.Note, CreatedAt: db.Millis(now), CreatedBy: p.CreatedBy,
		}).Error
		if db.IsDuplicate(err) {
			return domain.Errorf(domain.CodeConflict, "somebody else changed the policy at the same moment; look at it again")
		}
		return err
	})
	return p, err
}
