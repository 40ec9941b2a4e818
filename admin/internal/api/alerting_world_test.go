package api

import (
	"testing"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// worldStore is the database of a world with the tables of add-ons.
type worldStore struct {
	*gormstore.Store
	notify.Tables
}

// addOns gives the API of the world its add-ons.
func (w *world) addOns(channels route.Channels) {
	deps := route.Deps{
		Store: w.store, Secrets: w.box, Channels: channels, NewID: w.ids.Next, Now: func() time.Time { return w.deps.Now() }, Log: w.deps.Logger,
	}
	w.deps.AddOns = func(s *web.Server) {
		addOnRoutes(&w.deps)(s)
		route.Register(s, deps)
	}
	w.deps.Attention = []web.Attention{route.Attention(deps)}
}

// newAlertWorld is a world whose API has these channels.
func newAlertWorld(t *testing.T, channels route.Channels) *world {
	t.Helper()
	w := newWorld(t)
	w.addOns(channels)
	w.start()
	return w
}
