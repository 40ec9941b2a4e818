package admin

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	callbackrule "github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/bridge"
	"github.com/carillon-sched/carillon/admin/internal/calendar"
	"github.com/carillon-sched/carillon/admin/internal/callback"
	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/completer"
	"github.com/carillon-sched/carillon/admin/internal/declare"
	"github.com/carillon-sched/carillon/admin/internal/disabled"
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/followup"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
	"github.com/carillon-sched/carillon/admin/internal/hotset"
	"github.com/carillon-sched/carillon/admin/internal/lease"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/scheduler"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/sweeper"
	"github.com/carillon-sched/carillon/admin/internal/telemetry"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/admin/internal/watchdog"
)

// buildEngine constructs the way of a trigger, out and back.
func (a *Admin) buildEngine(ctx context.Context) error {
	a.disabled = disabled.NewList(a.store)
	var err error
	if a.auth, err = auth.New(ctx, auth.Options{
		Store: a.store, DataDir: a.config.DataDir, NewID: a.ids.Next, Logger: a.log,
		Disabled: func(t domain.TenantID) bool { return a.disabled.Has(t, 0) }, NotHere: a.disabled.NotHere,
	}); err != nil {
		return err
	}
	if err := a.openTrust(ctx); err != nil {
		return err
	}
	if err := a.buildAddOns(); err != nil {
		return err
	}
	a.endings = watchdog.NewEndings(a.log, a.store.JobSpec)
	a.watchdog = watchdog.New(watchdog.Options{
		Store: a.store, Recorded: a.nudge, Unexplained: a.unexplained, Node: a.self.Name, Now: a.clock.Now, Logger: a.log,
		Planning: func() (bool, time.Duration) { return a.planner.HeldBack(), a.planner.Lag() }, Stalled: func() time.Duration { return a.dispatcher.Stalled() },
	})
	if a.config.HotStore != "" {
		if a.hot, err = hotset.Open(hotset.Options{
			URL: a.config.HotStore, Prefix: "carillon:" + a.clusterID + ":timers:", Timers: a.store, Held: a.guard.Held, Now: a.clock.Now, Logger: a.log,
		}); err != nil {
			return err
		}
	}
	a.steps = observed{a.store, telemetry.NewSteps(telemetry.StepsOptions{
		Store: a.store, Metrics: a.metrics, Tracer: a.tracer, Hot: a.hot, Now: a.clock.Now, Missed: a.nudge,
	})}
	a.leases = lease.NewKeeper(lease.Options{
		Store: a.store, Node: a.self.ID, BootID: a.self.BootID, Horizon: scheduler.LookAhead,
		Adopt: func(e ...domain.Execution) { a.timer.Add(e...) }, Gained: func() { a.planner.Nudge() }, GiveBack: a.steps.GiveBackOffers,
		Resend:    func(ctx context.Context, e []domain.Execution) { a.dispatcher.Repeat(ctx, e) },
		ClockHeld: a.guard.ClockHeld, Logger: a.log,
	})
	a.runs = new(runtable.Table)
	a.timer = scheduler.NewTimer(a.runs, a.clock.Now, scheduler.Lead, func(due []*domain.Execution) { a.dispatcher.Fire(due) })
	a.planner = scheduler.NewPlanner(scheduler.PlannerOptions{
		Store: a.steps, Timers: a.steps, Held: a.guard.Held, Refused: a.leases.Refused, Latest: a.clock.Latest,
		NewID: a.ids.Next, Plan: a.schedules.Plan, Maintenance: a.store, Now: a.clock.Now,
		Out: func(e []domain.Execution) { a.timer.Add(e...) }, Logger: a.log, Observe: a.metrics.ObserveClaim, Load: a.runs.Load,
		Disabled: a.disabled.Tenants,
	})
	flushLimit := batch.NewFlushLimit(max(1, runtime.GOMAXPROCS(0)/2))
	backpressure := batch.NewBackpressure(maxResults)
	a.completer = completer.New(completer.Options{
		Store: a.steps, Runs: a.store, Progress: a.store, Later: a.timer.Add, Logger: a.log, FlushLimit: flushLimit, Backpressure: backpressure, Ended: a.ended,
		Returned: func(list []domain.Execution) { a.dispatcher.Freed(list) },
	})
	k := &bridge.Sink{Store: a.store, Completer: a.completer, Reached: a.self.Nudge, Later: a.timer.Add, Logger: a.log, Traced: a.tracer != nil}
	a.declarer = declare.New(declare.Options{
		Store: a.store, NewID: a.ids.Next, Plan: a.planner.PlanTrigger, Changed: a.planner.Nudge, Now: a.clock.Now, Logger: a.log,
		Callback: callbackrule.Declared(a.store, a.addOnHandlers()),
		Audited:  slices.ContainsFunc(a.addOns, func(p addon.Parts) bool { return p.Audited }),
	})
	port := gateway.Options{
		NodeID: a.self.Name, ClusterID: a.clusterID,
		Auth: a.auth, Fleet: a.store, Sink: k, Inventory: k, Logs: a.steps, NewID: a.ids.Next, Logger: a.log,
		Declarer: a.declarer, Flapping: a.watchdog.Flapping, Refusals: a.store,
	}
	if err := a.executorPort(&port); err != nil {
		return err
	}
	a.gateway = gateway.New(port)
	a.gateway.SetNodes([]domain.Node{a.self.Node})
	a.openCallbacks()
	a.calls = calljob.Jobs{Store: a.store, NewID: a.ids.Next, Now: a.clock.Now, Handlers: a.addOnHandlers()}
	fleet := bridge.Fleet{
		Gateway: a.gateway, Disabled: a.disabled.Has, NoFire: a.config.NoFire, Traced: a.tracer != nil,
		Scripts: &bridge.Scripts{Store: a.store, Logger: a.log.With("component", "scripts")},
	}
	a.dispatcher = dispatch.New(dispatch.Options{
		Node: a.self.ID, Store: a.steps, Fleet: fleet, Table: a.runs, Later: a.timer.Add, OnTime: a.timer.AddOnTime,
		Held: a.guard.Held, Now: a.clock.Now, NewID: a.ids.Next, Logger: a.log, FlushLimit: flushLimit, Backpressure: backpressure, Ended: a.completer.Ended,
		Disabled: a.disabled.Has,
	})
	k.Dispatch = a.dispatcher
	a.gauges = a.metrics.Export(telemetry.Sources{
		Store: a.store, Gateway: a.gateway, HTTP: a.httpConns, Hot: a.hot, Planner: a.planner, Dispatcher: a.dispatcher, Results: a.completer.Results(),
		Held: a.leases.Held, Nodes: a.self.Nodes, Now: a.clock.Now, ClockHeld: a.guard.ClockHeld, HistoryHeld: a.guard.HistoryHeld, Draining: a.draining.Load,
		Waits: a.runs.Waits, Pending: a.timer.Len, OutboxLag: a.outboxLag,
	})
	followups := &followup.Starter{Store: a.store, Job: a.calls.For, Handlers: a.addOnHandlers(), NewID: a.ids.Next, Now: a.clock.Now, Later: a.timer.Add, Logger: a.log}
	a.follow = disabled.NewFollower(disabled.Options{
		List: a.disabled, Store: a.store, EndIdle: a.gateway.EndIdle, Next: timing.Next, Plan: a.planner.PlanTrigger, Changed: a.planner.Nudge, Logger: a.log,
	})
	a.calendars = &calendar.Follower{Store: a.store, Plan: a.planner.PlanTrigger, Changed: a.planner.Nudge, Log: a.log.With("component", "calendars")}
	bulk := &sweeper.Bulk{Store: a.steps, Fires: timing.FiresBetween, NewID: a.ids.Next, Later: a.timer.Add, Cancel: a.dispatcher.SendCancel}
	statistics := &sweeper.Statistics{Store: a.store, Kept: a.config.Statistics.kept()}
	a.sweeper = sweeper.New(sweeper.Options{
		Store: a.store, Retention: a.store, Held: a.guard.Held, Latest: a.clock.Latest, Ownerless: a.leases.Ownerless, Unattended: a.dispatcher.Unattended, Reported: a.completer.Reported, Later: a.timer.Add, Cancel: a.dispatcher.SendCancel, Resend: a.dispatcher.Resend,
		Ended: a.completer.Ended, RunRetention: a.config.RunRetention, TimerRetention: a.config.TimerRetention, LogRetention: a.config.LogRetention, LogBytes: a.config.Logs.TenantBytes, Logger: a.log,
		Chores: slices.Concat(bulk.Chores(), statistics.Chores(), []sweeper.Chore{
			{Name: "look after waiting runs", Every: dispatch.LookEvery, Do: a.dispatcher.LookAfterWaiting},
			{Name: "tell of endings", Every: watchdog.EndingsEvery, Do: a.endings.Tell},
			{Name: "follow calendars", Every: calendar.SweepEvery, Do: a.calendars.Sweep},
			{Name: "reconcile declarations", Every: declare.SweepEvery, Do: a.declarer.Sweep},
			{Name: "hold jobs of what is disabled", Every: disabled.HoldEvery, Do: a.follow.HoldJobs},
			{Name: "tell of lost instances", Every: watchdog.LostEvery, Do: a.watchdog.LookForLost},
			{Name: "tell of overload", Every: watchdog.LoadEvery, Do: a.watchdog.LookForOverload},
			{Name: "tell of runs that stand still", Every: watchdog.LoadEvery, Do: a.watchdog.LookForStalled},
			{Name: "look at the outbox", Every: telemetry.OutboxLookEvery, Do: a.gauges.LookAtOutbox},
			{Name: "start callbacks", Every: followup.Every, Do: followups.Start},
			{Name: "adopt the outbox of the version before", Every: telemetry.OutboxLookEvery, Do: a.store.AdoptOutbox},
			{Name: "compare time zones", Every: watchdog.ZonesEvery, Do: (&watchdog.Zones{Store: a.store, Logger: a.log.With("component", "cluster")}).Look},
		}),
	})
	return nil
}

