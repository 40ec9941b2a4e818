package api

import (
	"context"

	"github.com/carillon-sched/carillon/admin/internal/addon/hello"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

func init() {
	auditedOperations["start-samples"] = audited{}
	orders["start-samples"] = "it asks for an executor that every tenant can have"
	addOns = append(addOns, addOn{
		name: "hello",
		routes: func(s *web.Server, d *Deps, _ *Actions) {
			deps := hello.Deps{Changed: func(context.Context, domain.TenantID) {}}
			if s, is := d.Store.(*gormstore.Store); is {
				deps.DB, deps.EnsureBuiltIn = s.DB, s.EnsureBuiltIn
			}
			hello.Routes(s, deps)
		},
		objects: func(*world, string) objects { return nil },
		body:    func(string, string) any { return nil },
	})
}
