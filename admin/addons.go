package admin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting"
	"github.com/carillon-sched/carillon/admin/internal/addon/assistant"
	"github.com/carillon-sched/carillon/admin/internal/addon/audit"
	"github.com/carillon-sched/carillon/admin/internal/addon/broker"
	"github.com/carillon-sched/carillon/admin/internal/addon/bulk"
	"github.com/carillon-sched/carillon/admin/internal/addon/hello"
	"github.com/carillon-sched/carillon/admin/internal/api"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/doctor"
	"github.com/carillon-sched/carillon/admin/internal/doctor/check"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// addOns are the add-ons of a node, one line each.
func addOns() []addon.AddOn {
	return []addon.AddOn{
		alerting.AddOn(),
		assistant.AddOn(),
		audit.AddOn(),
		broker.AddOn(),
		bulk.AddOn(),
		hello.AddOn(),
	}
}

// AddOnSetting is a setting of the server that belongs to an add-on.
type AddOnSetting = addon.Setting

// Kinds of add-ons' settings. All others are texts.
const (
	ListSetting     = addon.List
	NumberSetting   = addon.Number
	DurationSetting = addon.Duration
	AddressSetting  = addon.Address
	SecretSetting   = addon.Secret
)

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
			Logger: a.log, Version: a.config.Version, BaseURL: a.config.BaseURL, Settings: a.config.AddOns, Networks: a.config.Webhook.AllowPrefixes,
			DB: a.store.DB, Engine: a.store.Engine, Store: a.store, Secrets: a.box, DataDir: a.config.DataDir, Leads: a.leads, NewID: a.ids.Next, Now: a.clock.Now, Metrics: a.metrics.Registry(), Trace: a.tracer.Tell,
			Boot: a.self.BootID, Living: func() []string { return a.leases.Living() }, Shown: func() (time.Time, bool) { return a.leases.Shown() },
			EnsureBuiltIn:  a.store.EnsureBuiltIn,
			BuiltInChanged: func(ctx context.Context, tenant domain.TenantID) { a.callbacks.Refresh(ctx, tenant) },
			Jobs:           a.addOnJobs(), Runs: a.addOnRuns(),
		})
		if err != nil {
			return fmt.Errorf("build the add-on %s: %w", one.Name, err)
		}
		a.addOns = append(a.addOns, parts)
	}
	return nil
}

// leads reports whether this node holds the first partition.
func (a *Admin) leads() bool {
	return slices.ContainsFunc(a.leases.Held(), func(t domain.PartitionTerm) bool { return t.Partition == 0 })
}

// addOnJobs are what add-ons may do with jobs.
func (a *Admin) addOnJobs() addon.Jobs {
	return addon.Jobs{
		ListIDs: a.store.ListJobIDs, Count: a.store.CountJobIDs, Match: a.store.MatchJobs, Lock: a.store.LockJobs, Pause: a.store.PauseLocked,
		Next: timing.Next,
		Plan: func(now time.Time, t domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
			return a.planner.PlanTrigger(now, t, spec)
		},
		Changed: func() { a.planner.Nudge() },
	}
}

// addOnRuns are what add-ons may do with runs.
func (a *Admin) addOnRuns() addon.Runs {
	options := func(w addon.Asked) (api.ActionKey, api.ActionOptions) {
		return api.ActionKey{Unique: w.Key, By: w.By}, api.ActionOptions{Note: w.Note, During: w.During}
	}
	return addon.Runs{
		List: a.store.ListBareExecutions,
		Begin: func(ctx context.Context, w addon.Asked, job domain.JobID) (domain.ExecutionID, string, error) {
			key, o := options(w)
			return a.actions.RunJob(ctx, w.ID, job, key, o)
		},
		Retry: func(ctx context.Context, w addon.Asked, run domain.ExecutionID) (domain.ExecutionID, string, error) {
			key, o := options(w)
			return a.actions.RetryRun(ctx, w.ID, run, key, o)
		},
		Cancel: func(ctx context.Context, id auth.Identity, run domain.ExecutionID, reason string) error {
			return a.actions.CancelRun(ctx, id, run, reason)
		},
	}
}

