package builtin

import (
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	store.Scripts
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store   Store
	Secrets web.Sealer
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerCallbacks()
}
