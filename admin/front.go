package admin

import (
	"context"
	"crypto/ed25519"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/bridge"
	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/declare"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/front"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
)

// buildFront constructs what people see: API and UI.
func (a *Admin) buildFront(ctx context.Context) error {
	ready := &front.Readiness{
		Store: a.store, Silent: a.leases.Silent, NoFire: a.config.NoFire, Here: func(id domain.InstanceID) bool { return a.gateway.SessionOf(id) != nil },
	}
	var pages http.Handler
	if a.config.UI != nil {
		pages = a.config.UI(a.config.path())
	}
	a.server = api.New(api.Deps{
		Store: a.steps, Auth: a.auth, Secrets: a.box, Denied: a.denials.Nudge, SignScript: bridge.SignScripts(a.box.ScriptKey()), ScriptKey: a.box.ScriptKey().Public().(ed25519.PublicKey), Runner: runner{a.timer, a.dispatcher, a.completer}, NewID: a.ids.Next, Now: a.clock.Now, Statistics: a.config.Statistics.kept(),
		CallJob: a.calls.For, Held: a.leases.Held, TimersSet: a.planner.TimersSet,
		Plan: a.planner.PlanTrigger, JobsChanged: a.planner.Nudge, FollowCalendar: a.calendars.Edited, Nodes: a.self.Nodes, Self: a.self.BootID,
		DisabledChanged: a.follow.Changed, BeforeDisable: a.follow.BeforeDisable, DrainsChanged: a.gateway.DrainsChanged,
		Attention: a.attention(), TenantMade: a.tenantMade,
		Weights: declare.Weights, Declaration: a.declarer.Declaration, GivenBack: a.declarer.GivenBack, BuiltInChanged: a.callbacks.Refresh, TryAddress: a.callbacks.Try,
		ClockHeld: a.guard.Hold,
		Ready:     ready.Ready,
		NoFire:    a.config.NoFire,
		Draining:  a.draining.Load, Closing: a.closing.Load,
		AddOns: a.addOnRoutes, Handlers: a.addOnHandlers(),
		Path: a.config.path(), UI: pages, Metrics: a.metrics.Registry(), MetricsElsewhere: a.scrapes != nil, Logger: a.log, Version: a.config.Version,
		RunRetention:  a.config.RunRetention,
		LogRetention:  a.config.LogRetention,
		Waits:         web.Waits{PerUser: a.config.HTTPLimits.WaitsPerUser, PerTenant: a.config.HTTPLimits.WaitsPerTenant},
		SecureCookies: api.SecureCookies(a.config.SecureCookies), TrustedProxies: a.config.TrustedProxies,
	})
	first, err := a.auth.EnsureFirstAdmin(ctx, a.config.AdminPassword)
	if err != nil {
		return err
	}
	if first.Created && first.Password != "" {
		a.firstLogin = &Login{Username: first.Username, Password: first.Password}
	}
	if err := a.applyProvision(ctx); err != nil {
		return err
	}
	a.scrapes.Open(api.MetricsOnly(a.metrics.Registry()))
	ready.Begin()
	a.front.Open(a.server)
	return nil
}

// runner lets the API begin and end runs.
type runner struct {
	*scheduler.Timer
	*dispatch.Dispatcher
	*completer.Completer
}
