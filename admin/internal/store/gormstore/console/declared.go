package console

import (
	"context"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Catalogue) ListDeclaredJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (views []store.JobView, err error) {
	err = s.Look(ctx, "list declared jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.JobRow
		err := g.Where("tenant_id = ? AND declared_by = ? AND state <> ?", int64(tenant), int64(executor), int64(domain.JobDeleted)).
			Order("id").Find(&rows).Error
		if err == nil {
			views, err = s.jobViews(ctx, q, s.Reader.WithContext(ctx), rows)
		}
		return err
	})
	return views, err
}

func (s *Catalogue) WasDeclared(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (was bool, err error) {
	err = s.Look(ctx, "find deleted job", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var n int64
		err := g.Model(&record.JobRow{}).Where("tenant_id = ? AND name = ? AND declared_by = ? AND state = ?",
			int64(tenant), name, int64(executor), int64(domain.JobDeleted)).Count(&n).Error
		was = n > 0
		return err
	})
	return was, err
}

// MarkDeclared is no edit: neither the revision nor the time of the last
// change moves.
func (s *Catalogue) MarkDeclared(ctx context.Context, tenant domain.TenantID, id domain.JobID, m store.DeclaredMark) error {
	return s.RunRepeatable(ctx, "mark declared job", func(t *db.Tx) error {
		_, job, _, err := lockJob(t, tenant, id)
		if err != nil {
			return err
		}
		if job.SetDeclared(&m.Declared); m.Hash != "" {
			job.DeclarationHash = m.Hash
		}
		return t.Gorm.Model(&record.JobRow{}).Where("id = ? AND tenant_id = ?", job.ID, job.TenantID).
			Select("declared_by", "ownership", "removal", "declared_build", "declared_version", "undeclared", "declaration_hash").Updates(&job).Error
	})
}
