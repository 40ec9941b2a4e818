package storetest

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func selector(t *testing.T, text string) domain.Selector {
	t.Helper()
	s, err := domain.ParseSelector(text)
	require.NoError(t, err)
	return s
}

// refuse gives an offer back as refused.
func (f *fixture) refuse(e domain.Execution) domain.Execution {
	f.t.Helper()
	got, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{
		Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused, Message: "busy", Refused: true,
	}})
	f.ok(err)
	require.Equal(f.t, store.OfferMade, got[0].Status)
	return got[0].Execution
}

// testSendsSpent: the send after the last one that was allowed ends the run,
// and gives the slot to who waits for it.
func testSendsSpent(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		serial(s)
		s.SendRetry = domain.SendRetry{MaxSends: 2}
		s.Retry = domain.Retry{MaxAttempts: 3}
	})
	e, behind := f.run(j), f.runAt(j, f.now().Add(time.Millisecond))
	e = f.refuse(f.offer(store.OfferMade, e))
	require.Equal(t, 1, e.Sends().Failed())
	e = f.refuse(f.oneStep(e))
	require.Equal(t, 2, e.Sends().Failed(), "a one-step offer that was refused was no attempt")
	require.Equal(t, domain.Due, e.State)
	f.tick()
	f.offer(store.OfferBlocked, behind)
	after := f.offer(store.OfferDiscarded, e)
	require.Equal(t, f.find(e), after)
	require.Equal(t, domain.Failed, after.State)
	require.Equal(t, domain.ReasonSendFailed, after.Reason)
	require.Zero(t, after.Attempt)
	require.False(t, after.HoldsSlot)
	require.Equal(t, []domain.AlertKind{domain.AlertRunFailed}, f.alertKinds(e))
	f.offer(store.OfferMade, f.find(behind))
}

// testBusyIsNoFailedSend: a run that is sent to a full instance again and again
// keeps its sends, however many other things keep it too.
func testBusyIsNoFailedSend(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.SendRetry = domain.SendRetry{MaxSends: 2} })
	e := f.run(j)
	for i := range 2 * domain.MaxDelays {
		e = f.offer(store.OfferMade, e)
		got, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{
			Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance, Reason: domain.ReasonOfferRefused,
			Message: "busy: " + strconv.Itoa(i), Refused: true, Busy: true,
		}})
		f.ok(err)
		e = got[0].Execution
		require.Equal(t, f.find(e), e)
		require.Zero(t, e.Sends().Failed())
		require.Equal(t, domain.Due, e.State)
		f.tick()
	}
	require.Len(t, e.Delays, domain.MaxDelays)
	e = f.refuse(f.offer(store.OfferMade, e))
	require.Equal(t, 1, e.Sends().Failed())
	f.tick()
	e = f.refuse(f.offer(store.OfferMade, e))
	require.Equal(t, 2, e.Sends().Failed())
	f.tick()
	require.Equal(t, domain.ReasonSendFailed, f.offer(store.OfferDiscarded, e).Reason)
}

// testSendsSpentSwept: nobody has an instance to send it to.
func testSendsSpentSwept(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.SendRetry = domain.SendRetry{MaxSends: 1, Delay: time.Millisecond} })
	e := f.refuse(f.offer(store.OfferMade, f.run(j)))
	f.age(e, time.Millisecond+domain.PickupGrace)
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(f.sweep().Ended))
	require.Equal(t, domain.Failed, f.find(e).State)
	require.Equal(t, domain.ReasonSendFailed, f.find(e).Reason)
	require.Equal(t, []domain.AlertKind{domain.AlertRunFailed}, f.alertKinds(e))

	e = f.offer(store.OfferMade, f.run(j)) // one that is not answered
	f.age(e, domain.OfferTTL)
	f.sweep()
	require.Equal(t, domain.ReasonSendFailed, f.find(e).Reason)
}

func testRecentInstances(t *testing.T, f *fixture) {
	second := f.register("second", time.Minute).ID
	a, b, never := f.job(nil), f.job(nil), f.job(nil)
	now := f.now()
	runs := map[int]domain.Execution{}
	for i := range 6 {
		runs[i] = f.runAt(a, now.Add(time.Duration(i-6)*time.Second))
	}
	f.runAt(a, now.Add(time.Hour))
	f.offerTo(f.instance, runs[0], runs[1], runs[3])
	f.offerTo(second, runs[2], runs[4])
	f.offerTo(second, f.runAt(b, now))
	recent := func(limit int) map[domain.JobID][]domain.InstanceID {
		got, err := f.s.RecentInstances(f.ctx, store.RecentInstancesParams{
			Jobs: []store.RecentJob{{Tenant: f.tenant, Job: a.ID}, {Tenant: f.tenant, Job: b.ID}, {Tenant: f.tenant, Job: never.ID}}, Until: f.now(), Limit: limit,
		})
		f.ok(err)
		return got
	}
	require.Equal(t, map[domain.JobID][]domain.InstanceID{
		a.ID: {second, f.instance, second, f.instance, f.instance}, b.ID: {second},
	}, recent(100), "newest first; the one that nobody got does not count")
	require.Equal(t, []domain.InstanceID{second, f.instance}, recent(3)[a.ID])

	got, err := f.s.RecentInstances(f.ctx, store.RecentInstancesParams{
		Jobs: []store.RecentJob{{Tenant: f.tenant + 1, Job: a.ID}}, Until: f.now(), Limit: 9,
	})
	f.ok(err)
	require.Empty(t, got, "another tenant's")
	got, err = f.s.RecentInstances(f.ctx, store.RecentInstancesParams{})
	f.ok(err)
	require.Empty(t, got)
}
