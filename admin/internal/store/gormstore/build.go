package gormstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type buildRow struct {
	TenantID    int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ExecutorID  int64  `gorm:"column:executor_id;primaryKey;autoIncrement:false"`
	Digest      string `gorm:"column:digest;primaryKey"`
	AppVersion  string `gorm:"column:app_version"`
	Generation  int64  `gorm:"column:generation"`
	Handlers    string `gorm:"column:handlers"`
	Catalogue   []byte `gorm:"column:catalogue"`
	Applied     bool   `gorm:"column:applied"`
	NoJobs      bool   `gorm:"column:no_jobs"`
	Contested   bool   `gorm:"column:contested"`
	FirstSeenAt int64  `gorm:"column:first_seen_at"`
	LastSeenAt  int64  `gorm:"column:last_seen_at"`
}

func (buildRow) TableName() string { return "executor_builds" }

func (r *buildRow) build() domain.Build {
	b := domain.Build{
		TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Digest: r.Digest,
		Version: r.AppVersion, Generation: r.Generation, Applied: r.Applied, Contested: r.Contested, NoJobs: r.NoJobs,
		FirstSeenAt: db.Instant(r.FirstSeenAt), LastSeenAt: db.Instant(r.LastSeenAt),
	}
	if json.Unmarshal([]byte(r.Handlers), &b.Handlers) != nil {
		b.Handlers = nil // its next registration tells them
	}
	return b
}

type buildKey struct {
	tenant, executor int64
	digest           string
}

// noteBuild writes what a registration tells that was not known. Those of a
// known build write nothing, so that an executor that flaps costs its
// instances' rows only. CodeQuotaExceeded: there is no room for another build
// beside coming, those that come in with the same transaction.
func noteBuild(t *db.Tx, k buildKey, p store.RegisterInstanceParams, now time.Time, coming []string) error {
	if k.digest == "" {
		return mergeHandlers(t, k.tenant, k.executor, p.Handlers, now, true)
	}
	var known []buildRow
	err := t.Gorm.Select("digest", "last_seen_at", "no_jobs").Where("tenant_id = ? AND executor_id = ? AND digest = ?", k.tenant, k.executor, k.digest).Find(&known).Error
	if err != nil {
		return err
	}
	if len(known) == 0 {
		if err := makeRoom(t, k, now, coming); err != nil {
			return err
		}
	}
	// The first that may declare makes it news again, for whoever reconciles.
	allowed := len(known) > 0 && known[0].NoJobs && !p.Build.NoJobs
	if len(known) > 0 && !allowed && known[0].LastSeenAt > db.Millis(now.Add(-store.BuildLastSeen)) {
		return nil
	}
	handlers, err := json.Marshal(p.Build.Handlers)
	if err != nil {
		return fmt.Errorf("encode handlers: %w", err)
	}
	row := buildRow{
		TenantID: k.tenant, ExecutorID: k.executor, Digest: k.digest, AppVersion: clip(p.Build.Version, nameSize),
		Generation: p.Build.Generation, Handlers: string(handlers), Catalogue: p.Build.Catalogue, NoJobs: p.Build.NoJobs, FirstSeenAt: db.Millis(now), LastSeenAt: db.Millis(now),
	}
	changed := []string{"last_seen_at"}
	if allowed {
		changed = append(changed, "no_jobs", "applied")
	}
	err = t.Gorm.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "tenant_id"}, {Name: "executor_id"}, {Name: "digest"}},
		DoUpdates: clause.AssignmentColumns(changed),
	}).Create(&row).Error
	if err != nil {
		return err
	}
	return mergeHandlers(t, k.tenant, k.executor, p.Handlers, now, false)
}

