package engine

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

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
		quotas, err := record.ReadQuotas(t.Ctx, t.Conn, tenant)
		if err != nil {
			return fmt.Errorf("read quotas: %w", err)
		}
		c = instanceCount{quotas[domain.QuotaInstances], time.Now()}
		if c.Max > 0 {
			if c.Used, err = record.CountQuota(t.Ctx, t.Conn, t.Dialect, tenant, domain.QuotaInstances); err != nil {
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
