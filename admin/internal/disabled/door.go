package disabled

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Door refuses processes that an administrator has denied, and new processes of disabled
// executors and tenants. A process with a running attempt may return and bring its result.
type Door struct {
	Denials interface {
		Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error)
	}
	List  *List
	Store interface {
		ListBusyBoots(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, boots []string) (map[string]bool, error)
	}
	NoFire bool // it keeps out all
}

// Denied says of each process why it is kept out; nil: it may come in.
func (d Door) Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error) {
	if d.NoFire { // a process would hand over what it owes to the cluster that was copied
		out := make([]error, len(list))
		for i := range out {
			out[i] = domain.Errorf(domain.CodeExecutorDisabled, "this node starts nothing (--no-fire): it serves a copied database")
		}
		return out, nil
	}
	out, err := d.Denials.Denied(ctx, list)
	if err != nil {
		return nil, err
	}
	boots := map[domain.ExecutorIdentity][]string{}
	for i, who := range list {
		if gone := d.List.NotHere(who.Tenant); out[i] == nil && domain.Is(gone, domain.CodeTenantElsewhere) {
			out[i] = gone
		}
		if out[i] == nil && d.List.Has(who.Tenant, who.Executor) {
			of := domain.ExecutorIdentity{Tenant: who.Tenant, Executor: who.Executor}
			boots[of] = append(boots[of], who.BootID)
		}
	}
	for of, those := range boots {
		busy, err := d.Store.ListBusyBoots(ctx, of.Tenant, of.Executor, those)
		if err != nil {
			return nil, err
		}
		for i, who := range list {
			if out[i] == nil && who.Tenant == of.Tenant && who.Executor == of.Executor && !busy[who.BootID] {
				if out[i] = d.List.NotHere(of.Tenant); out[i] == nil {
					out[i] = domain.Errorf(domain.CodeExecutorDisabled, "an administrator has disabled this executor, or its tenant")
				}
			}
		}
	}
	return out, nil
}
