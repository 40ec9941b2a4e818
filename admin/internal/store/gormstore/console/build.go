package console

import (
	"context"
	"database/sql"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Catalogue) DefineHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, handlers []domain.Handler) error {
	return s.RunRepeatableAt(ctx, "define handlers", func(t *db.Tx, now time.Time) error {
		return engine.DefineHandlers(t, int64(tenant), int64(executor), handlers, now)
	})
}

func (s *Catalogue) ListBuilds(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []domain.Build, err error) {
	err = s.Look(ctx, "list builds", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []record.BuildRow
		err := g.Omit("catalogue").Where("tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor)).Order("first_seen_at, digest").Find(&rows).Error
		if err != nil {
			return err
		}
		present, err := s.presentBuilds(ctx, q, tenant, executor)
		if err != nil {
			return err
		}
		out = make([]domain.Build, len(rows))
		for i := range rows {
			out[i] = rows[i].Build()
			out[i].Instances, out[i].Present = present[rows[i].Digest].living, present[rows[i].Digest].counts
		}
		return nil
	})
	return out, err
}

func (s *Catalogue) ReadCatalogues(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, digests []string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(digests))
	err := s.Look(ctx, "read catalogues", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []record.BuildRow
		err := g.Select("digest", "catalogue").Where("tenant_id = ? AND executor_id = ? AND digest IN ?", int64(tenant), int64(executor), digests).Find(&rows).Error
		for _, r := range rows {
			out[r.Digest] = r.Catalogue
		}
		return err
	})
	return out, err
}

// presence is what the instances of a build say of it.
type presence struct {
	living int
	counts bool
}

// presentBuilds reads two ranges of ix_instances_executor: those that live,
// and those that left a moment ago.
func (s *Catalogue) presentBuilds(ctx context.Context, q db.Querier, tenant domain.TenantID, executor domain.ExecutorID) (map[string]presence, error) {
	out := map[string]presence{}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var build string
		var living int
		if err := rows.Scan(&build, &living); err != nil {
			return err
		}
		out[build] = presence{living, true}
		return nil
	}, "SELECT build, SUM(CASE WHEN gone_at = 0 AND "+s.heard()+" THEN 1 ELSE 0 END) FROM instances WHERE tenant_id = ? AND executor_id = ?"+
		" AND (gone_at = 0 OR gone_at > "+s.Dialect.ClockNow()+" - ?) GROUP BY build", int64(tenant), int64(executor), domain.BuildGrace.Milliseconds())
	return out, err
}

func (s *Catalogue) SettleBuilds(ctx context.Context, p store.SettleBuildsParams) error {
	return s.RunRepeatable(ctx, "settle builds", func(t *db.Tx) error {
		of := t.Gorm.Model(&record.BuildRow{}).Where("tenant_id = ? AND executor_id = ?", int64(p.Tenant), int64(p.Executor)).Session(&gorm.Session{})
		err := of.Where("applied = ? AND digest NOT IN ?", true, p.Digests).Updates(map[string]any{"applied": false, "contested": false}).Error
		if err != nil {
			return err
		}
		err = of.Where("digest IN ?", p.Digests).Updates(map[string]any{"applied": true, "contested": len(p.Refused) > 0}).Error
		if err != nil {
			return err
		}
		return replaceRefused(t, p)
	})
}

type refusedDeclarationRow struct {
	TenantID   int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ExecutorID int64  `gorm:"column:executor_id;primaryKey;autoIncrement:false"`
	Name       string `gorm:"column:name;primaryKey"`
	Code       string `gorm:"column:code"`
	Message    string `gorm:"column:message"`
	AppVersion string `gorm:"column:app_version"`
	RefusedAt  int64  `gorm:"column:refused_at"`
}

func (refusedDeclarationRow) TableName() string { return "refused_declarations" }

func replaceRefused(t *db.Tx, p store.SettleBuildsParams) error {
	err := t.Gorm.Where("tenant_id = ? AND executor_id = ?", int64(p.Tenant), int64(p.Executor)).Delete(&refusedDeclarationRow{}).Error
	if err != nil || len(p.Refused) == 0 {
		return err
	}
	now, err := t.Clock()
	if err != nil {
		return err
	}
	rows := make([]refusedDeclarationRow, 0, min(len(p.Refused), store.MaxRefusedDeclarations))
	for _, r := range p.Refused[:cap(rows)] {
		rows = append(rows, refusedDeclarationRow{
			TenantID: int64(p.Tenant), ExecutorID: int64(p.Executor), Name: record.Clip(r.Name, 190), Code: string(r.Code),
			Message: record.Clip(r.Message, 1024), AppVersion: record.Clip(r.Version, 190), RefusedAt: db.Millis(now),
		})
	}
	return t.Gorm.Create(&rows).Error
}

func (s *Catalogue) ListRefusedDeclarations(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []domain.RefusedDeclaration, err error) {
	rows, err := db.FindAll[refusedDeclarationRow](ctx, s.DB, "list refused declarations", "name", "tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor))
	return domain.Collect(rows, func(r *refusedDeclarationRow) domain.RefusedDeclaration {
		return domain.RefusedDeclaration{Name: r.Name, Code: domain.Code(r.Code), Message: r.Message, Version: r.AppVersion, At: db.Instant(r.RefusedAt)}
	}), err
}

// ListUnsettled looks for builds in force without an instance and for instances of other
// builds. It also looks for refused declarations with a name that is free now. The refusal
// advises to rename or delete the other job.
func (s *Catalogue) ListUnsettled(ctx context.Context, limit int) (out []store.ExecutorKey, err error) {
	const instance = " EXISTS (SELECT 1 FROM instances AS i WHERE i.tenant_id = b.tenant_id AND i.executor_id = b.executor_id AND "
	return db.LookSelect(ctx, s.DB, "list unsettled builds", func(k *store.ExecutorKey) []any { return []any{&k.Tenant, &k.Executor} },
		"SELECT DISTINCT b.tenant_id, b.executor_id FROM executor_builds AS b WHERE"+
			" (b.applied = 1 AND NOT"+instance+"(i.gone_at = 0 OR i.gone_at > "+s.Dialect.ClockNow()+" - ?) AND i.build = b.digest) AND"+instance+"i.gone_at = 0))"+
			" OR (b.applied = 0 AND"+instance+"i.gone_at = 0 AND i.build = b.digest))"+
			" OR (b.applied = 1 AND b.contested = 1 AND"+instance+"i.gone_at = 0 AND i.build = b.digest) AND EXISTS (SELECT 1 FROM refused_declarations AS r"+
			" WHERE r.tenant_id = b.tenant_id AND r.executor_id = b.executor_id AND r.code = ? AND NOT EXISTS ("+
			"SELECT 1 FROM jobs AS j WHERE j.tenant_id = r.tenant_id AND j.name = r.name AND j.state <> ?))) LIMIT ?",
		domain.BuildGrace.Milliseconds(), string(domain.CodeConflict), int64(domain.JobDeleted), record.PageSize(limit))
}
