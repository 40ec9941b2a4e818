package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// delayed makes a job with a fixed delay of an hour.
func (f *fixture) delayed(change func(*domain.JobSpec)) store.JobView {
	f.t.Helper()
	return f.job(func(s *domain.JobSpec) {
		s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleFixedDelay, Every: time.Hour}
		s.Blocking = domain.BlockSerial
		if change != nil {
			change(s)
		}
	})
}

// fireDelayed plans one run, as a planner does for a fixed delay.
func (f *fixture) fireDelayed(j store.JobView) domain.Execution {
	f.t.Helper()
	now := f.now()
	f.setNext(j, now.Add(-time.Second))
	got := f.claim(func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		if t.JobID != j.ID {
			return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Hour), LastFireAt: t.LastFireAt}
		}
		e := planned(&j.Job, now, now)
		e.Revision = t.Revision
		return store.TriggerPlan{Executions: []domain.Execution{e}, NextFireAt: domain.Never, LastFireAt: now, Awaits: e.ID}
	})
	require.Len(f.t, got, 1)
	return got[0]
}

func (f *fixture) view(j store.JobView) store.JobView {
	f.t.Helper()
	v, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	return v
}

// armed requires that the job fires an hour after an instant from low to now.
func (f *fixture) armed(j store.JobView, low time.Time) {
	f.t.Helper()
	v := f.view(j)
	require.Zero(f.t, v.AwaitsRun)
	ended := v.NextFireAt.Add(-v.Spec.Schedule.Every)
	require.False(f.t, ended.Before(low), "next %s is less than the delay after %s", v.NextFireAt, low)
	require.False(f.t, ended.After(f.now()), "next %s is later than the delay from now", v.NextFireAt)
}

func (f *fixture) waits(j store.JobView, e domain.Execution) {
	f.t.Helper()
	v := f.view(j)
	require.Equal(f.t, e.ID, v.AwaitsRun)
	require.Equal(f.t, domain.Never, v.NextFireAt)
}

// A fixed delay counts from the end of the run, retries included, and only
// once: a result that comes late changes nothing.
func testDelayWaits(t *testing.T, f *fixture) {
	j := f.delayed(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2} })
	e := f.fireDelayed(j)
	f.waits(j, e)
	running := f.start(e)
	f.waits(j, e)
	f.finish(running, domain.OutcomeFailed)
	f.waits(j, e)
	again := f.start(f.find(e))
	low := f.now()
	f.finish(again, domain.OutcomeSucceeded)
	f.armed(j, low)

	before := f.view(j).NextFireAt
	f.tick()
	require.Equal(t, store.FinishDuplicate, f.finish(again, domain.OutcomeSucceeded).Code)
	require.Equal(t, before, f.view(j).NextFireAt)

	manual := f.start(f.run(j))
	f.finish(manual, domain.OutcomeSucceeded)
	require.Equal(t, before, f.view(j).NextFireAt, "runs that somebody asked for do not count")
}

// Whatever ends the run sets the trigger.
func testDelayEnds(t *testing.T, f *fixture) {
	t.Run("lost, and reported late", func(*testing.T) {
		j := f.delayed(nil)
		dead := f.register("dead", -time.Minute)
		e := f.grant(f.offerTo(dead.ID, f.fireDelayed(j))[0].Execution)
		f.age(e, domain.LeaseTTL+domain.LeaseMargin)
		low := f.now()
		f.sweep()
		require.Equal(t, domain.Lost, f.find(e).State)
		f.armed(j, low)
		before := f.view(j).NextFireAt
		f.tick()
		require.Equal(t, store.FinishStored, f.finish(e, domain.OutcomeSucceeded).Code)
		require.Equal(t, before, f.view(j).NextFireAt)
	})
	t.Run("missed", func(*testing.T) {
		j := f.delayed(nil)
		e := f.fireDelayed(j)
		f.attended(e)
		f.age(e, time.Hour)
		low := f.now()
		f.sweep()
		require.Equal(t, domain.Missed, f.find(e).State)
		f.armed(j, low)
	})
	t.Run("discarded", func(*testing.T) {
		j := f.delayed(func(s *domain.JobSpec) { s.Blocking = domain.BlockDiscard })
		f.start(f.run(j))
		e := f.fireDelayed(j)
		low := f.now()
		f.offer(store.OfferDiscarded, e)
		f.armed(j, low)
	})
	t.Run("cancelled", func(*testing.T) {
		j := f.delayed(nil)
		e := f.fireDelayed(j)
		low := f.now()
		_, err := f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
		f.ok(err)
		f.armed(j, low)
	})
}

