package api

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// addOn is an add-on in the tests of all operations. Its file, NAME_rows_test.go, adds it.
type addOn struct {
	name string
	// routes adds its operations. Those of a document have an empty Deps.
	routes func(*web.Server, *Deps, *Actions)
	// lists are the paths of its lists.
	lists []string
	// objects makes one of each of its objects in a tenant, as its administrator.
	objects func(w *world, admin string) objects
	// body is a body of a request that gets past validation. nil: it has none for this path.
	body func(method, path string) any
	// attention is its part of the overview. nil: it has none.
	attention func(*Deps) web.Attention
	// fatten makes its lists large, and returns their lengths. nil: they stay small.
	fatten func(w *world, tenant domain.TenantID, job string) map[string]int
	// fail lets the last run that has failed be told at an address, in vain. nil: it tells of
	// none.
	fail func(w *world, address, failure string)
}

var addOns []addOn

// addOnRoutes are the operations of all add-ons.
func addOnRoutes(d *Deps) func(*web.Server, *Actions) {
	return func(s *web.Server, actions *Actions) {
		for _, a := range addOns {
			a.routes(s, d, actions)
		}
	}
}

// addAddOns gives the API of the world its add-ons.
func (w *world) addAddOns() {
	w.deps.AddOns, w.deps.Attention = addOnRoutes(&w.deps), nil
	for _, a := range addOns {
		if a.attention != nil {
			w.deps.Attention = append(w.deps.Attention, a.attention(&w.deps))
		}
	}
}

// describedDeps are the Deps of an API that is only described.
func describedDeps() Deps {
	d := Deps{Logger: slog.New(slog.DiscardHandler)}
	d.AddOns = addOnRoutes(&d)
	return complete(d)
}
