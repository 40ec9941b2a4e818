package disabled

import (
	"context"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// readEvery is how often a node reads the list.
	readEvery = 500 * time.Millisecond
	// HoldEvery is how often a node looks for jobs to pause or to resume, and holdLimit
	// how many it takes at once.
	HoldEvery = time.Second
	holdLimit = 200
)

// Options configures a Follower.
type Options struct {
	List  *List
	Store interface {
		ListJobsToHold(ctx context.Context, limit int) (hold, release []store.HeldJob, err error)
		SetJobState(ctx context.Context, p store.SetJobStateParams) (store.JobView, error)
	}
	// EndIdle ends idle sessions of what is disabled, and returns how many.
	EndIdle func(disabled func(domain.TenantID, domain.ExecutorID) bool) int
	Next    store.NextFireFunc // as of store.SetJobStateParams
	Plan    store.PlanFunc
	// Changed tells the planner that jobs were paused or resumed.
	Changed func()
	Logger  *slog.Logger
}

// Follower lets sessions and jobs follow the list.
type Follower struct {
	opt Options
	now chan struct{} // capacity 1; it is never closed
}

// NewFollower returns a Follower; it starts nothing.
func NewFollower(o Options) *Follower {
	o.Logger = o.Logger.With("component", "disabled")
	return &Follower{o, make(chan struct{}, 1)}
}

// Changed makes what was disabled or enabled count on this node before it returns. Other
// nodes hear of it within readEvery.
func (f *Follower) Changed(ctx context.Context) {
	_ = f.opt.List.Read(ctx) // else Run reads it
	select {
	case f.now <- struct{}{}:
	default:
	}
}

// BeforeDisable resumes the jobs that an enabling has not come to yet. A job that stays
// held from one disabling to the next has no rows for the fire times between.
func (f *Follower) BeforeDisable(ctx context.Context) error {
	if err := f.HoldJobs(ctx); err != nil {
		return domain.Errorf(domain.CodeUnavailable, "jobs are still being resumed since the last enabling, try again: %w", err)
	}
	return nil
}

// Run reads the list, and ends idle sessions of what is disabled, until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		if err := f.opt.List.Read(ctx); err != nil && ctx.Err() == nil {
			f.opt.Logger.Debug("what is disabled could not be read", "err", err)
		}
		if !f.opt.List.empty() {
			if n := f.opt.EndIdle(f.opt.List.Has); n > 0 {
				f.opt.Logger.Info("sessions of what is disabled ended", "sessions", n)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-f.now:
		}
	}
}

// HoldJobs pauses the jobs of disabled executors and tenants. It resumes these jobs when
// their executor or tenant is enabled again.
func (f *Follower) HoldJobs(ctx context.Context) error {
	for ctx.Err() == nil {
		hold, release, err := f.opt.Store.ListJobsToHold(ctx, holdLimit)
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
			if err := f.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobPaused, Hold: j.By, Note: note}); err != nil {
				return err
			}
		}
		for _, j := range release {
			err := f.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobEnabled, Release: j.By})
			if domain.Is(err, domain.CodeQuotaExceeded) { // its quota is used by other jobs: it stays paused with this reason
				err = f.setHeld(ctx, store.SetJobStateParams{Tenant: j.Tenant, ID: j.ID, State: domain.JobPaused, Note: "not resumed: " + err.Error()})
			}
			if err != nil {
				return err
			}
		}
		if len(hold)+len(release) > 0 {
			f.opt.Logger.Info("jobs follow what was disabled or enabled", "paused", len(hold), "resumed", len(release))
			f.opt.Changed()
		}
		if len(hold) < holdLimit && len(release) < holdLimit {
			return nil
		}
	}
	return ctx.Err()
}

func (f *Follower) setHeld(ctx context.Context, p store.SetJobStateParams) error {
	p.By, p.Next, p.Plan = "carillon", f.opt.Next, f.opt.Plan
	_, err := f.opt.Store.SetJobState(ctx, p)
	if domain.Is(err, domain.CodeNotFound) { // it was deleted meanwhile
		return nil
	}
	return err
}
