package admin

import (
	"context"
	"errors"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/calljob"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
)

// MetricsURL returns where /metrics is.
func (a *Admin) MetricsURL() string {
	if a.metricsListener == nil {
		return a.URL() + "/metrics"
	}
	return "http://" + a.metricsListener.Addr().String() + "/metrics"
}

// AddOnTables are the add-ons' tables with rows of tenants.
func AddOnTables() []gormstore.OwnedTable { return addOnTables() }

// SetTimers sets timers of a handler by their keys.
func (a *Admin) SetTimers(ctx context.Context, executor, handler string, at map[string]time.Time) error {
	tenant, err := a.store.FindTenantByName(ctx, auth.FirstTenant)
	if err != nil {
		return err
	}
	e, err := a.store.FindExecutorByName(ctx, tenant.ID, executor)
	if err != nil {
		return err
	}
	job, err := a.calls.For(ctx, e, domain.Handler{Name: handler}, calljob.Timer)
	if err != nil {
		return err
	}
	p := store.SetTimersParams{}
	for _, held := range a.guard.Held() {
		p.Held = append(p.Held, held.Partition)
	}
	for key, fireAt := range at {
		p.Timers = append(p.Timers, store.SetTimer{Timer: domain.Timer{
			ID: domain.TimerID(a.ids.Next()), TenantID: tenant.ID, JobID: job.ID, FireAt: fireAt.UTC().Truncate(time.Millisecond), Key: key,
		}})
	}
	var failed error
	for _, r := range a.steps.SetTimers(ctx, p) {
		failed = errors.Join(failed, r.Err)
	}
	a.planner.Nudge()
	return failed
}
