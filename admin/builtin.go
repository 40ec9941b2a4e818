package admin

import (
	"context"
	"net"
	"path/filepath"

	"github.com/carillon-sched/carillon/admin/internal/callback"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/publish"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// openCallbacks makes this node an instance of the built-in executors.
func (a *Admin) openCallbacks() {
	a.callbacks = callback.New(callback.Options{
		List: a.callbackTenants,
		Dial: func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID) (net.Conn, error) {
			return a.gateway.DialLocal(ctx, tenant, executor)
		},
		Dir: filepath.Join(a.config.DataDir, "callbacks"), Node: a.self.Name, Version: a.config.Version,
		Publish: func(ctx context.Context, m domain.Message) (permanent, silent bool, err error) {
			err = a.publisher.Publish(ctx, m)
			return publish.IsPermanent(err), publish.IsSilent(err), err
		},
		Networks: a.config.Webhook.AllowPrefixes, Logger: a.log,
	})
}

func (a *Admin) callbackTenants(ctx context.Context) ([]callback.Tenant, error) {
	list, err := a.store.ListBuiltIn(ctx)
	return openPolicies(list, a.box), err
}

// openPolicies opens the secrets of policies; one that does not open concerns its
// tenant only.
func openPolicies(list []store.BuiltIn, box *secret.Box) []callback.Tenant {
	out := make([]callback.Tenant, len(list))
	for i, b := range list {
		out[i] = callback.Tenant{ID: b.Tenant, Executor: b.Executor, Policy: b.Callbacks}
		if b.Callbacks != nil && b.Callbacks.Secret != nil {
			b.Callbacks.Secret, out[i].Err = box.Open(b.Tenant, secret.PurposeCallbacks, int64(b.Tenant), b.Callbacks.Secret)
		}
	}
	return out
}
