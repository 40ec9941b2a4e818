package gormstore

import (
	"context"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Values of jobs.undeclared.
const (
	undeclaredGone   = 1
	undeclaredPaused = 2
)

func (r *jobRow) declared() domain.Declared {
	return domain.Declared{
		By: domain.ExecutorID(r.DeclaredBy), Ownership: domain.Ownership(r.Ownership), Removal: domain.Removal(r.Removal),
		Build: r.DeclaredBuild, Version: r.DeclaredVersion,
		Gone: r.Undeclared != 0, PausedGone: r.Undeclared == undeclaredPaused,
	}
}

// setDeclared replaces what the job notes about its declaration; nil keeps it.
func (r *jobRow) setDeclared(d *domain.Declared) {
	if d == nil {
		return
	}
	r.DeclaredBy, r.Ownership, r.Removal = int64(d.By), string(d.Ownership), string(d.Removal)
	r.DeclaredBuild, r.DeclaredVersion, r.Undeclared = d.Build, clip(d.Version, nameSize), 0
	switch {
	case d.PausedGone:
		r.Undeclared = undeclaredPaused
	case d.Gone:
		r.Undeclared = undeclaredGone
	}
}

func (s *Catalogue) ListDeclaredJobs(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (views []store.JobView, err error) {
	err = s.Look(ctx, "list declared jobs", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []jobRow
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
		err := g.Model(&jobRow{}).Where("tenant_id = ? AND name = ? AND declared_by = ? AND state = ?",
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
		if job.setDeclared(&m.Declared); m.Hash != "" {
			job.DeclarationHash = m.Hash
		}
		return t.Gorm.Model(&jobRow{}).Where("id = ? AND tenant_id = ?", job.ID, job.TenantID).
			Select("declared_by", "ownership", "removal", "declared_build", "declared_version", "undeclared", "declaration_hash").Updates(&job).Error
	})
}
