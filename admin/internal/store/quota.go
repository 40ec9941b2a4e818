package store

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Quotas keeps how much tenants may have. What adds to it (CreateJob,
// CreateJobs, UpdateJob, SetJobState, CreateExecutor, CreateUser, SaveMembership,
// CreateAPIKey, RegisterInstances) counts and is refused with
// CodeQuotaExceeded in its own transaction, under a lock of the tenant.
type Quotas interface {
	// ListQuotas returns all kinds in the order of domain.QuotaKinds, with what
	// the tenant has. CodeNotFound: there is no such tenant.
	ListQuotas(ctx context.Context, tenant domain.TenantID) ([]domain.Quota, error)
	// MaxOf returns how much a tenant may have of a kind; 0 = no limit.
	MaxOf(ctx context.Context, tenant domain.TenantID, kind domain.QuotaKind) (int64, error)
	// SetQuotas changes those that are named; a negative number brings the
	// default back, 0 takes the limit away. Nothing that is there is touched.
	SetQuotas(ctx context.Context, p SetQuotasParams) error
}

type SetQuotasParams struct {
	Tenant domain.TenantID
	Max    map[domain.QuotaKind]int64
	By     string
}
