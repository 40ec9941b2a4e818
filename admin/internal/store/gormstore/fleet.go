package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type executorRow struct {
	ID          int64  `gorm:"column:id;primaryKey;autoIncrement:false"`
	TenantID    int64  `gorm:"column:tenant_id"`
	Name        string `gorm:"column:name"`
	Description string `gorm:"column:description"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false"`
}

func (executorRow) TableName() string { return "executors" }

func (r executorRow) executor() domain.Executor {
	return domain.Executor{
		ID: domain.ExecutorID(r.ID), TenantID: domain.TenantID(r.TenantID), Name: r.Name,
		Description: r.Description, CreatedAt: db.Instant(r.CreatedAt),
	}
}

func (s *Executors) CreateExecutor(ctx context.Context, e domain.Executor) error {
	return s.Run(ctx, "create executor", func(t *db.Tx) error {
		row := executorRow{
			ID: int64(e.ID), TenantID: int64(e.TenantID), Name: e.Name, Description: clip(e.Description, messageSize), CreatedAt: db.Millis(e.CreatedAt),
		}
		if row.CreatedAt == 0 {
			now, err := t.Clock()
			if err != nil {
				return err
			}
			row.CreatedAt = db.Millis(now)
		}
		if err := grow(t, e.TenantID, growth{domain.QuotaExecutors, 1}); err != nil {
			return err
		}
		return taken(t.Gorm.Create(&row).Error, "executor", e.Name)
	})
}

// executorName checks that an executor exists in the tenant.
func executorName(t *db.Tx, tenant domain.TenantID, id domain.ExecutorID) (string, error) {
	var name string
	err := t.SQL.QueryRowContext(t.Ctx, "SELECT name FROM executors WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant)).Scan(&name)
	if errors.Is(err, sql.ErrNoRows) {
		err = db.NotFound("executor", id)
	}
	return name, err
}

func (s *Executors) FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	row, err := db.FindOne[executorRow](ctx, s.DB, "find executor", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	return row.executor(), err
}

func (s *Executors) FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	row, err := db.FindOne[executorRow](ctx, s.DB, "find executor", "tenant_id = ? AND name = ?", int64(tenant), name)
	return row.executor(), err
}

func (s *Executors) ListExecutors(ctx context.Context, p store.ListExecutorsParams) (out []store.ExecutorSummary, err error) {
	err = s.Look(ctx, "list executors", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = g.Where("tenant_id = ?", int64(p.Tenant))
		if p.Query != "" {
			g = g.Where("LOWER(name) LIKE ? ESCAPE '!'", contains(strings.ToLower(p.Query)))
		}
		if p.After != "" {
			g = g.Where("name > ?", p.After)
		}
		var rows []executorRow
		if err := g.Order("name").Limit(pageSize(p.Limit)).Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		out = make([]store.ExecutorSummary, len(rows))
		byID := map[int64]*store.ExecutorSummary{}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			out[i] = store.ExecutorSummary{Executor: r.executor()}
			byID[r.ID], ids[i] = &out[i], r.ID
		}
		return s.countFleet(ctx, q, p.Tenant, ids, byID)
	})
	return out, err
}

func (s *Executors) countFleet(ctx context.Context, q db.Querier, tenant domain.TenantID, ids []int64, into map[int64]*store.ExecutorSummary) error {
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var total, online int
		err := rows.Scan(&id, &total, &online)
		into[id].Total, into[id].Online = total, online
		return err
	}, "SELECT executor_id, COUNT(*), SUM(CASE WHEN "+s.heard()+" THEN 1 ELSE 0 END) FROM instances"+
		" WHERE tenant_id = ? AND executor_id IN ("+db.IDList(ids)+") AND gone_at = 0 GROUP BY executor_id", int64(tenant))
	if err != nil {
		return err
	}
	return db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		var n int
		err := rows.Scan(&id, &n)
		into[id].Handlers = n
		return err
	}, "SELECT executor_id, COUNT(*) FROM handlers WHERE tenant_id = ? AND executor_id IN ("+db.IDList(ids)+") GROUP BY executor_id", int64(tenant))
}

