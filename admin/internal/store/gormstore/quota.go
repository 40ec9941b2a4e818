package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type quotaRow struct {
	TenantID  int64  `gorm:"column:tenant_id;primaryKey;autoIncrement:false"`
	Kind      string `gorm:"column:kind;primaryKey"`
	Capacity  int64  `gorm:"column:capacity"`
	ChangedAt int64  `gorm:"column:changed_at;autoUpdateTime:false"`
	ChangedBy string `gorm:"column:changed_by"`
}

func (quotaRow) TableName() string { return "quotas" }

// growth is what a transaction is about to add.
type growth struct {
	kind domain.QuotaKind
	by   int64
}

// grow refuses what would be over a quota. It locks the tenant, so that what is
// counted stays true until the commit: whoever adds to a tenant waits for
// whoever else does. It comes before locks of anything but triggers.
func grow(t *db.Tx, tenant domain.TenantID, list ...growth) error {
	var quotas map[domain.QuotaKind]domain.Quota
	for _, g := range list {
		if g.by <= 0 {
			continue
		}
		if quotas == nil {
			_, err := tenantExists(t, tenant, t.Dialect.ForUpdate())
			if err == nil {
				quotas, err = readQuotas(t.Ctx, t.Conn, tenant)
			}
			if err != nil {
				return fmt.Errorf("read quotas: %w", err)
			}
		}
		q := quotas[g.kind]
		if q.Max == 0 {
			continue
		}
		var err error
		if q.Used, err = countQuota(t.Ctx, t.Conn, t.Dialect, tenant, g.kind); err != nil {
			return fmt.Errorf("count %s: %w", g.kind, err)
		}
		if err := q.Check(g.by); err != nil {
			return err
		}
	}
	return nil
}

func tenantExists(t *db.Tx, tenant domain.TenantID, lock string) (found bool, err error) {
	err = db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var id int64
		found = true
		return rows.Scan(&id)
	}, "SELECT id FROM tenants WHERE id = ?"+lock, int64(tenant))
	return found, err
}

// allowJobs lets new jobs in, all of one tenant. Those that calls and callbacks
// belong to come with their handlers and count as none.
func allowJobs(t *db.Tx, rows []jobRow) error {
	fires, plain := int64(0), int64(0)
	for i := range rows {
		if domain.JobKind(rows[i].Kind) != domain.JobPlain {
			continue
		}
		plain++
		if domain.JobState(rows[i].State) == domain.JobEnabled {
			fires += rows[i].FiresPerMinute
		}
	}
	return grow(t, domain.TenantID(rows[0].TenantID), growth{domain.QuotaJobs, plain}, growth{domain.QuotaFires, fires})
}

// allowFires lets a job have another schedule.
func allowFires(t *db.Tx, job *jobRow, fires int64) error {
	if domain.JobState(job.State) != domain.JobEnabled {
		return nil
	}
	return grow(t, domain.TenantID(job.TenantID), growth{domain.QuotaFires, fires - job.FiresPerMinute})
}

// rate is the most that a schedule fires in a minute.
func (s *shared) rate(now time.Time, spec *domain.JobSpec) int64 {
	return int64(s.firesPerMinute(now, spec))
}

// readQuotas returns a tenant's quotas without what is used.
func readQuotas(ctx context.Context, q db.Querier, tenant domain.TenantID) (map[domain.QuotaKind]domain.Quota, error) {
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

// countQuota counts what a tenant has.
func countQuota(ctx context.Context, q db.Querier, d db.Dialect, tenant domain.TenantID, kind domain.QuotaKind) (used int64, err error) {
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
		return one("SELECT COUNT(*) FROM executors WHERE tenant_id = ?", int64(tenant))
	case domain.QuotaInstances:
		return one("SELECT COUNT(*) FROM instances"+d.ByIndex("ix_instances_executor")+" WHERE tenant_id = ? AND gone_at = 0", int64(tenant))
	case domain.QuotaUsers:
		return one("SELECT COUNT(*) FROM memberships WHERE tenant_id = ?", int64(tenant))
	case domain.QuotaAPIKeys:
		return one("SELECT COUNT(*) FROM api_keys WHERE tenant_id = ? AND revoked_at = 0", int64(tenant))
	case domain.QuotaAPICalls:
		return 0, nil // it is a rate
	}
	return 0, fmt.Errorf("nothing is known about the quota %q", kind)
}

