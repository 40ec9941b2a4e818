package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/api/document"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

func init() {
	bounded["test-connection"], bounded["list-connections"] = "reaches", "large"
	smallLists["/connections"] = "a tenant has 64, of two certificates and a key each"
	smallLists["/deleted-connections"] = "names of 100 deleted connections"
	auditedOperations["create-connection"] = audited{body: as(map[string]any{"name": "second", "spec": map[string]any{"broker": "nats", "addresses": []string{"nats.example:4222"}}})}
	auditedOperations["restore-connection"] = audited{before: calling("acme/admin", "DELETE", "/connections/{id}", nil)}
	addOns = append(addOns, addOn{
		name: "broker", lists: []string{"/connections"},
		routes: func(s *web.Server, d *Deps, _ *Actions) {
			broker.Routes(s, broker.Deps{Table: tableOf(d), Secrets: sealerOf(d), NewID: d.NewID, Changed: func(context.Context, domain.TenantID) {}, Log: d.Logger})
		},
		objects: func(w *world, admin string) objects {
			c := into[document.Answer](w.call(admin, "POST", "/connections", natsConnection("events")).is(201))
			return objects{"/connections/{id}": c.ID}
		},
		body: func(method, path string) any {
			switch {
			case method == http.MethodPut && strings.Contains(path, "/connections/"):
				return natsConnection("changed")
			case strings.HasSuffix(path, "/connections/{id}/test"):
				return map[string]any{"target": map[string]any{"subject": "x"}}
			}
			return nil
		},
	})
}

func natsConnection(name string) map[string]any {
	return map[string]any{"name": name, "spec": map[string]any{"broker": "nats", "addresses": []string{"nats.example:4222"}}}
}

// tableOf is the table of connections; nil without a store.
func tableOf(d *Deps) broker.Table {
	s, is := d.Store.(*gormstore.Store)
	if !is {
		return broker.Table{}
	}
	return broker.NewTable(s.DB, s.EnsureBuiltIn)
}

func (w *world) connections() broker.Table { return tableOf(&w.deps) }

// sealerOf is nil for operations that are only described.
func sealerOf(d *Deps) resource.Sealer {
	s, _ := d.Secrets.(resource.Sealer)
	return s
}
