package admin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// What is disabled, an executor or a tenant with all that it has, starts nothing and
// admits no process (docs/adr/0079, 0080). Each node reads the list; its jobs are paused
// and resumed by any node.

const (
	// disabledEvery is how often a node reads what is disabled.
	disabledEvery = 500 * time.Millisecond
	// holdEvery is how often a node looks for jobs to pause or to resume, and holdLimit
	// how many it takes at once.
	holdEvery = time.Second
	holdLimit = 200
)

// disabled knows what is disabled. The zero value knows of nothing.
type disabled struct {
	list atomic.Pointer[store.Disabled] // nil: not read yet
	now  chan struct{}                  // capacity 1; nobody closes it
}

func newDisabled() *disabled { return &disabled{now: make(chan struct{}, 1)} }

// nudge lets watchDisabled look at once.
func (d *disabled) nudge() {
	select {
	case d.now <- struct{}{}:
	default:
	}
}

// has reports whether an executor starts nothing.
func (d *disabled) has(tenant domain.TenantID, executor domain.ExecutorID) bool {
	list := d.list.Load()
	return list != nil && (list.Executors[executor] || list.Tenants[tenant])
}

// notHere is why a tenant is not served here although it is known: it is moving, or has
// moved to another cell; nil: it is here.
func (d *disabled) notHere(tenant domain.TenantID) error {
	if list := d.list.Load(); list != nil {
		if place, ok := list.NotHere[tenant]; ok {
			return place.State.NotHere(&place.Cell)
		}
	}
	return nil
}

// tenants are those that are disabled.
func (d *disabled) tenants() (out []domain.TenantID) {
	if list := d.list.Load(); list != nil {
		for id := range list.Tenants {
			out = append(out, id)
		}
	}
	return out
}

// readDisabled reads the list; while the database does not answer the last one counts.
func (a *Admin) readDisabled(ctx context.Context) error {
	list, err := a.store.ListDisabled(ctx)
	if err == nil {
		a.disabled.list.Store(&list)
	}
	return err
}

// disabledChanged makes what was disabled or enabled count on this node before it
// returns; other nodes hear of it within disabledEvery.
func (a *Admin) disabledChanged(ctx context.Context) {
	_ = a.readDisabled(ctx) // else the watch reads it
	a.disabled.nudge()
}

// beforeDisable resumes the jobs that an enabling has not come to yet. A job that stays
// held from one disabling to the next has no rows for the fire times between.
func (a *Admin) beforeDisable(ctx context.Context) error {
	if err := a.holdJobs(ctx); err != nil {
		return domain.Errorf(domain.CodeUnavailable, "jobs are still being resumed since the last enabling, try again: %w", err)
	}
	return nil
}

// watchDisabled reads what is disabled, and ends idle sessions of it, until ctx ends.
func (a *Admin) watchDisabled(ctx context.Context) {
	tick := time.NewTicker(disabledEvery)
	defer tick.Stop()
	for {
		if err := a.readDisabled(ctx); err != nil && ctx.Err() == nil {
			a.log.Debug("what is disabled could not be read", "component", "admin", "err", err)
		}
		if list := a.disabled.list.Load(); list != nil && len(list.Executors)+len(list.Tenants) > 0 {
			if n := a.gateway.EndIdle(a.disabled.has); n > 0 {
				a.log.Info("sessions of what is disabled ended", "component", "admin", "sessions", n)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-a.disabled.now:
		}
	}
}

// door keeps out whom an administrator has denied, and new processes of what is
// disabled. A process that runs something comes back, to bring what comes of it.
type door struct {
	denials  *auth.Denials
	disabled *disabled
	store    store.Executors
	noFire   bool
}

func (d door) Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error) {
	if d.noFire { // a process would hand over what it owes to the cluster that was copied
		out := make([]error, len(list))
		for i := range out {
			out[i] = domain.Errorf(domain.CodeExecutorDisabled, "this node starts nothing (--no-fire): it serves a copied database")
		}
		return out, nil
	}
	out, err := d.denials.Denied(ctx, list)
	if err != nil {
		return nil, err
	}
	boots := map[domain.ExecutorIdentity][]string{}
	for i, who := range list {
		if gone := d.disabled.notHere(who.Tenant); out[i] == nil && domain.Is(gone, domain.CodeTenantElsewhere) {
			out[i] = gone
		}
		if out[i] == nil && d.disabled.has(who.Tenant, who.Executor) {
			of := domain.ExecutorIdentity{Tenant: who.Tenant, Executor: who.Executor}
			boots[of] = append(boots[of], who.BootID)
		}
	}
	for of, those := range boots {
		busy, err := d.store.ListBusyBoots(ctx, of.Tenant, of.Executor, those)
		if err != nil {
			return nil, err
		}
		for i, who := range list {
			if out[i] == nil && who.Tenant == of.Tenant && who.Executor == of.Executor && !busy[who.BootID] {
				if out[i] = d.disabled.notHere(of.Tenant); out[i] == nil {
					out[i] = domain.Errorf(domain.CodeExecutorDisabled, "an administrator has disabled this executor, or its tenant")
				}
			}
		}
	}
	return out, nil
}

// holdJobs pauses the jobs of what is disabled, and resumes those of what is not any
// more.
func (a *Admin) holdJobs(ctx context.Context) error {
	for ctx.Err() == nil {
		hold, release, err := a.store.ListJobsToHold(ctx, holdLimit)
		if err != nil {
			return err
		}
		for _, j := range hold {
			note := "the executor is disabled"
			if int64(j.Tenant) == j.By {
				note = "the tenant is disabled"
			}
			if j.Note != "" {
				note += ": " + j.Note
			}
			if err := a.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobPaused, Hold: j.By, Note: note}); err != nil {
				return err
			}
		}
		for _, j := range release {
			err := a.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobEnabled, Release: j.By})
			if domain.Is(err, domain.CodeQuotaExceeded) { // somebody has used what it had: it stays paused, and says why
				err = a.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobPaused, Note: "not resumed: " + err.Error()})
			}
			if err != nil {
				return err
			}
		}
		if len(hold)+len(release) > 0 {
			a.log.Info("jobs follow what was disabled or enabled", "component", "admin", "paused", len(hold), "resumed", len(release))
			a.planner.Nudge()
		}
		if len(hold) < holdLimit && len(release) < holdLimit {
			return nil
		}
	}
	return ctx.Err()
}

func (a *Admin) setHeld(ctx context.Context, p store.SetJobStateParams) error {
	p.By, p.Next, p.Plan = "carillon", timing.Next, a.planner.PlanTrigger
	_, err := a.store.SetJobState(ctx, p)
	if domain.Is(err, domain.CodeNotFound) { // it was deleted meanwhile
		return nil
	}
	return err
}
