package script

import (
	"context"
	"crypto/ed25519"
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
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

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerScripts()
}
