package script

import (
	"context"
	"crypto/ed25519"
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/script"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store      store.Scripts
	Secrets    web.Sealer
	SignScript store.SignFunc
	ScriptKey  ed25519.PublicKey
	NewID      func() int64
	// Changed waits until this node goes by a tenant's changed policy: builtin.Within.
	Changed func(ctx context.Context, tenant domain.TenantID)
	Log     *slog.Logger
}

// api are the operations of this package. It is fixed after construction.
type api struct {
	*web.Server
	deps Deps
	docs *resource.Documents
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps, resource.New(resource.Options{Kind: script.Kind(deps.Store), Store: table(&deps), NewID: deps.NewID, Log: deps.Log})}
	a.registerScripts()
}

// table is nil for operations that are only described.
func table(deps *Deps) resource.Store {
	if deps.Store == nil {
		return nil
	}
	return deps.Store.ScriptTable(deps.SignScript)
}
