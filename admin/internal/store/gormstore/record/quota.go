package record

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// QuotaRow is a tenant's row of quotas.
type QuotaRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Kind      string `gorm:"column:kind;primaryKey"`
	Capacity  int64  `gorm:"column:capacity"`
	ChangedAt int64  `gorm:"column:changed_at;autoUpdateTime:false"`
	ChangedBy string `gorm:"column:changed_by"`
}

func (QuotaRow) TableName() string { return "quotas" }

// Growth is what a transaction is about to add.
type Growth struct {
	Kind domain.QuotaKind
	By   int64
}

// Grow refuses what would be over a quota. It locks the tenant, so that what is
// counted stays true until the commit: whoever adds to a tenant waits for
// whoever else does. It comes before locks of anything but triggers.
func Grow(t *db.Tx, tenant domain.TenantID, list ...Growth) error {
	var quotas map[domain.QuotaKind]domain.Quota
	for _, g := range list {
		if g.By <= 0 {
			continue
		}
		if quotas == nil {
			_, err := TenantExists(t, tenant, t.Dialect.ForUpdate())
			if err == nil {
				quotas, err = ReadQuotas(t.Ctx, t.Conn, tenant)
			}
			if err != nil {
				return fmt.Errorf("read quotas: %w", err)
			}
		}
		q, err := QuotaInForce(t.Ctx, t.Conn, tenant, quotas[g.Kind])
		if err != nil {
			return fmt.Errorf("look for other tenants: %w", err)
		}
		if q.Max == 0 {
			continue
		}
		if q.Used, err = CountQuota(t.Ctx, t.Conn, t.Dialect, tenant, g.Kind); err != nil {
			return fmt.Errorf("count %s: %w", g.Kind, err)
		}
		if err := q.Check(g.By); err != nil {
			return err
		}
	}
	return nil
}

// TenantExists looks for a tenant; lock is what follows the SELECT.
func TenantExists(t *db.Tx, tenant domain.TenantID, lock string) (found bool, err error) {
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id int64
		found = true
		return rows.Scan(&id)
	}, "SELECT id FROM tenants WHERE id = ?"+lock, int64(tenant))
	return found, err
}

// QuotaInForce is a quota that was read. It has no limit if the tenant is alone and the
// quota is one of those that only protect other tenants. It is asked when a job is
// written, and never when one fires.
func QuotaInForce(ctx context.Context, q db.Querier, tenant domain.TenantID, quota domain.Quota) (domain.Quota, error) {
	alone := quota.Alone()
	if alone == quota {
		return quota, nil
	}
	others := false
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var id int64
		others = true
		return rows.Scan(&id)
	}, "SELECT t.id FROM tenants AS t WHERE t.state = ? AND t.id <> ? AND EXISTS (SELECT 1 FROM jobs AS j WHERE j.tenant_id = t.id AND j.state = ?) LIMIT 1",
		int64(domain.TenantEnabled), int64(tenant), int64(domain.JobEnabled))
	if err != nil || others {
		return quota, err
	}
	return alone, nil
}

// ReadQuotas returns a tenant's quotas without what is used.
func ReadQuotas(ctx context.Context, q db.Querier, tenant domain.TenantID) (map[domain.QuotaKind]domain.Quota, error) {
	out := map[domain.QuotaKind]domain.Quota{}
	for _, k := range domain.QuotaKinds {
		out[k] = domain.Quota{Kind: k, Max: domain.DefaultQuota(k), Default: true}
	}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var set domain.Quota
		err := rows.Scan(&set.Kind, &set.Max)
		if _, known := out[set.Kind]; known {
			out[set.Kind] = set
		}
		return err
	}, "SELECT kind, capacity FROM quotas WHERE tenant_id = ?", int64(tenant))
	return out, err
}

// CountQuota counts what a tenant has.
func CountQuota(ctx context.Context, q db.Querier, d db.Dialect, tenant domain.TenantID, kind domain.QuotaKind) (used int64, err error) {
	one := func(statement string, args ...any) (int64, error) {
		err := db.Query(ctx, q, func(rows *sql.Rows) error { return rows.Scan(&used) }, statement, args...)
		return used, err
	}
	switch kind {
	case domain.QuotaJobs:
		return one("SELECT COUNT(*) FROM jobs"+d.ByIndex("ix_jobs_kind")+" WHERE tenant_id = ? AND kind = ? AND state IN (?, ?)",
			int64(tenant), int64(domain.JobPlain), int64(domain.JobEnabled), int64(domain.JobPaused))
	case domain.QuotaFires:
		return one("SELECT COALESCE(SUM(fires_per_minute), 0) FROM jobs"+d.ByIndex("ix_jobs_quota")+" WHERE tenant_id = ? AND state = ? AND fires_per_minute > 0",
			int64(tenant), int64(domain.JobEnabled))
	case domain.QuotaExecutors:
		return one("SELECT COUNT(*) FROM executors WHERE tenant_id = ? AND built_in = 0 AND "+LivingExecutor, int64(tenant))
	case domain.QuotaInstances:
		return one("SELECT COUNT(*) FROM instances"+d.ByIndex("ix_instances_executor")+" WHERE tenant_id = ? AND gone_at = 0", int64(tenant))
	case domain.QuotaUsers:
		return one("SELECT COUNT(*) FROM memberships WHERE tenant_id = ?", int64(tenant))
	case domain.QuotaAPIKeys:
		return one("SELECT COUNT(*) FROM api_keys WHERE tenant_id = ? AND revoked_at = 0", int64(tenant))
	case domain.QuotaTimers:
		return one("SELECT COALESCE(SUM(pending), 0) FROM timer_counts WHERE tenant_id = ?", int64(tenant))
	case domain.QuotaStoredBytes:
		_, used, err = CountStored(ctx, q, tenant)
		return used, err
	case domain.QuotaAPICalls:
		return 0, nil // it is a rate
	}
	return 0, fmt.Errorf("nothing is known about the quota %q", kind)
}