// maxResults is how many results of a tenant may wait before no more of his runs
// are offered: about half a second of them, so that a job which fires every
// second finds its slot free.
const maxResults = 16 * completer.ResultBatch

// ended hears of every execution that left an attempt on this node.
func (a *Admin) ended(list []domain.Execution) {
	a.metrics.ObserveEnded(list)
	a.endings.Add(list)
	for i := range list {
		a.tracer.Attempt(&list[i])
	}
	a.dispatcher.Freed(list)
	for i := range list {
		switch list[i].State {
		case domain.Failed, domain.TimedOut, domain.Lost, domain.Missed:
			a.nudge() // its event is in the outbox
			return
		}
	}
}

// openCallbacks makes this node an instance of the built-in executors.
func (a *Admin) openCallbacks() {
	a.callbacks = callback.New(callback.Options{
		List: callback.Tenants{Store: a.store, Box: a.box}.List, Dial: a.gateway.DialLocal,
		Dir: filepath.Join(a.config.DataDir, "callbacks"), NewID: a.ids.Next, Node: a.self.Name, Version: a.config.Version,
		Handlers: a.addOnHandlers(),
		Networks: a.config.Webhook.AllowPrefixes, Logger: a.log,
	})
}

// openTrust reads the sealing key of secrets, and the authority of executors'
// certificates when they are used.
func (a *Admin) openTrust(ctx context.Context) (err error) {
	if a.box, err = secret.Load(os.Getenv(secret.EnvKey), a.config.SealingKeyFile); err != nil {
		return err
	}
	if err := a.box.Claim(ctx, a.store); err != nil {
		return err
	}
	if err := a.disabled.Read(ctx); err != nil {
		return err
	}
	a.denials = auth.NewDenials(a.store, func(d domain.Denial) []domain.InstanceID { return a.gateway.EndDenied(d) }, a.log)
	if a.config.ExecutorCertificates == CertificatesOff {
		return nil
	}
	a.authority, err = auth.OpenAuthority(ctx, auth.AuthorityOptions{
		Store: a.store, Sealer: a.box, ClusterID: a.clusterID, NewID: a.ids.Next, Logger: a.log,
		Required: a.config.ExecutorCertificates == CertificatesRequired,
	})
	return err
}

// executorPort is what the gateway checks connections with.
func (a *Admin) executorPort(o *gateway.Options) (err error) {
	o.Denials, o.RecycleAfter, o.IdleBeats = disabled.Door{Denials: a.denials, List: a.disabled, Store: a.store, NoFire: a.config.NoFire}, a.config.ExecutorRecycle, float64(a.config.ExecutorIdleBeats)
	o.Limits = gateway.Limits{
		Sessions: a.config.ExecutorLimits.Sessions, SessionsPerTenant: a.config.ExecutorLimits.SessionsPerTenant,
		PerAddress: a.config.ExecutorLimits.PerAddress,
	}
	if o.TLS, err = loadTLS(a.config.ExecutorTLSCertFile, a.config.ExecutorTLSKeyFile); err != nil || a.authority == nil {
		return err
	}
	// A process without a certificate may ask for one. The gateway checks certificates, so
	// that a refusal can give the reason. TLS itself only proves that the key is there.
	o.TLS.ClientAuth = tls.RequestClientCert
	o.Certificates = a.authority
	return nil
}