type handlerRow struct {
	TenantID     int64   `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	ExecutorID   int64   `gorm:"column:executor_id;primaryKey;autoIncrement:false"`
	Name         string  `gorm:"column:name;primaryKey"`
	Description  string  `gorm:"column:description"`
	InputSchema  []byte  `gorm:"column:input_schema"`
	OutputSchema []byte  `gorm:"column:output_schema"`
	Idempotent   bool    `gorm:"column:idempotent"`
	Calls        *string `gorm:"column:calls"`
	FirstSeenAt  int64   `gorm:"column:first_seen_at"`
	LastSeenAt   int64   `gorm:"column:last_seen_at"`
}

func (handlerRow) TableName() string { return "handlers" }

func (r handlerRow) handler() (domain.Handler, error) {
	h := domain.Handler{
		TenantID: domain.TenantID(r.TenantID), Executor: domain.ExecutorID(r.ExecutorID), Name: r.Name, Description: r.Description,
		InputSchema: r.InputSchema, OutputSchema: r.OutputSchema, Idempotent: r.Idempotent,
		FirstSeenAt: db.Instant(r.FirstSeenAt), LastSeenAt: db.Instant(r.LastSeenAt),
	}
	if r.Calls == nil {
		return h, nil
	}
	var err error
	if h.Calls, err = decodeSpec([]byte(*r.Calls)); err != nil {
		return h, fmt.Errorf("calls of handler %q: %w", r.Name, err)
	}
	return h, nil
}

func (s *Executors) ListHandlers(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Handler, error) {
	rows, err := db.FindAll[handlerRow](ctx, s.DB, "list handlers", "name", "tenant_id = ? AND executor_id = ?", int64(tenant), int64(executor))
	if err != nil {
		return nil, err
	}
	out := make([]domain.Handler, len(rows))
	for i, r := range rows {
		if out[i], err = r.handler(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Executors) FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error) {
	row, err := db.FindOne[handlerRow](ctx, s.DB, "find handler", "tenant_id = ? AND executor_id = ? AND name = ?", int64(tenant), int64(executor), name)
	if domain.Is(err, domain.CodeNotFound) {
		err = domain.Errorf(domain.CodeNotFound, "the executor has no handler %q", name)
	}
	if err != nil {
		return domain.Handler{}, err
	}
	return row.handler()
}

func (s *Executors) FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error) {
	row, err := db.FindOne[instanceRow](ctx, s.DB, "find instance", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return domain.Instance{}, err
	}
	return row.instance(), nil
}

// ListInstances lists the living first, each group newest first.
func (s *Executors) ListInstances(ctx context.Context, p store.ListInstancesParams) ([]domain.Instance, error) {
	var out []domain.Instance
	err := s.Look(ctx, "list instances", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		g = g.Where("tenant_id = ?", int64(p.Tenant))
		if p.Executor != 0 {
			g = g.Where("executor_id = ?", int64(p.Executor))
		}
		if !p.IncludeGone {
			g = g.Where("gone_at = 0")
		}
		var rows []instanceRow
		err := g.Order("CASE WHEN gone_at = 0 THEN 0 ELSE 1 END, gone_at DESC, id DESC").Limit(pageSize(p.Limit)).Find(&rows).Error
		if err != nil {
			return err
		}
		out = toInstances(rows)
		return nil
	})
	return out, err
}

func toInstances(rows []instanceRow) []domain.Instance {
	out := domain.Collect(rows, (*instanceRow).instance)
	return out
}

// heard is the condition for an instance that has not gone and is not Silent.
func (s *shared) heard() string {
	return fmt.Sprintf("lease_until > %[1]s AND (lease_until >= %[1]s + %[2]d OR last_seen_at >= %[1]s - %[3]d)",
		s.Dialect.ClockNow(), (domain.LeaseTTL - domain.SilentAfter).Milliseconds(), domain.SilentAfter.Milliseconds())
}

func (s *Executors) CountHeard(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (n int, err error) {
	err = s.Look(ctx, "count heard instances", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		return db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&n) },
			"SELECT COUNT(*) FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND "+s.heard(), int64(tenant), int64(executor))
	})
	return n, err
}

func (s *Instances) CountOnline(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (n int, err error) {
	err = s.Look(ctx, "count online instances", func(ctx context.Context, _ db.Querier, _ *gorm.DB) error {
		return s.Read.QueryRowContext(ctx, "SELECT COUNT(*) FROM instances WHERE tenant_id = ? AND executor_id = ? AND gone_at = 0 AND lease_until > "+
			s.Dialect.ClockNow(), int64(tenant), int64(executor)).Scan(&n)
	})
	return n, err
}
