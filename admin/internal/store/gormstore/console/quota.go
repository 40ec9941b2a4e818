package console

import (
	"context"
	"maps"
	"time"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// allowJobs lets new jobs in, all of one tenant. Those that calls and callbacks
// belong to come with their handlers and count as none.
func allowJobs(t *db.Tx, rows []record.JobRow, allow allowance) error {
	var g growth
	for i := range rows {
		if domain.JobKind(rows[i].Kind) != domain.JobPlain {
			continue
		}
		g.jobs++
		if domain.JobState(rows[i].State) == domain.JobEnabled {
			g.fires += rows[i].FiresPerMinute
		}
	}
	return allow(t, domain.TenantID(rows[0].TenantID), g)
}

// growth is what a step adds to a tenant.
type growth struct{ jobs, fires, bytes int64 }

// allowance refuses a growth, or notes it for a check of several steps together.
type allowance func(t *db.Tx, tenant domain.TenantID, g growth) error

// allow checks a growth at once.
func allow(t *db.Tx, tenant domain.TenantID, g growth) error {
	if err := record.Grow(t, tenant, record.Growth{Kind: domain.QuotaJobs, By: g.jobs}, record.Growth{Kind: domain.QuotaFires, By: g.fires}); err != nil || g.bytes == 0 {
		return err
	}
	return record.AllowBytes(t, tenant, g.bytes)
}

// note adds up what several steps add.
func (g *growth) note(_ *db.Tx, _ domain.TenantID, more growth) error {
	g.jobs, g.fires, g.bytes = g.jobs+more.jobs, g.fires+more.fires, g.bytes+more.bytes
	return nil
}

// Rate is the most that a schedule fires in a minute.
func (s *shared) Rate(now time.Time, spec *domain.JobSpec) int64 {
	return int64(s.firesPerMinute(now, spec))
}

// MaxOf reads the quotas anew.
func (s *Quotas) MaxOf(ctx context.Context, tenant domain.TenantID, kind domain.QuotaKind) (limit int64, err error) {
	err = s.Look(ctx, "read quotas", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		quotas, err := record.ReadQuotas(ctx, q, tenant)
		if err != nil {
			return err
		}
		one, err := record.QuotaInForce(ctx, q, tenant, quotas[kind])
		limit = one.Max
		return err
	})
	return limit, err
}

// ListQuotas returns a tenant's quotas with what is used of each.
func (s *Quotas) ListQuotas(ctx context.Context, tenant domain.TenantID) (out []domain.Quota, err error) {
	if _, err := db.FindOne[record.TenantRow](ctx, s.DB, "find tenant", "id = ?", int64(tenant)); err != nil {
		return nil, err
	}
	err = s.Look(ctx, "list quotas", func(ctx context.Context, q db.Querier, _ *gorm.DB) error {
		out = nil
		quotas, err := record.ReadQuotas(ctx, q, tenant)
		if err != nil {
			return err
		}
		for _, k := range domain.QuotaKinds {
			one, err := record.QuotaInForce(ctx, q, tenant, quotas[k])
			if err != nil {
				return err
			}
			if one.Used, err = record.CountQuota(ctx, q, s.Dialect, tenant, k); err != nil {
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
		found, err := record.TenantExists(t, p.Tenant, t.Dialect.ForUpdate())
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
		var rows []record.QuotaRow
		if err := t.Gorm.Where("tenant_id = ?", int64(p.Tenant)).Find(&rows).Error; err != nil {
			return err
		}
		before, after := db.Facts{}, db.Facts{}
		for _, r := range rows {
			before[r.Kind] = r.Capacity
		}
		maps.Copy(after, before)
		defer func() { t.AuditedChange(domain.AuditObject{}, before, after) }()
		for _, k := range domain.QuotaKinds {
			limit, named := p.Max[k]
			if !named {
				continue
			}
			delete(after, string(k))
			if _, err := t.Exec(t.Ctx, "DELETE FROM quotas WHERE tenant_id = ? AND kind = ?", int64(p.Tenant), string(k)); err != nil {
				return err
			}
			if limit < 0 {
				continue
			}
			after[string(k)] = min(limit, k.Most())
			row := record.QuotaRow{TenantID: int64(p.Tenant), Kind: string(k), Capacity: min(limit, k.Most()), ChangedAt: db.Millis(now), ChangedBy: p.By}
			if err := t.Gorm.Create(&row).Error; err != nil {
				return err
			}
		}
		return nil
	})
}
