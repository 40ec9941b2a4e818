package admin

import (
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/assistant"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
)

// addOns are the add-ons of a node, one line each.
func addOns() []addon.AddOn {
	return []addon.AddOn{
		assistant.AddOn(),
	}
}

// AddOnSetting is a setting of the server that belongs to an add-on.
type AddOnSetting = addon.Setting

// Settings are the values of the add-ons' settings by name.
type Settings = addon.Values

// AddOnSettings are the settings of all add-ons.
func AddOnSettings() (out []AddOnSetting) {
	for _, a := range addOns() {
		out = append(out, a.Settings...)
	}
	return out
}

// addOnPaths are the first segments of the addresses that add-ons serve outside /api.
func addOnPaths() (out []string) {
	for _, a := range addOns() {
		if a.Path != "" {
			out = append(out, a.Path)
		}
	}
	return out
}

// buildAddOns makes the add-ons' parts of this node.
func (a *Admin) buildAddOns() error {
	a.routes = nil
	for _, one := range addOns() {
		parts, err := one.Build(addon.Node{
			Logger: a.log, Version: a.config.Version, BaseURL: a.config.BaseURL, Settings: a.config.AddOns,
		})
		if err != nil {
			return fmt.Errorf("build the add-on %s: %w", one.Name, err)
		}
		if parts.Routes != nil {
			a.routes = append(a.routes, parts.Routes)
		}
	}
	return nil
}

// addOnRoutes adds the operations and doors of the add-ons.
func (a *Admin) addOnRoutes(s *web.Server) {
	for _, add := range a.routes {
		add(s)
	}
}
