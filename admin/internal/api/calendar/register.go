package calendar

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/calendar"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Deps is what the operations need; package api says of each what it is.
type Deps struct {
	Store          store.Calendars
	NewID          func() int64
	Now            func() time.Time
	FollowCalendar func(ctx context.Context, id domain.CalendarID)
	Log            *slog.Logger
}

// api are the operations of this package.
type api struct {
	deps      Deps
	docs      *resource.Documents
	documents *document.API
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{deps: deps, docs: resource.New(resource.Options{
		Kind: calendar.Kind, Store: table(deps.Store), NewID: deps.NewID, Log: deps.Log,
		Changed: func(ctx context.Context, row *resource.Row) {
			if row.Version > 1 {
				deps.FollowCalendar(ctx, domain.CalendarID(row.ID))
			}
		},
	})}
	a.register(s)
}

// table is nil for operations that are only described.
func table(s store.Calendars) resource.Store {
	if s == nil {
		return nil
	}
	return s.CalendarTable()
}
