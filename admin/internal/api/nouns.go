package api

import (
	"log/slog"

	"github.com/carillon-sched/carillon/admin/internal/api/access"
	"github.com/carillon-sched/carillon/admin/internal/api/apply"
	"github.com/carillon-sched/carillon/admin/internal/api/builtin"
	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/script"
	"github.com/carillon-sched/carillon/admin/internal/api/search"
	"github.com/carillon-sched/carillon/admin/internal/api/tenant"
	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/forecast"
)

// registerPackages adds the operations of the packages below this one.
func registerPackages(server *web.Server, d *Deps, log *slog.Logger) {
	changed := builtin.Within(d.BuiltInChanged)
	access.Register(server, access.Deps{Store: d.Store, Auth: d.Auth, NewID: d.NewID, Now: d.Now, Denied: d.Denied, Log: log})
	tenant.Register(server, tenant.Deps{Store: d.Store, NewID: d.NewID, Now: d.Now, Made: d.TenantMade, DisabledChanged: d.DisabledChanged, BeforeDisable: d.BeforeDisable, Log: log})
	apply.Register(server, d.Store)
	calendar.Register(server, calendar.Deps{Store: d.Store, NewID: d.NewID, Now: d.Now, FollowCalendar: d.FollowCalendar, Log: log})
	script.Register(server, script.Deps{
		Store: d.Store, Secrets: d.Secrets, SignScript: d.SignScript, ScriptKey: d.ScriptKey, NewID: d.NewID, Changed: changed, Log: log,
	})
	search.Register(server, d.Store)
	builtin.Register(server, builtin.Deps{Store: d.Store, Secrets: d.Secrets})
	callback.Register(server, callback.Deps{Store: d.Store, Handlers: d.Handlers, TryAddress: d.TryAddress, Log: log})
	timer.Register(server, timer.Deps{
		Store: d.Store, Runner: d.Runner, NewID: d.NewID, Now: d.Now, CallJob: d.CallJob, Held: d.Held, TimersSet: d.TimersSet, Handlers: d.Handlers, Log: log,
	})
}

// registerNouns adds the operations of this package. Each noun gets its own dependencies.
// Those with a name are dependencies of others.
func registerNouns(server *web.Server, d *Deps, log *slog.Logger) *Actions {
	maintained := &maintenance{store: d.Store, now: d.Now, jobsChanged: d.JobsChanged, log: log}
	starts := &starter{store: d.Store, runner: d.Runner, maintenance: maintained, newID: d.NewID, now: d.Now, log: log}
	started := &runs{store: d.Store, runner: d.Runner, starter: starts, maintenance: maintained, handlers: d.Handlers, now: d.Now, log: log}
	defined := &jobs{
		store: d.Store, forecast: forecast.New(d.Store), secrets: d.Secrets, handlers: d.Handlers, newID: d.NewID, now: d.Now, plan: d.Plan,
		jobsChanged: d.JobsChanged, problem: server.Problem, log: log,
	}
	kept := &retention{store: d.Store, newID: d.NewID, now: d.Now, runsKept: d.RunRetention, logsKept: d.LogRetention, log: log}
	for _, noun := range []interface{ register(server *web.Server) }{
		maintained, starts, started,
		&sessions{auth: d.Auth, maintenance: maintained, path: d.Path, secure: d.SecureCookies},
		&executors{
			store: d.Store, newID: d.NewID, now: d.Now, plan: d.Plan, readWeights: d.Weights,
			beforeDisable: d.BeforeDisable, disabledChanged: d.DisabledChanged, codeAllowed: d.GivenBack, log: log,
		},
		&drains{store: d.Store, newID: d.NewID, now: d.Now, denied: d.Denied, drainsChanged: d.DrainsChanged, log: log},
		&limits{store: d.Store, log: log},
		kept,
		&tenants{store: d.Store, newID: d.NewID, now: d.Now, made: d.TenantMade, retention: kept, log: log},
		defined, &fires{jobs: defined, forecast: defined.forecast, now: d.Now},
		&declarations{
			store: d.Store, handlers: d.Handlers, newID: d.NewID, now: d.Now, plan: d.Plan, jobsChanged: d.JobsChanged,
			declaration: d.Declaration, givenBack: d.GivenBack, log: log,
		},
		&backfills{store: d.Store, newID: d.NewID, now: d.Now, log: log},
		&calls{store: d.Store, runner: d.Runner, starter: starts, callJob: d.CallJob, now: d.Now},
		&statistics{store: d.Store, kept: d.Statistics, now: d.Now},
		&explanations{store: d.Store, runsKept: d.RunRetention, now: d.Now},
		&logs{store: d.Store, now: d.Now, log: log},
		&overview{store: d.Store, maintenance: maintained, attention: d.Attention, now: d.Now},
		&system{
			server: server, store: d.Store, nodes: d.Nodes, self: d.Self, version: d.Version, noFire: d.NoFire,
			clockHeld: d.ClockHeld, draining: d.Draining, ready: d.Ready, log: log,
		},
	} {
		noun.register(server)
	}
	return &Actions{starts, started}
}