// addOnRoutes adds the operations and doors of the add-ons, which get the actions of the API.
func (a *Admin) addOnRoutes(s *web.Server, actions *api.Actions) {
	a.actions = actions
	for _, parts := range a.addOns {
		if parts.Routes != nil {
			parts.Routes(s)
		}
	}
}

// addOnTables are the add-ons' tables with rows of tenants.
func addOnTables() (out []gormstore.OwnedTable) {
	for _, a := range addOns() {
		out = append(out, a.Tables...)
	}
	return out
}

// subscribe lets runs write the events that the reader of the outbox wants.
func subscribe(o *gormstore.Options) {
	o.Unread |= domain.TopicEvents
	for _, a := range addOns() {
		if a.Successes != nil {
			o.Successes = a.Successes
			o.Unread &^= domain.TopicEvents
		}
	}
}

// nudge says that the outbox may hold something new.
func (a *Admin) nudge() {
	for _, parts := range a.addOns {
		if parts.Nudge != nil {
			parts.Nudge()
		}
	}
}

// outboxLag is for how long the oldest event of the outbox has waited. Without a subscriber
// there is none.
func (a *Admin) outboxLag(ctx context.Context) (time.Duration, error) {
	for _, parts := range a.addOns {
		if parts.OutboxLag != nil {
			return parts.OutboxLag(ctx)
		}
	}
	return 0, nil
}

// unexplained leaves out lost instances that another event explains.
func (a *Admin) unexplained(ctx context.Context, list []store.LostInstances) (_ []store.LostInstances, err error) {
	for _, parts := range a.addOns {
		if parts.Unexplained != nil {
			if list, err = parts.Unexplained(ctx, list); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

// attention are the add-ons' parts of the overview.
func (a *Admin) attention() (out []web.Attention) {
	for _, parts := range a.addOns {
		if parts.Attention != nil {
			out = append(out, parts.Attention)
		}
	}
	return out
}

// tenantMade tells the add-ons of a new tenant.
func (a *Admin) tenantMade(ctx context.Context, t domain.Tenant) {
	for _, parts := range a.addOns {
		if parts.TenantMade != nil {
			parts.TenantMade(ctx, t)
		}
	}
}

// provisioned tells the add-ons that the documents of the provision file are there.
func (a *Admin) provisioned(ctx context.Context) (err error) {
	for _, parts := range a.addOns {
		if parts.Provisioned != nil {
			err = errors.Join(err, parts.Provisioned(ctx))
		}
	}
	return err
}

// addOnHandlers are the handlers of the built-in executors that add-ons have.
func (a *Admin) addOnHandlers() (out nodehandler.List) {
	for _, parts := range a.addOns {
		out = append(out, parts.Handlers...)
	}
	return out
}

// addOnChecks are the checks of the doctor that add-ons have.
func addOnChecks(settings Settings, networks []netip.Prefix) (out []check.More) {
	for _, one := range addOns() {
		for _, d := range one.Doctor {
			more := check.More{ID: d.ID, Alone: d.Alone, Look: func(ctx context.Context, s *gormstore.Store, box *secret.Box) ([]doctor.Result, error) {
				e := addon.Examination{Box: box, Settings: settings, Networks: networks, Plainly: check.Plainly}
				if s != nil {
					e.DB = s.DB
				}
				return d.Look(ctx, e)
			}}
			if d.Sealed != nil {
				more.Sealed = func(ctx context.Context, s *gormstore.Store) (list []check.Sealed, err error) {
					found, err := d.Sealed(ctx, s.DB)
					for _, f := range found {
						list = append(list, check.Sealed(f))
					}
					return list, err
				}
			}
			out = append(out, more)
		}
	}
	return out
}
