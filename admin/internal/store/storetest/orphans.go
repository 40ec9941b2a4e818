package storetest

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testEndOrphans: after a database with lost commits was accepted, what it calls
// running on an instance is over when the instance does not have it.
func testEndOrphans(t *testing.T, f *fixture) {
	other := f.register("boot-2", time.Minute)
	retry := func(s *domain.JobSpec) { s.OnLost, s.Retry = domain.OnLostRetry, domain.Retry{MaxAttempts: 2} }
	one, two := f.job(serial), f.job(serial)
	lost, waits := f.start(f.run(one)), f.run(one)
	f.offer(store.OfferBlocked, waits)
	lingers, behind := f.start(f.run(two)), f.run(two)
	f.stillRunning(lingers, domain.OutcomeTimedOut)
	f.offer(store.OfferBlocked, behind)
	again := f.start(f.run(f.job(retry)))
	cancelled := f.start(f.run(f.job(nil)))
	_, err := f.s.RequestCancel(f.ctx, f.tenant, cancelled.ID, domain.ReasonKilled, "")
	f.ok(err)
	has, done := f.start(f.run(f.job(nil))), f.start(f.run(f.job(nil)))
	f.finish(done, domain.OutcomeSucceeded)
	offered := f.offer(store.OfferMade, f.run(f.job(nil)))
	elsewhere := f.grant(f.offerTo(other.ID, f.run(f.job(nil)))[0].Execution)

	f.tick()
	accepted := f.now()
	f.tick()
	later := f.start(f.run(f.job(nil)))
	same := map[domain.ExecutionID]domain.Execution{}
	for _, e := range []domain.Execution{has, done, offered, elsewhere, later} {
		same[e.ID] = f.find(e)
	}
	p := store.EndOrphansParams{
		Tenant: f.tenant, Executor: f.executor, Instance: f.instance, Since: accepted.Add(-time.Millisecond), Taken: f.now(),
		Has: []domain.Held{{ID: has.ID, Fence: has.Fence}, {ID: again.ID, Fence: again.Fence + 1}},
	}
	nothing := func(change func(*store.EndOrphansParams)) {
		t.Helper()
		p := p
		if change != nil {
			change(&p)
		}
		got, err := f.s.EndOrphans(f.ctx, p)
		f.ok(err)
		require.Empty(t, got)
	}
	f.ok(f.s.SetClusterValue(f.ctx, domain.HistoryAcceptedValue, ""))
	nothing(nil) // nobody has accepted anything
	f.ok(f.s.SetClusterValue(f.ctx, domain.HistoryAcceptedValue, strconv.FormatInt(accepted.UnixMilli(), 10)))
	nothing(func(p *store.EndOrphansParams) { p.Taken = accepted.Add(-time.Millisecond) })
	nothing(func(p *store.EndOrphansParams) { p.Since = accepted })
	nothing(func(p *store.EndOrphansParams) { p.Tenant = domain.TenantID(ids.Next()) })
	nothing(func(p *store.EndOrphansParams) { p.Executor = domain.ExecutorID(ids.Next()) })
	nothing(func(p *store.EndOrphansParams) { p.Instance = domain.InstanceID(ids.Next()) })

	got, err := f.s.EndOrphans(f.ctx, p)
	f.ok(err)
	sorted := func(list []domain.Execution) []domain.ExecutionID {
		out := identify(list)
		slices.Sort(out)
		return out
	}
	require.Equal(t, []domain.ExecutionID{lost.ID, lingers.ID, again.ID, cancelled.ID}, sorted(got.Ended))
	require.Equal(t, []domain.ExecutionID{waits.ID, behind.ID}, sorted(got.Woken))
	for _, e := range got.Ended {
		require.Equal(t, f.find(e), e)
	}
	for id, e := range same {
		require.Equal(t, e, f.find(domain.Execution{ID: id}))
	}
	now := f.find(lost)
	require.Equal(t, domain.Lost, now.State)
	require.Equal(t, domain.ReasonRollback, now.Reason)
	require.False(t, now.HoldsSlot)
	require.False(t, now.FinishedAt.IsZero())
	require.Zero(t, now.WakeAt)
	require.Equal(t, domain.TimedOut, f.find(lingers).State)
	require.False(t, f.find(lingers).ReturnedAt.IsZero())
	require.Equal(t, domain.RetryWait, f.find(again).State)
	require.Equal(t, domain.Cancelled, f.find(cancelled).State)
	require.Equal(t, []domain.AlertKind{domain.AlertRunLost}, f.alertKinds(lost))

	nothing(nil) // once
	require.Equal(t, 2, f.start(again).Attempt)
	f.start(waits)
	f.start(behind)
	require.Equal(t, store.FinishStored, f.finish(lost, domain.OutcomeSucceeded).Code, "who knows better is believed")
}

// testEndOrphansRace: a result that comes through another node wins, or settles
// what was called lost; the slot is given back once.
func testEndOrphansRace(t *testing.T, f *fixture) {
	j := f.job(serial)
	f.ok(f.s.SetClusterValue(f.ctx, domain.HistoryAcceptedValue, strconv.FormatInt(f.now().Add(time.Hour).UnixMilli(), 10)))
	p := store.EndOrphansParams{
		Tenant: f.tenant, Executor: f.executor, Instance: f.instance, Since: f.now(), Taken: f.now().Add(2 * time.Hour),
	}
	for range 5 {
		e := f.start(f.run(j))
		report := f.report(e, domain.OutcomeSucceeded)
		race(4, func(i int) {
			var err error
			if i == 0 {
				_, err = f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
			} else {
				_, err = f.s.EndOrphans(f.ctx, p)
			}
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
		require.Equal(t, domain.Succeeded, f.find(e).State)
		holders, err := f.s.ListSlotHolders(f.ctx, f.tenant, j.ID)
		f.ok(err)
		require.Empty(t, holders)
	}
	f.start(f.run(j))
	f.ok(f.s.SetClusterValue(f.ctx, domain.HistoryAcceptedValue, ""))
}
