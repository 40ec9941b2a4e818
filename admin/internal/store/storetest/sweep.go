package storetest

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testSweepOffer(t *testing.T, f *fixture) {
	e := f.offer(store.OfferMade, f.run(f.job(serial)))
	require.Empty(t, f.sweep().Dispatch, "the offer may still be answered")
	f.age(e, domain.OfferTTL)
	got := f.sweep()
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Dispatch))
	back := f.find(e)
	require.Equal(t, got.Dispatch[0], back)
	require.Equal(t, domain.Due, back.State)
	require.Equal(t, domain.ReasonOfferExpired, back.Reason)
	require.True(t, back.HoldsSlot)
	require.Empty(t, f.sweep().Dispatch, "held by the one that took it")
	f.start(e)
}

// testSweepOneStep: nobody knows whether a one-step offer arrived until its
// start is told.
func testSweepOneStep(t *testing.T, f *fixture) {
	e, told := f.oneStep(f.run(f.job(nil))), f.oneStep(f.run(f.job(nil)))
	twoSteps := f.start(f.run(f.job(nil)))
	require.Empty(t, f.sweep().Resend)
	f.ok(f.s.RecordStarts(f.ctx, []store.Start{{Tenant: f.tenant, ID: told.ID, Fence: told.Fence, Instance: told.Instance, StartedAt: f.now()}}))
	for _, r := range []domain.Execution{e, told, twoSteps} {
		f.age(r, domain.OfferTTL)
	}
	got := f.sweep()
	require.Len(t, got.Resend, 1)
	again := got.Resend[0]
	require.Equal(t, f.find(e), again.Execution)
	require.Equal(t, e.Fence, again.Execution.Fence, "the same attempt")
	require.Equal(t, "close-day", again.Spec.Handler)
	require.Equal(t, domain.Running, again.Execution.State)
	require.Empty(t, got.Ended)
	require.Empty(t, f.sweep().Resend, "not at every sweep")
	f.age(e, domain.StartResend)
	require.Len(t, f.sweep().Resend, 1)
	f.finish(f.find(e), domain.OutcomeSucceeded)
}

// testSweepOneStepStopped: what may not have arrived when its job was stopped
// is not sent again (P11), neither by the sweep nor by a node that takes the
// partition on; its instance is told to stop, and says whether it had begun.
func testSweepOneStepStopped(t *testing.T, f *fixture) {
	for _, c := range []struct {
		state  domain.JobState
		asked  bool // for by somebody, not by the schedule
		reason domain.Reason
	}{{domain.JobPaused, false, domain.ReasonPaused}, {domain.JobPaused, true, ""}, {domain.JobDeleted, true, domain.ReasonDeleted}} {
		j := f.job(nil)
		var e domain.Execution
		if c.asked {
			e = f.oneStep(f.run(j))
		} else {
			e = f.oneStep(f.fire(j, f.now().Add(-time.Second))[0])
		}
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: c.state})
		f.ok(err)
		require.Equal(t, domain.Running, f.find(e).State, "whatever may have begun goes on")
		listed, err := f.s.ListPlanned(f.ctx, store.ListPlannedParams{
			Partitions: []int{j.Partition}, Horizon: time.Minute, Limit: 1000, OfferedBy: []domain.NodeID{e.Node},
		})
		f.ok(err)
		require.Equal(t, c.reason == "", slices.Contains(identify(listed), e.ID))
		f.age(e, domain.OfferTTL)
		got := f.sweep()
		if c.reason == "" {
			require.Len(t, got.Resend, 1)
			f.finish(f.find(e), domain.OutcomeSucceeded)
			continue
		}
		require.Empty(t, got.Resend)
		require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Cancel))
		require.Equal(t, domain.Cancelling, f.find(e).State)
		require.Equal(t, c.reason, f.find(e).Reason)
		f.finish(f.find(e), domain.OutcomeNeverStarted)
		require.Equal(t, domain.Cancelled, f.find(e).State)
	}
}

// testGrantAgainStopped: a grant is repeated whose first word was lost, after
// its job was stopped.
func testGrantAgainStopped(t *testing.T, f *fixture) {
	for _, c := range []struct {
		state  domain.JobState
		again  bool
		reason domain.Reason
	}{{domain.JobEnabled, true, ""}, {domain.JobPaused, false, domain.ReasonPaused}, {domain.JobDeleted, false, domain.ReasonDeleted}} {
		for _, inventory := range []bool{false, true} {
			j := f.job(nil)
			e := f.start(f.fire(j, f.now().Add(-time.Second))[0])
			_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: c.state})
			f.ok(err)
			var granted bool
			if inventory {
				got, err := SettleInventory(f.ctx, f.s, store.SettleInventoryParams{
					Tenant: f.tenant, Executor: f.executor, Instance: f.instance,
					Items: []domain.Held{{ID: e.ID, Fence: e.Fence, Phase: domain.HeldAccepted}},
				})
				f.ok(err)
				granted = got[0].Verdict == domain.VerdictGrant
				require.Contains(t, []domain.Verdict{domain.VerdictGrant, domain.VerdictKeep}, got[0].Verdict, "it is not dropped: its end is to be told")
			} else {
				got, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: f.instance}})
				f.ok(err)
				granted = got[0].Granted
			}
			require.Equal(t, c.again, granted)
			if c.again {
				require.Equal(t, e, f.find(e))
				f.finish(e, domain.OutcomeSucceeded)
				continue
			}
			require.Equal(t, domain.Cancelling, f.find(e).State)
			require.Equal(t, c.reason, f.find(e).Reason)
			f.finish(f.find(e), domain.OutcomeNeverStarted)
			require.Equal(t, domain.Cancelled, f.find(e).State)
		}
	}
}

