package callback

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tenants reads tenants and opens the secrets of their policies.
type Tenants struct {
	Store interface {
		ListBuiltIn(ctx context.Context) ([]store.BuiltIn, error)
	}
	Box *secret.Box
}

// List lists them. A secret that does not open concerns its tenant only.
func (t Tenants) List(ctx context.Context) ([]Tenant, error) {
	list, err := t.Store.ListBuiltIn(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Tenant, len(list))
	for i, b := range list {
		out[i] = Tenant{ID: b.Tenant, Executor: b.Executor, Policy: b.Callbacks}
		if b.Callbacks != nil && b.Callbacks.Secret != nil {
			b.Callbacks.Secret, out[i].Err = t.Box.Open(b.Tenant, secret.PurposeCallbacks, int64(b.Tenant), b.Callbacks.Secret)
		}
	}
	return out, nil
}
