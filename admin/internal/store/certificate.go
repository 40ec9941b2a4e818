package store

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Trust keeps the authorities that sign executors' certificates, and who is
// denied.
type Trust interface {
	// CreateAuthority enters an authority. CodeConflict: another node has
	// entered one of this epoch.
	CreateAuthority(ctx context.Context, a domain.Authority) error
	// ListAuthorities returns those that have not expired, the newest epoch first.
	ListAuthorities(ctx context.Context) ([]domain.Authority, error)

	// CreateDenial keeps somebody out from now on; the instance of a boot is off
	// the list, see MarkDenied. One that is there already stays as it is.
	// CodeNotFound: the tenant has no such executor.
	CreateDenial(ctx context.Context, d domain.Denial) (domain.Denial, error)
	// ListDenials lists an executor's denials, the newest first, at most 1,000.
	ListDenials(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) ([]domain.Denial, error)
	// MarkDenied takes instances off the list whose sessions a denial ended. Their
	// leases stay as they are, since what they run may go on until then; but
	// nobody renews them any more.
	MarkDenied(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, instances []domain.InstanceID) error
	DeleteDenial(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, id int64) error
	// FindDenials returns, for each question in the order of the list, a denial
	// that names one of its subjects; nil: there is none.
	FindDenials(ctx context.Context, list []DenialQuery) ([]*domain.Denial, error)
	// ListDenialsSince returns those of all tenants that were created at or
	// after an instant of the database's clock, and the clock.
	ListDenialsSince(ctx context.Context, since time.Time) (now time.Time, denials []domain.Denial, err error)
}

// DenialQuery asks whether somebody is denied, by a few names.
type DenialQuery struct {
	Tenant   domain.TenantID
	Executor domain.ExecutorID
	Subjects []string // boot ids and serial numbers
}