func testSweepLost(t *testing.T, f *fixture) {
	dead := f.register("dead", -time.Minute)
	j := f.job(serial)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	offered := f.offerTo(dead.ID, first)[0].Execution
	f.grant(offered)
	f.offer(store.OfferBlocked, second)
	alive := f.start(f.run(f.job(nil)))
	for _, e := range []domain.Execution{first, alive} {
		f.age(e, domain.LeaseTTL+domain.LeaseMargin)
	}
	got := f.sweep()
	require.Equal(t, []domain.ExecutionID{first.ID}, identify(got.Ended))
	require.Equal(t, domain.Lost, f.find(first).State)
	require.Equal(t, domain.ReasonLeaseExpired, f.find(first).Reason)
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Dispatch), "its slot wakes the next")
	require.Equal(t, domain.Running, f.find(alive).State)
	require.True(t, f.find(alive).WakeAt.After(f.now()), "looked at again when the lease ends")
	require.Equal(t, []domain.AlertKind{domain.AlertRunLost}, f.alertKinds(first))
	f.start(second)

	// The same for a job that may be repeated: the first losses cost nothing.
	j = f.job(func(s *domain.JobSpec) { s.OnLost, s.Retry = domain.OnLostRetry, domain.Retry{MaxAttempts: 1} })
	e := f.run(j)
	for n := range domain.FreeLosses + 1 {
		e = f.grant(f.offerTo(dead.ID, e)[0].Execution)
		require.Equal(t, n, e.LostAttempts)
		f.age(e, time.Minute)
		got = f.sweep()
		require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Ended))
		e = f.find(e)
		if n < domain.FreeLosses {
			require.Equal(t, domain.RetryWait, e.State)
			require.Empty(t, f.alertKinds(e))
		}
		f.age(e, 3*time.Second)
	}
	require.Equal(t, domain.Lost, e.State)
	require.Equal(t, domain.FreeLosses+1, e.Attempt)
	require.Equal(t, []domain.AlertKind{domain.AlertRunLost}, f.alertKinds(e))
}

func testSweepRetry(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Hour} })
	e := f.start(f.run(j))
	f.finish(e, domain.OutcomeFailed)
	require.Empty(t, f.sweep().Dispatch)
	f.age(e, time.Hour+domain.PickupGrace)
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(f.sweep().Dispatch))
	require.Equal(t, domain.RetryWait, f.find(e).State)
	f.start(e)
}

func testSweepExpire(t *testing.T, f *fixture) {
	e := f.run(f.job(nil))
	f.attended(e)
	f.age(e, domain.DefaultDispatchTimeout)
	got := f.sweep()
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Ended))
	after := f.find(e)
	require.Equal(t, domain.Missed, after.State)
	require.Equal(t, domain.ReasonNoExecutor, after.Reason)
	require.Empty(t, f.sweep().Ended, "it is never looked at again")
}

func testSweepDeadline(t *testing.T, f *fixture) {
	e := f.start(f.run(f.job(func(s *domain.JobSpec) { s.Timeout = time.Hour })))
	f.age(e, time.Hour+domain.DeadlineGrace)
	got := f.sweep()
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Ended))
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Cancel), "the handler may still be running")
	require.Equal(t, domain.TimedOut, f.find(e).State)
	require.Equal(t, []domain.AlertKind{domain.AlertRunTimedOut}, f.alertKinds(e))
}

func testSweepCancelling(t *testing.T, f *fixture) {
	e := f.start(f.run(f.job(nil)))
	_, err := f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
	f.ok(err)
	f.age(e, domain.CancelResend)
	got := f.sweep()
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(got.Cancel))
	require.Empty(t, got.Ended)
	require.Empty(t, f.sweep().Cancel, "not again at once")
}

