package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/noun"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// missedTold are the AlertRunMissed that are told now.
func (f *alertFixture) missedTold() (out []notify.AlertContext) {
	f.t.Helper()
	for _, c := range f.expand(func(notify.AlertContext) []noun.Delivery {
		return []noun.Delivery{{Channel: "email", Target: "x"}}
	}) {
		require.Equal(f.t, domain.AlertRunMissed, c.Event.Kind)
		out = append(out, c)
	}
	return out
}

func testMissedAlerts(t *testing.T, f *alertFixture) {
	base := f.now().Truncate(time.Second).Add(-time.Hour)
	j := f.jobFiring(base, nil)
	// An outage has more fire times than one claim takes.
	at, last := base, domain.Execution{}
	for range 3 {
		f.claim(func(now time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
			if tr.JobID != j.ID {
				return store.TriggerPlan{NextFireAt: domain.Never}
			}
			var es []domain.Execution
			for range 32 {
				e := planned(&j.Job, at, now)
				e.State, e.Reason, e.WakeAt, e.FinishedAt = domain.Missed, domain.ReasonMisfire, time.Time{}, now
				if len(es)%2 == 0 {
					e.Reason = domain.ReasonCoalesced
				}
				es, at, last = append(es, e), at.Add(time.Second), e
			}
			return store.TriggerPlan{Executions: es, NextFireAt: at, LastFireAt: last.FireAt}
		})
	}
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, -time.Hour))
	require.Empty(t, f.missedTold(), "they gather first")
	lag, err := f.s.OutboxLag(f.ctx)
	f.ok(err)
	require.Zero(t, lag, "what gathers is not late")
	_, wait, err := f.s.TellIncidents(f.ctx, 100, func(time.Time, []*notify.DueIncident) {})
	f.ok(err)
	require.Positive(t, wait, "and is not forgotten")
	require.LessOrEqual(t, wait, time.Hour+domain.MissedGather)

	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, time.Hour+domain.MissedGather))
	told := f.missedTold()
	require.Len(t, told, 1, "one for all of them")
	require.Equal(t, 96, told[0].Event.Missed)
	require.Equal(t, j.ID, told[0].Job.ID)
	require.Equal(t, last.ID, told[0].Event.ExecutionID, "the last one is shown")
	deliveries := f.claimDeliveries(time.Minute)
	require.Len(t, deliveries, 1)
	require.Equal(t, 96, deliveries[0].Context.Event.Missed)
	require.Equal(t, last.ID, deliveries[0].Context.Execution.ID)

	// What follows soon is told later.
	first, second := f.run(j), f.run(j)
	for _, e := range []domain.Execution{first, second} {
		f.age(e, domain.DefaultDispatchTimeout)
		require.Len(t, f.sweep().Ended, 1)
	}
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, domain.MissedGather))
	require.Empty(t, f.missedTold())
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, domain.MissedRepeat))
	told = f.missedTold()
	require.Len(t, told, 1)
	require.Equal(t, 2, told[0].Event.Missed)
	require.NotEqual(t, deliveries[0].Context.Event.DedupeKey, told[0].Event.DedupeKey, "another telling")

	// Then all is well: nothing is told, and the next one is told soon.
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, domain.MissedRepeat))
	require.Empty(t, f.missedTold())
	e := f.run(j)
	f.age(e, domain.DefaultDispatchTimeout)
	require.Len(t, f.sweep().Ended, 1)
	require.Empty(t, f.missedTold(), "they gather")
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, domain.MissedGather))
	told = f.missedTold()
	require.Len(t, told, 1)
	require.Equal(t, 1, told[0].Event.Missed)
	require.Equal(t, e.ID, told[0].Event.ExecutionID)
}

// testMissedWithoutAnInstance: the batch of events has the reason of missed runs, and the
// executors that have no instance, or only silent ones.
func testMissedWithoutAnInstance(t *testing.T, f *alertFixture) {
	j := f.job(nil)
	last := f.instance
	for _, state := range []string{"online", "silent", "gone"} {
		online := state == "online"
		if !online {
			f.ok(LeaveInstance(f.ctx, f.s, f.tenant, last, "stopped"))
		}
		if state == "silent" {
			silent, err := RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{TTL: domain.SilentAfter,
				Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: state}})
			f.ok(err)
			f.ok(f.s.AgeInstance(f.ctx, silent.ID, domain.SilentAfter+time.Second))
			last = silent.ID
		}
		e := f.run(j)
		f.attended(e)
		f.age(e, domain.DefaultDispatchTimeout)
		require.Len(t, f.sweep().Ended, 1)
		require.Empty(t, f.missedTold(), "they gather")
		f.ok(f.s.AgeAlerts(f.ctx, f.tenant, 2*domain.MissedRepeat))
		seen := 0
		_, err := f.s.ExpandAlertEvents(f.ctx, 1000, func(b *notify.AlertBatch) {
			for i := range b.Events {
				if b.Events[i].Event.JobID != j.ID {
					continue
				}
				seen++
				require.Equal(t, domain.ReasonNoExecutor, b.Events[i].Event.Reason)
				require.Equal(t, !online, b.Offline[f.executor], state)
			}
		})
		f.ok(err)
		require.Equal(t, 1, seen)
	}
}

// testMissedByPause: who stops his job is not told that it does not run.
func testMissedByPause(t *testing.T, f *alertFixture) {
	j := f.jobFiring(f.now(), nil)
	e := f.fire(j, f.now())[0]
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
	f.ok(err)
	require.Equal(t, domain.Cancelled, f.find(e).State)
	require.Empty(t, f.missedTold())
	f.ok(f.s.AgeAlerts(f.ctx, f.tenant, 2*domain.MissedRepeat))
	require.Empty(t, f.missedTold())
}
