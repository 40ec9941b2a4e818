package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/schedule"
)

// scheduleCache is how many compiled schedules a node keeps: some kilobytes each.
const scheduleCache = 32_768

// checkSchedule refuses what cannot be compiled; it is for jobs declared in
// code. The locations are those of the API.
func checkSchedule(s domain.ScheduleSpec) error {
	_, err := timing.Compile(&s, "")
	var wrong *schedule.SpecError
	if !errors.As(err, &wrong) {
		if err != nil {
			return domain.Errorf(domain.CodeInvalid, "%w", err)
		}
		return nil
	}
	out := domain.Errorf(domain.CodeInvalid, "%w", err)
	for _, f := range wrong.Fields {
		out.Fields = append(out.Fields, domain.FieldError{Location: "body.schedule." + timing.FieldName(f.Field), Message: f.Msg, Position: -1})
	}
	return out
}

// nextFire is the first fire of a schedule that was saved now.
func nextFire(domain.JobID) store.NextFireFunc {
	return func(now time.Time, spec *domain.JobSpec) time.Time { return timing.Next(now, spec) }
}

// follower gives jobs the current versions of their calendars.
type follower struct {
	store   store.Calendars
	plan    store.PlanFunc
	changed func()
	log     *slog.Logger
}

// Followers work in bounded steps.
const (
	followLimit   = 200
	followTimeout = 10 * time.Second
	followedBy    = "calendar"
)

// one follows a calendar that was just edited, for as long as its editor
// waits; every does the rest.
func (f *follower) one(ctx context.Context, id domain.CalendarID) {
	ctx, cancel := context.WithTimeout(ctx, followTimeout)
	defer cancel()
	if err := f.follow(ctx, id); err != nil {
		f.log.Warn("jobs of a calendar are behind for now", "calendar_id", id, "err", err)
	}
}

// every brings all jobs up to their calendars that are behind.
func (f *follower) every(ctx context.Context) error { return f.follow(ctx, 0) }

func (f *follower) follow(ctx context.Context, id domain.CalendarID) error {
	for {
		jobs, err := f.store.ListJobsBehind(ctx, id, followLimit)
		if err != nil || len(jobs) == 0 {
			return err
		}
		// One job that cannot follow must not keep the others from it.
		var failed error
		followed := 0
		for _, j := range jobs {
			did, err := f.store.FollowCalendars(ctx, store.FollowCalendarsParams{
				Tenant: j.Tenant, Job: j.ID, By: followedBy, Next: nextFire(j.ID), Plan: f.plan,
			})
			if did {
				followed++
			}
			failed = errors.Join(failed, err)
		}
		if followed > 0 {
			f.log.Info("jobs follow their calendars", "jobs", followed)
			f.changed()
		}
		if failed != nil || followed == 0 || len(jobs) < followLimit {
			return failed
		}
	}
}
