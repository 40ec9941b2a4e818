package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

func init() {
	bounded["test-connection"], bounded["list-connections"] = "reaches", "large"
	smallLists["/connections"] = "a tenant has 64, of two certificates and a key each"
	addOns = append(addOns, addOn{
		lists: []string{"/connections"},
		routes: func(s *web.Server, d *Deps) {
			broker.Routes(s, broker.Deps{Table: tableOf(d), Secrets: d.Secrets, NewID: d.NewID, Changed: func(context.Context, domain.TenantID) {}, Log: d.Logger})
		},
		objects: func(w *world, admin string) objects {
			c := into[broker.Connection](w.call(admin, "POST", "/connections", map[string]any{"name": "events", "broker": "nats", "addresses": []string{"nats.example:4222"}}).is(201))
			return objects{"/connections/{id}": c.ID}
		},
		body: func(method, path string) any {
			switch {
			case method == http.MethodPut && strings.Contains(path, "/connections/"):
				return map[string]any{"name": "changed", "broker": "nats", "addresses": []string{"nats.example:4222"}}
			case strings.HasSuffix(path, "/connections/{id}/test"):
				return map[string]any{"target": map[string]any{"subject": "x"}}
			}
			return nil
		},
	})
}

// tableOf is the table of connections; nil without a store.
func tableOf(d *Deps) *broker.Table {
	s, is := d.Store.(*gormstore.Store)
	if !is {
		return nil
	}
	return &broker.Table{DB: s.DB, EnsureBuiltIn: s.EnsureBuiltIn}
}

func (w *world) connections() *broker.Table { return tableOf(&w.deps) }
