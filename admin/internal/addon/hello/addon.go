// Package hello answers: how does a newcomer see a green run before there is an application?
//
// The admin nodes run three sample handlers for the tenants' built-in executors (handler.go,
// docs/adr/0070). A request makes that executor for a tenant without one (route.go). The handlers
// reach nothing and run no code of users. A setting switches them off.
package hello

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// setting says whether the nodes have the sample handlers.
const setting = "sample-handlers"

// AddOn is the add-on.
func AddOn() addon.AddOn {
	return addon.AddOn{
		Name: "hello", Check: check, Build: build,
		Settings: []addon.Setting{{
			Name: setting, Default: "on", Usage: "whether tenants can try the sample handlers, which admin nodes run: on or off",
		}},
	}
}

func check(v addon.Values) error {
	if value := v.Text(setting); value != "on" && value != "off" {
		return fmt.Errorf("invalid value %q of %s: use on or off", value, setting)
	}
	return nil
}

func build(n addon.Node) (addon.Parts, error) {
	parts := addon.Parts{Routes: func(s *web.Server) {
		Routes(s, Deps{
			DB: n.DB, EnsureBuiltIn: n.EnsureBuiltIn, Changed: builtin.Within(n.BuiltInChanged), Off: n.Settings.Text(setting) == "off",
		})
	}}
	if n.Settings.Text(setting) != "off" {
		parts.Handlers = handlers()
	}
	return parts, nil
}