// mergeHandlers goes in name order, so that instances that start together do
// not wait for each other in a circle. Definitions that are there stay unless
// they are to be set.
func mergeHandlers(t *db.Tx, tenant, executor int64, handlers []domain.Handler, now time.Time, define bool) error {
	if len(handlers) == 0 {
		return nil
	}
	rows := make([]handlerRow, len(handlers))
	for n, h := range handlers {
		rows[n] = handlerRow{
			TenantID: tenant, ExecutorID: executor, Name: h.Name, Description: clip(h.Description, messageSize),
			InputSchema: h.InputSchema, OutputSchema: h.OutputSchema, Idempotent: h.Idempotent,
			FirstSeenAt: db.Millis(now), LastSeenAt: db.Millis(now),
		}
		if h.Calls == nil {
			continue
		}
		text, err := encodeSpec(h.Calls)
		if err != nil {
			return fmt.Errorf("encode calls of handler %q: %w", h.Name, err)
		}
		rows[n].Calls = &text
	}
	slices.SortFunc(rows, func(a, b handlerRow) int { return strings.Compare(a.Name, b.Name) })
	rows = slices.CompactFunc(rows, func(a, b handlerRow) bool { return a.Name == b.Name })
	update := []string{"last_seen_at"}
	if define {
		update = append(update, "description", "input_schema", "output_schema", "idempotent", "calls")
	}
	return t.Gorm.Clauses(clause.OnConflict{
		Columns:   []clause.Column{{Name: "tenant_id"}, {Name: "executor_id"}, {Name: "name"}},
		DoUpdates: clause.AssignmentColumns(update),
	}).Create(&rows).Error
}

func (s *Catalogue) DefineHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, handlers []domain.Handler) error {
	return s.RunRepeatable(ctx, "define handlers", func(t *db.Tx) error {
		now, err := t.Clock()
		if err != nil {
			return err
		}
		return mergeHandlers(t, int64(tenant), int64(executor), handlers, now, true)
	})
}

func (s *Catalogue) ListBuilds(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []domain.Build, err error) {
	err = s.Look(ctx, "list builds", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		var rows []buildRow
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
			out[i] = rows[i].build()
			out[i].Instances, out[i].Present = present[rows[i].Digest].living, present[rows[i].Digest].counts
		}
		return nil
	})
	return out, err
}

func (s *Catalogue) ReadCatalogues(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, digests []string) (map[string][]byte, error) {
	out := make(map[string][]byte, len(digests))
	err := s.Look(ctx, "read catalogues", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []buildRow
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
		of := t.Gorm.Model(&buildRow{}).Where("tenant_id = ? AND executor_id = ?", int64(p.Tenant), int64(p.Executor)).Session(&gorm.Session{})
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
			TenantID: int64(p.Tenant), ExecutorID: int64(p.Executor), Name: clip(r.Name, 190), Code: string(r.Code),
			Message: clip(r.Message, 1024), AppVersion: clip(r.Version, 190), RefusedAt: db.Millis(now),
		})
	}
	return t.Gorm.Create(&rows).Error
}

func (s *Catalogue) ListRefusedDeclarations(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (out []domain.RefusedDeclaration, err error) {
	err = s.Look(ctx, "list refused declarations", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		var rows []refusedDeclarationRow
		err := g.Where("tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor)).Order("name").Find(&rows).Error
		out = make([]domain.RefusedDeclaration, len(rows))
		for i, r := range rows {
			out[i] = domain.RefusedDeclaration{Name: r.Name, Code: domain.Code(r.Code), Message: r.Message, Version: r.AppVersion, At: db.Instant(r.RefusedAt)}
		}
		return err
	})
	return out, err
}

// ListUnsettled looks for builds in force that have no instance, and for
// instances of builds that are not.
func (s *Catalogue) ListUnsettled(ctx context.Context, limit int) (out []store.ExecutorKey, err error) {
	const instance = " EXISTS (SELECT 1 FROM instances AS i WHERE i.tenant_id = b.tenant_id AND i.executor_id = b.executor_id AND "
	err = s.Look(ctx, "list unsettled builds", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error {
			var k store.ExecutorKey
			err := rows.Scan(&k.Tenant, &k.Executor)
			out = append(out, k)
			return err
		}, "SELECT DISTINCT b.tenant_id, b.executor_id FROM executor_builds AS b WHERE"+
			" (b.applied = 1 AND NOT"+instance+"(i.gone_at = 0 OR i.gone_at > "+s.Dialect.ClockNow()+" - ?) AND i.build = b.digest) AND"+instance+"i.gone_at = 0))"+
			" OR (b.applied = 0 AND"+instance+"i.gone_at = 0 AND i.build = b.digest)) LIMIT ?",
			domain.BuildGrace.Milliseconds(), pageSize(limit))
	})
	return out, err
}
