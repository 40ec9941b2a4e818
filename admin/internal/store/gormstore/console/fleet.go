package console

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

func (s *Executors) CreateExecutor(ctx context.Context, e domain.Executor) error {
	if e.Name == domain.BuiltInExecutor {
		return domain.Invalid("body.name", "is the name of the executor that the admin nodes are the instances of")
	}
	return s.Run(ctx, "create executor", func(t *db.Tx) error {
		t.AuditedChange(domain.AuditObject{ID: e.ID.String(), Name: e.Name}, nil, db.Facts{"name": e.Name, "description": e.Description, "callbacksTo": e.CallbacksTo})
		row := record.ExecutorRow{
			ID: int64(e.ID), TenantID: int64(e.TenantID), Name: e.Name, Description: record.Clip(e.Description, record.MessageSize),
			State: int64(domain.ExecutorEnabled), Version: 1, CreatedAt: db.Millis(e.CreatedAt), CallbacksTo: strings.Join(e.CallbacksTo, "\n"),
		}
		if row.CreatedAt == 0 {
			now, err := t.Clock()
			if err != nil {
				return err
			}
			row.CreatedAt = db.Millis(now)
		}
		if err := record.Grow(t, e.TenantID, record.Growth{Kind: domain.QuotaExecutors, By: 1}); err != nil {
			return err
		}
		if err := db.NameTaken(t.Gorm.Create(&row).Error, "executor", e.Name); err != nil {
			return err
		}
		return isNoAlias(t, e.TenantID, e.ID, e.Name)
	})
}

// EnsureBuiltIn makes the tenant's built-in executor in the transaction of something that needs
// it, unless the executor is there. now is in milliseconds.
func (s *Executors) EnsureBuiltIn(t *db.Tx, tenant domain.TenantID, now int64) error {
	return s.ensureBuiltIn(t, tenant, now)
}

// ensureBuiltIn makes the tenant's built-in executor, unless it is there.
func (s *shared) ensureBuiltIn(t *db.Tx, tenant domain.TenantID, now int64) error {
	var n int64
	if err := t.Gorm.Model(&record.ExecutorRow{}).Where("tenant_id = ? AND name = ? AND "+record.LivingExecutor, int64(tenant), domain.BuiltInExecutor).Count(&n).Error; err != nil || n > 0 {
		return err
	}
	id, err := s.NewID()
	if err != nil {
		return err
	}
	return db.NameTaken(t.Gorm.Create(&record.ExecutorRow{
		ID: id, TenantID: int64(tenant), Name: domain.BuiltInExecutor, Description: "Calls addresses and publishes messages. The admin nodes are its instances.", BuiltIn: true, State: int64(domain.ExecutorEnabled), Version: 1, CreatedAt: now,
	}).Error, "executor", domain.BuiltInExecutor)
}

func (s *Executors) FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	row, err := db.FindOne[record.ExecutorRow](ctx, s.DB, "find executor", "id = ? AND tenant_id = ? AND "+record.LivingExecutor, int64(id), int64(tenant))
	return row.Executor(), err
}

