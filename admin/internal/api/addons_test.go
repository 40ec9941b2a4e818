package api

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/route"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// addOn is an add-on in the tests of all operations. Its file, NAME_rows_test.go, adds it.
type addOn struct {
	// routes adds its operations. Those of a document have an empty Deps.
	routes func(*web.Server, *Deps)
	// lists are the paths of its lists.
	lists []string
	// objects makes one of each of its objects in a tenant, as its administrator.
	objects func(w *world, admin string) objects
	// body is a body of a request that gets past validation. nil: it has none for this path.
	body func(method, path string) any
}

var addOns []addOn

// addOnRoutes are the operations of all add-ons.
func addOnRoutes(d *Deps) func(*web.Server) {
	return func(s *web.Server) {
		for _, a := range addOns {
			a.routes(s, d)
		}
	}
}

// describedDeps are the Deps of an API that is only described.
func describedDeps() Deps {
	d := Deps{Logger: slog.New(slog.DiscardHandler)}
	d.AddOns = func(s *web.Server) {
		addOnRoutes(&d)(s)
		route.Register(s, route.Deps{})
	}
	return complete(d)
}
