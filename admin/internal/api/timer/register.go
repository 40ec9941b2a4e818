package timer

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Store is what is asked of the database.
type Store interface {
	builtin.Store
	store.Executors
	store.Timers
	store.TimerLists
	store.TimerEdits
	store.TimerCancellations
	FindJob(ctx context.Context, tenant domain.TenantID, id domain.JobID) (store.JobView, error)
}

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store     Store
	Runner    interface{ SendCancel(e domain.Execution) }
	NewID     func() int64
	Now       func() time.Time
	CallJob   func(ctx context.Context, executor domain.Executor, handler domain.Handler, kind domain.JobKind) (store.JobView, error)
	Held      func() []domain.PartitionTerm
	TimersSet func(first time.Time)
	Handlers  nodehandler.List
	Log       *slog.Logger
}

// api are the operations of this package.
type api struct {
	*web.Server // fixed after construction
	deps        Deps
	timers      *timers
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{Server: s, deps: deps, timers: newTimers(deps)}
	a.registerTimers()
	a.registerTimerLists()
	a.registerTimerEdits()
	a.registerTimerCancellations()
}