func (s *Executors) ListExecutors(ctx context.Context, p store.ListExecutorsParams) (out []store.ExecutorSummary, err error) {
	err = s.Look(ctx, "list executors", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		g = within(g.Where("tenant_id = ? AND "+record.LivingExecutor, int64(p.Tenant)), "id", p.Within)
		if p.Query != "" {
			where, args := db.TextIn(p.Query, "name")
			g = g.Where(where, args...)
		}
		if p.After != "" {
			g = g.Where("name > ?", p.After)
		}
		var rows []record.ExecutorRow
		if err := g.Order("name").Limit(record.PageSize(p.Limit)).Find(&rows).Error; err != nil || len(rows) == 0 {
			return err
		}
		out = make([]store.ExecutorSummary, len(rows))
		byID := map[int64]*store.ExecutorSummary{}
		ids := make([]int64, len(rows))
		for i, r := range rows {
			out[i] = store.ExecutorSummary{Executor: r.Executor()}
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

// ListHandlers asks for the sizes first, and reads what belongs to the page.
func (s *Executors) ListHandlers(ctx context.Context, p store.ListHandlersParams) (out store.Page[domain.Handler], err error) {
	err = s.Look(ctx, "list handlers", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		type sized struct {
			name  string
			bytes int64
		}
		size := "0"
		if p.Bytes > 0 {
			size = record.HandlerBytes
		}
		page, err := db.Select(ctx, q, func(r *sized) []any { return []any{&r.name, &r.bytes} },
			"SELECT name, "+size+" FROM handlers WHERE tenant_id = ? AND executor_id = ? AND name > ? ORDER BY name LIMIT ?",
			int64(p.Tenant), int64(p.Executor), p.After, p.Limit+1)
		if err != nil || len(page) == 0 {
			return err
		}
		n, total := 0, int64(0)
		for ; n < min(len(page), p.Limit) && (p.Bytes == 0 || total < p.Bytes); n++ {
			total += page[n].bytes
		}
		out.More = n < len(page)
		without := []string{"calls"}
		if p.NoSchemas {
			without = append(without, "input_schema", "output_schema")
		}
		var rows []record.HandlerRow
		err = g.Omit(without...).Where("tenant_id = ? AND executor_id = ? AND name > ? AND name <= ?", int64(p.Tenant), int64(p.Executor), p.After, page[n-1].name).
			Order("name").Limit(n).Find(&rows).Error
		if err != nil {
			return err
		}
		out.Items, err = domain.TryCollect(rows, (*record.HandlerRow).Handler)
		return err
	})
	return out, err
}

func (s *Executors) ListHandlerNames(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, near string, limit int) (out []string, err error) {
	const names = "SELECT name FROM handlers WHERE tenant_id = ? AND executor_id = ? AND name "
	err = s.Look(ctx, "list names of handlers", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		if out, err = db.SelectColumn[string](ctx, q, names+"< ? ORDER BY name DESC LIMIT ?", int64(tenant), int64(executor), near, limit/2); err != nil {
			return err
		}
		after, err := db.SelectColumn[string](ctx, q, names+">= ? ORDER BY name LIMIT ?", int64(tenant), int64(executor), near, limit-limit/2)
		out = append(out, after...)
		return err
	})
	return out, err
}

func (s *Executors) FindHandler(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, name string) (domain.Handler, error) {
	row, err := db.FindOne[record.HandlerRow](ctx, s.DB, "find handler", "tenant_id = ? AND executor_id = ? AND name = ?", int64(tenant), int64(executor), name)
	if domain.Is(err, domain.CodeNotFound) {
		err = domain.Errorf(domain.CodeNotFound, "the executor has no handler %q", name)
	}
	if err != nil {
		return domain.Handler{}, err
	}
	return row.Handler()
}

func (s *Executors) FindInstance(ctx context.Context, tenant domain.TenantID, id domain.InstanceID) (domain.Instance, error) {
	row, err := db.FindOne[record.InstanceRow](ctx, s.DB, "find instance", "id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return domain.Instance{}, err
	}
	return row.Instance(), nil
}

// ListInstances lists the living first, each group newest first.
func (s *Executors) ListInstances(ctx context.Context, p store.ListInstancesParams) ([]domain.Instance, error) {
	var out []domain.Instance
	err := s.Look(ctx, "list instances", func(_ context.Context, _ db.Querier, g *gorm.DB) error {
		g = within(g.Where("tenant_id = ?", int64(p.Tenant)), "executor_id", p.Within)
		if p.Executor != 0 {
			g = g.Where("executor_id = ?", int64(p.Executor))
		}
		switch {
		case p.OnlyGone:
			g = g.Where("gone_at > ?", db.Millis(p.GoneSince))
		case !p.IncludeGone:
			g = g.Where("gone_at = 0")
		case !p.GoneSince.IsZero():
			g = g.Where("(gone_at = 0 OR gone_at >= ?)", db.Millis(p.GoneSince))
		}
		if p.Brief {
			g = g.Omit("labels", "handlers")
		}
		var rows []record.InstanceRow
		err := g.Order("CASE WHEN gone_at = 0 THEN 0 ELSE 1 END, gone_at DESC, id DESC").Limit(record.PageSize(p.Limit)).Find(&rows).Error
		if err != nil {
			return err
		}
		out = engine.ToInstances(rows)
		return nil
	})
	return out, err
}

func (s *Executors) FillInstances(ctx context.Context, tenant domain.TenantID, list []domain.Instance) (n int, err error) {
	if len(list) == 0 {
		return 0, nil
	}
	err = s.Look(ctx, "fill instances", func(ctx context.Context, q db.Querier, g *gorm.DB) error {
		ids := domain.Collect(list, func(i *domain.Instance) int64 { return int64(i.ID) })
		sizes, err := db.Pairs[int64, int64](ctx, q, "SELECT id, COALESCE(OCTET_LENGTH(labels), 0) + COALESCE(OCTET_LENGTH(handlers), 0) FROM instances WHERE id IN ("+db.IDList(ids)+") AND tenant_id = ?", int64(tenant))
		if err != nil {
			return err
		}
		n = domain.FirstWithin(ids, domain.MaxPageBytes, func(id *int64) int64 { return sizes[*id] })
		rows, err := db.ByID(g, "id IN ? AND tenant_id = "+strconv.FormatInt(int64(tenant), 10), ids[:n], func(r record.InstanceRow) int64 { return r.ID })
		for i := range n {
			if r, is := rows[ids[i]]; is { // else it was removed meanwhile
				full := r.Instance()
				list[i].Labels, list[i].Handlers = full.Labels, full.Handlers
			}
		}
		return err
	})
	return n, err
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