// Edits, pauses and resumes neither forget a run that goes on nor wait for one
// that is gone.
func testDelayEdits(t *testing.T, f *fixture) {
	edit := func(j store.JobView, change func(*domain.JobSpec)) {
		spec := f.view(j).Spec
		change(&spec)
		_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, Next: NextFire})
		f.ok(err)
	}
	pause := func(j store.JobView, state domain.JobState) {
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: state, Next: NextFire})
		f.ok(err)
	}
	t.Run("an edit while it runs", func(*testing.T) {
		j := f.delayed(nil)
		e := f.start(f.fireDelayed(j))
		edit(j, func(s *domain.JobSpec) { s.Schedule.Every = 2 * time.Hour })
		f.waits(j, e)
		low := f.now()
		f.finish(e, domain.OutcomeSucceeded)
		f.armed(j, low) // by the new revision's delay
	})
	t.Run("an edit to another kind", func(*testing.T) {
		j := f.delayed(nil)
		e := f.start(f.fireDelayed(j))
		edit(j, func(s *domain.JobSpec) { s.Schedule.Kind = domain.ScheduleFixedRate })
		next := f.view(j).NextFireAt
		require.Less(t, next, domain.Never)
		f.tick()
		f.finish(e, domain.OutcomeSucceeded)
		require.Equal(t, next, f.view(j).NextFireAt)
	})
	t.Run("a run planned ahead is taken back", func(*testing.T) {
		j := f.delayed(nil)
		f.setNext(j, f.now().Add(time.Second))
		got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{
			Partitions: f.held[j.Partition : j.Partition+1], Limit: 1000, Horizon: 3 * time.Second,
			Plan: func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
				if t.JobID != j.ID {
					return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Hour), LastFireAt: t.LastFireAt}
				}
				e := planned(&j.Job, now.Add(time.Hour), now)
				e.Revision = t.Revision
				return store.TriggerPlan{Executions: []domain.Execution{e}, NextFireAt: domain.Never, LastFireAt: now, Awaits: e.ID}
			},
		})
		f.ok(err)
		e := f.mine(got.Executions)[0]
		f.waits(j, e)
		low := f.now()
		edit(j, func(s *domain.JobSpec) { s.Description = "other" })
		_, err = f.s.FindExecution(f.ctx, f.tenant, e.ID)
		f.code(domain.CodeNotFound, err)
		f.armed(j, low)
	})
	t.Run("the run ends while the job is paused", func(*testing.T) {
		j := f.delayed(nil)
		e := f.start(f.fireDelayed(j))
		pause(j, domain.JobPaused)
		f.finish(e, domain.OutcomeSucceeded)
		require.Equal(t, domain.Never, f.view(j).NextFireAt)
		low := f.now()
		pause(j, domain.JobEnabled)
		f.armed(j, low)
	})
	t.Run("the run goes on over pause and resume", func(*testing.T) {
		j := f.delayed(nil)
		e := f.start(f.fireDelayed(j))
		pause(j, domain.JobPaused)
		pause(j, domain.JobEnabled)
		f.waits(j, e)
		low := f.now()
		f.finish(e, domain.OutcomeSucceeded)
		f.armed(j, low)
	})
	t.Run("a pause ends the waiting run", func(*testing.T) {
		j := f.delayed(nil)
		f.fireDelayed(j)
		pause(j, domain.JobPaused)
		require.Equal(t, domain.Never, f.view(j).NextFireAt)
		low := f.now()
		pause(j, domain.JobEnabled)
		f.armed(j, low)
	})
}

// The net finds a trigger whose run is gone, and leaves all others alone.
func testDelayNet(t *testing.T, f *fixture) {
	living := f.delayed(nil)
	e := f.start(f.fireDelayed(living))
	stuck := f.delayed(nil)
	f.setNext(stuck, f.now().Add(-time.Second))
	f.claim(func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
		p := store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: now}
		if t.JobID == stuck.ID {
			p.Awaits = domain.ExecutionID(ids.Next()) // one that never was
		}
		return p
	})
	low := f.now()
	n, err := f.s.RearmDelays(f.ctx, 100)
	f.ok(err)
	require.GreaterOrEqual(t, n, 1)
	f.armed(stuck, low)
	f.waits(living, e)
}

// A fire time that has a row already, as happens when the database's clock was
// set back, is not waited for: the run that was to be awaited does not exist.
func testDelayTaken(t *testing.T, f *fixture) {
	j := f.delayed(nil)
	for _, ahead := range []time.Duration{-time.Minute, time.Minute} {
		fireAt := f.now().Add(ahead).Truncate(time.Millisecond)
		fire := func() []domain.Execution {
			f.setNext(j, f.now().Add(-time.Second))
			return f.claim(func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
				if t.JobID != j.ID {
					return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Hour), LastFireAt: t.LastFireAt}
				}
				e := planned(&j.Job, fireAt, now)
				return store.TriggerPlan{Executions: []domain.Execution{e}, NextFireAt: domain.Never, LastFireAt: now, Awaits: e.ID}
			})
		}
		first := fire()
		require.Len(t, first, 1)
		f.waits(j, first[0])
		_, err := f.s.RequestCancel(f.ctx, f.tenant, first[0].ID, domain.ReasonKilled, "")
		f.ok(err)

		low := f.now()
		require.Empty(t, fire())
		if ahead < 0 {
			f.armed(j, low)
			continue
		}
		v := f.view(j)
		require.Zero(t, v.AwaitsRun)
		require.Equal(t, NextFire(fireAt, &v.Spec), v.NextFireAt, "it moves on")
	}
}

// Two nodes report, sweep and edit at once: the trigger is set, and once.
func testDelayRace(t *testing.T, f *fixture) {
	for range 10 {
		j := f.delayed(nil)
		e := f.start(f.fireDelayed(j))
		low := f.now()
		race(6, func(i int) {
			switch i {
			case 0, 1:
				_, _ = f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(e, domain.OutcomeSucceeded)})
			case 2:
				_, _ = f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
			case 3:
				_, _ = f.s.RearmDelays(f.ctx, 100)
			default:
				spec := j.Spec
				spec.Priority = i
				_, _ = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, Next: NextFire})
			}
		})
		if s := f.find(e).State; !s.Terminal() {
			f.finish(e, domain.OutcomeSucceeded)
		}
		f.armed(j, low)
	}
}
