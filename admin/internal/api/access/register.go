package access

import (
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	store.Accounts
	store.Invitations
	store.Trust
	store.Executors
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store Store
	Auth  *auth.Service
	NewID func() int64
	Now   func() time.Time
	// Denied is called after a denial.
	Denied func()
	Log    *slog.Logger
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerAPIKeys()
	a.registerJoinTokens()
	a.registerDenials()
	a.registerMembers()
	a.registerLocal()
	a.registerUsers()
	a.registerInvitations()
}
