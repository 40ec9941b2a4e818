package admin

import (
	"context"
	"fmt"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/assistant"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/doctor/check"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// addOns are the add-ons of a node, one line each.
func addOns() []addon.AddOn {
	return []addon.AddOn{
		assistant.AddOn(),
		broker.AddOn(),
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
	a.addOns = nil
	for _, one := range addOns() {
		parts, err := one.Build(addon.Node{
			Logger: a.log, Version: a.config.Version, BaseURL: a.config.BaseURL, Settings: a.config.AddOns,
			DB: a.store.DB, Secrets: a.box, NewID: a.ids.Next, EnsureBuiltIn: a.store.EnsureBuiltIn,
			BuiltInChanged: func(ctx context.Context, tenant domain.TenantID) { a.callbacks.Refresh(ctx, tenant) },
		})
		if err != nil {
			return fmt.Errorf("build the add-on %s: %w", one.Name, err)
		}
		a.addOns = append(a.addOns, parts)
	}
	return nil
}

// addOnRoutes adds the operations and doors of the add-ons.
func (a *Admin) addOnRoutes(s *web.Server) {
	for _, parts := range a.addOns {
		if parts.Routes != nil {
			parts.Routes(s)
		}
	}
}

// addOnHandlers are the handlers of the built-in executors that add-ons have.
func (a *Admin) addOnHandlers() (out nodehandler.List) {
	for _, parts := range a.addOns {
		out = append(out, parts.Handlers...)
	}
	return out
}

// addOnChecks are the checks of the doctor that add-ons have.
func addOnChecks(settings Settings) (out []check.More) {
	for _, one := range addOns() {
		d := one.Doctor
		if d == nil {
			continue
		}
		out = append(out, check.More{
			ID: d.ID,
			Look: func(ctx context.Context, s *gormstore.Store, box *secret.Box) ([]doctor.Result, error) {
				return d.Look(ctx, addon.Examination{DB: s.DB, Box: box, Settings: settings, Plainly: check.Plainly})
			},
			Sealed: func(ctx context.Context, s *gormstore.Store) (list []check.Sealed, err error) {
				found, err := d.Sealed(ctx, s.DB)
				for _, f := range found {
					list = append(list, check.Sealed(f))
				}
				return list, err
			},
		})
	}
	return out
}
