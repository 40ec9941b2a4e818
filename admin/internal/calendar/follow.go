// Package calendar answers: which jobs are behind their calendars?
//
// A job names calendars, and its trigger is planned with one version of each. After an edit of
// a calendar a Follower gives its jobs the new version. The editor waits for Edited, and Sweep
// does the rest.
package calendar

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Store is what this room asks of the store.
type Store interface {
	ListJobsBehind(ctx context.Context, calendar domain.CalendarID, limit int) ([]store.JobRef, error)
	FollowCalendars(ctx context.Context, p store.FollowCalendarsParams) (bool, error)
}

// Follower gives jobs the current versions of their calendars.
type Follower struct {
	Store Store
	Plan  store.PlanFunc
	// Changed is called after jobs have followed. It must not block.
	Changed func()
	Log     *slog.Logger
}

// SweepEvery is the time between two calls of Sweep.
const SweepEvery = 2 * time.Second

// Followers work in bounded steps.
const (
	followLimit   = 200
	followTimeout = 10 * time.Second
)

// Edited follows a calendar that was just edited, for as long as its editor waits. Sweep does
// the rest.
func (f *Follower) Edited(ctx context.Context, id domain.CalendarID) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	if err := f.follow(ctx, id); err != nil {
		f.Log.Warn("jobs of a calendar are behind for now", "calendar_id", id, "err", err)
	}
}

// Sweep brings all jobs up to their calendars that are behind.
func (f *Follower) Sweep(ctx context.Context) error { return f.follow(ctx, 0) }

func (f *Follower) follow(ctx context.Context, id domain.CalendarID) error {
	for {
		jobs, err := f.Store.ListJobsBehind(ctx, id, followLimit)
		if err != nil || len(jobs) == 0 {
			return err
		}
		// One job that cannot follow must not keep the others from it.
		var failed error
		followed := 0
		for _, j := range jobs {
			did, err := f.Store.FollowCalendars(ctx, store.FollowCalendarsParams{
				Tenant: j.Tenant, Job: j.ID, Next: timing.Next, Plan: f.Plan,
			})
			if did {
				followed++
			}
			failed = errors.Join(failed, err)
		}
		if followed > 0 {
			f.Log.Info("jobs follow their calendars", "jobs", followed)
			f.Changed()
		}
		if failed != nil || followed == 0 || len(jobs) < followLimit {
			return failed
		}
	}
}