// instanceCount is how many instances a tenant may have, and had.
type instanceCount struct {
	domain.Quota
	at time.Time
}

// countedTenants bounds the counts of instances that are kept.
const countedTenants = 10_000

// allowInstance lets one more of a tenant in. It goes by a count that may
// be InstanceCountAge old, to which this node adds what it lets in: a count with
// each registration would cost the database more than the registration.
func (s *Instances) allowInstance(t *db.Tx, tenant domain.TenantID) error {
	c, known := s.counts.Get(tenant)
	if !known || time.Since(c.at) > domain.InstanceCountAge {
		quotas, err := readQuotas(t.Ctx, t.Conn, tenant)
		if err != nil {
			return fmt.Errorf("read quotas: %w", err)
		}
		c = instanceCount{quotas[domain.QuotaInstances], time.Now()}
		if c.Max > 0 {
			if c.Used, err = countQuota(t.Ctx, t.Conn, t.Dialect, tenant, domain.QuotaInstances); err != nil {
				return fmt.Errorf("count instances: %w", err)
			}
		}
	}
	err := c.Check(1)
	if err == nil {
		c.Used++
	}
	s.counts.Add(tenant, c)
	return err
}

// ForgetCount makes the next registration count a tenant's instances anew: its
// quota has changed.
func (s *Instances) ForgetCount(tenant domain.TenantID) { s.counts.Remove(tenant) }

// MaxOf reads the quotas anew.
func (s *Quotas) MaxOf(ctx context.Context, tenant domain.TenantID, kind domain.QuotaKind) (limit int64, err error) {
	err = s.Look(ctx, "read quotas", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		quotas, err := readQuotas(ctx, q, tenant)
		limit = quotas[kind].Max
		return err
	})
	return limit, err
}

// ListQuotas returns a tenant's quotas with what is used of each.
func (s *Quotas) ListQuotas(ctx context.Context, tenant domain.TenantID) (out []domain.Quota, err error) {
	if _, err := db.FindOne[tenantRow](ctx, s.DB, "find tenant", "id = ?", int64(tenant)); err != nil {
		return nil, err
	}
	err = s.Look(ctx, "list quotas", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		quotas, err := readQuotas(ctx, q, tenant)
		if err != nil {
			return err
		}
		for _, k := range domain.QuotaKinds {
			one := quotas[k]
			if one.Used, err = countQuota(ctx, q, s.Dialect, tenant, k); err != nil {
				return err
			}
			out = append(out, one)
		}
		return nil
	})
	return out, err
}

// SetQuotas writes each of the kinds for itself: a repetition changes nothing.
func (s *Quotas) SetQuotas(ctx context.Context, p store.SetQuotasParams) error {
	defer s.engine.ForgetCount(p.Tenant)
	return s.RunRepeatable(ctx, "set quotas", func(t *db.Tx) error {
		found, err := tenantExists(t, p.Tenant, t.Dialect.ForUpdate())
		if err != nil {
			return err
		}
		if !found {
			return db.NotFound("tenant", p.Tenant)
		}
		now, err := t.Clock()
		if err != nil {
			return err
		}
		for _, k := range domain.QuotaKinds {
			limit, named := p.Max[k]
			if !named {
				continue
			}
			if _, err := t.Exec(t.Ctx, "DELETE FROM quotas WHERE tenant_id = ? AND kind = ?", int64(p.Tenant), string(k)); err != nil {
				return err
			}
			if limit < 0 {
				continue
			}
			row := quotaRow{TenantID: int64(p.Tenant), Kind: string(k), Capacity: min(limit, domain.MaxQuota), ChangedAt: db.Millis(now), ChangedBy: p.By}
			if err := t.Gorm.Create(&row).Error; err != nil {
				return err
			}
		}
		return nil
	})
}
