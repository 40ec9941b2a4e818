package calendar

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
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
	*web.Server // fixed after construction
	deps        Deps
}

// Register adds the operations.
func Register(s *web.Server, deps Deps) {
	a := &api{s, deps}
	a.registerCalendars()
}