// A run that waits for its slot is not called missed, and does not spin.
func testSweepBlocked(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	f.offer(store.OfferBlocked, second)
	f.age(second, time.Hour) // long beyond its deadline for dispatch
	got := f.sweep()
	require.Empty(t, got.Dispatch)
	require.Empty(t, got.Ended)
	require.Equal(t, domain.Due, f.find(second).State)
	require.True(t, f.find(second).WakeAt.After(f.now().Add(20*time.Second)))

	// Its slot is released; patience for an instance begins now.
	f.finish(running, domain.OutcomeSucceeded)
	f.age(second, 5*time.Second)
	got = f.sweep()
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Dispatch))
	require.Equal(t, domain.Due, f.find(second).State)
	f.start(second)
}

func testSweepRace(t *testing.T, f *fixture) {
	dead := f.register("dead", -time.Minute)
	var all []domain.Execution
	j := f.job(nil)
	for range 30 {
		e := f.grant(f.offerTo(dead.ID, f.run(j))[0].Execution)
		f.age(e, time.Minute)
		all = append(all, e)
	}
	var mu sync.Mutex
	ended := map[domain.ExecutionID]int{}
	race(4, func(int) {
		for range 4 {
			got, err := f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 10, Hold: time.Second})
			if err != nil {
				t.Errorf("sweep: %v", err)
				return
			}
			mu.Lock()
			for _, e := range f.mine(got.Ended) {
				ended[e.ID]++
			}
			mu.Unlock()
		}
	})
	for _, e := range f.sweep().Ended {
		ended[e.ID]++
	}
	for _, e := range all {
		require.Equal(t, 1, ended[e.ID], "execution %s", e.ID)
		require.Equal(t, domain.Lost, f.find(e).State)
	}
}

// What belongs to another node is left to it for a while.
func testSweepOverdue(t *testing.T, f *fixture) {
	fresh, waits, overdue := f.run(f.job(nil)), f.run(f.job(nil)), f.run(f.job(nil))
	_, err := f.s.RecordWaits(f.ctx, []store.Wait{{Tenant: f.tenant, ID: waits.ID, Reason: domain.ReasonWaitInstance, For: time.Second}})
	f.ok(err)
	f.age(fresh, domain.PickupGrace)
	f.age(waits, time.Second)
	f.age(overdue, domain.PickupGrace+10*time.Second)
	got, err := f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 1000, Hold: 2 * time.Second, Overdue: 10 * time.Second})
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{overdue.ID}, identify(f.mine(got.Dispatch)))
	require.ElementsMatch(t, []domain.ExecutionID{fresh.ID, waits.ID}, identify(f.sweep().Dispatch))
}

// What waits in a queue of the caller's is left alone, however much of it is
// older than what is to be found.
func testSweepUnattended(t *testing.T, f *fixture) {
	j := f.job(nil)
	for i := range 100 {
		f.age(f.run(j), domain.PickupGrace+time.Minute-time.Duration(i/3)*time.Millisecond)
	}
	lost := map[domain.ExecutionID]bool{}
	for range 3 {
		e := f.run(j)
		f.age(e, domain.PickupGrace)
		lost[e.ID] = true
	}
	sweep := func(limit int) store.Swept {
		got, err := f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: limit, Hold: time.Minute,
			Unattended: func(ids []domain.ExecutionID) []domain.ExecutionID {
				return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool { return !lost[id] })
			}})
		f.ok(err)
		require.LessOrEqual(t, got.Seen, limit)
		return got
	}
	first, second := sweep(2), sweep(50)
	require.Equal(t, 2, first.Seen)
	require.Equal(t, 1, second.Seen, "there is nothing more")
	found := append(identify(first.Dispatch), identify(second.Dispatch)...)
	require.ElementsMatch(t, slices.Collect(maps.Keys(lost)), found)
	require.Len(t, f.sweep().Dispatch, 100)
}

// A run whose result waits in the caller's memory is left alone; one of which
// somebody else has sent a result is not.
func testSweepReported(t *testing.T, f *fixture) {
	j := f.job(nil)
	reported, forged, stolen := f.run(j), f.run(j), f.run(j)
	for _, e := range []domain.Execution{reported, forged, stolen} {
		f.age(e, domain.PickupGrace)
	}
	got, err := f.s.SweepExecutions(f.ctx, store.SweepParams{Partitions: allPartitions, Limit: 1000, Hold: time.Minute,
		Reported: func([]domain.ExecutionID) []store.ReportedRun {
			return []store.ReportedRun{
				{Tenant: f.tenant + 1, Executor: f.executor, ID: forged.ID}, {Tenant: f.tenant, Executor: f.executor + 1, ID: stolen.ID},
				{Tenant: f.tenant + 1, Executor: f.executor, ID: reported.ID}, {Tenant: f.tenant, Executor: f.executor, ID: reported.ID},
			}
		}})
	f.ok(err)
	require.ElementsMatch(t, []domain.ExecutionID{forged.ID, stolen.ID}, identify(f.mine(got.Dispatch)))
	require.Equal(t, []domain.ExecutionID{reported.ID}, identify(f.sweep().Dispatch))
}
