package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) tenantLimit() domain.LimitKey { return domain.LimitKey{Tenant: f.tenant} }
func (f *fixture) executorLimit() domain.LimitKey {
	return domain.LimitKey{Tenant: f.tenant, Executor: f.executor}
}

func (f *fixture) limit(k domain.LimitKey, limit int) {
	f.t.Helper()
	f.ok(f.s.SetLimit(f.ctx, domain.Limit{LimitKey: k, Max: limit}))
}

// admit asks who may go on under some limits, and keeps this tenant's.
func (f *fixture) admit(keys ...domain.LimitKey) []domain.Execution {
	f.t.Helper()
	woken, err := f.s.AdmitWaiting(f.ctx, keys)
	f.ok(err)
	return f.mine(woken)
}

// counts reads running and waiting under a limit.
func (f *fixture) counts(k domain.LimitKey) [2]int {
	f.t.Helper()
	list, err := f.s.ListLimits(f.ctx, f.tenant)
	f.ok(err)
	for _, v := range list {
		if v.LimitKey == k {
			return [2]int{v.Running, v.Waiting}
		}
	}
	f.t.Fatalf("no limit %v in %v", k, list)
	return [2]int{}
}

func testLimit(t *testing.T, f *fixture) {
	j := f.job(nil)
	for _, k := range []domain.LimitKey{f.executorLimit(), f.tenantLimit()} {
		f.limit(k, 2)
		runs := f.seconds(j, 5)
		got := f.offerTo(f.instance, runs...)
		for i, want := range []store.OfferStatus{store.OfferMade, store.OfferMade, store.OfferBlocked, store.OfferBlocked, store.OfferBlocked} {
			require.Equal(t, want, got[i].Status, "run %d", i)
		}
		require.Equal(t, []domain.LimitKey{k}, f.s.LimitsOn(f.tenant, f.executor))
		waits := f.find(runs[2])
		require.Equal(t, domain.Due, waits.State)
		require.Equal(t, domain.ReasonWaitLimit, waits.Reason)
		require.Contains(t, waits.Message, "2 runs at once")
		require.Equal(t, [2]int{2, 3}, f.counts(k))
		require.Empty(t, f.admit(k), "there is no room")
		f.offer(store.OfferBlocked, runs[2]) // idempotent

		// Offered, running and cancelling count, what ended does not.
		first := f.grant(got[0].Execution)
		_, err := f.s.RequestCancel(f.ctx, f.tenant, first.ID, domain.ReasonKilled, "")
		f.ok(err)
		require.Empty(t, f.admit(k))
		f.finish(first, domain.OutcomeCancelled)
		require.Equal(t, [2]int{1, 3}, f.counts(k))
		require.Equal(t, []domain.ExecutionID{runs[2].ID}, identify(f.admit(k)))
		woken := f.find(runs[2])
		require.Empty(t, woken.Reason)
		require.True(t, woken.WakeAt.Before(f.now().Add(5*time.Second)), "any node takes it soon")
		require.Empty(t, f.admit(k), "its place is kept")
		f.offer(store.OfferBlocked, runs[4]) // and nobody overtakes it
		second := f.offer(store.OfferMade, runs[2])

		// An offer that came back makes room; its run asks again like others.
		_, err = f.s.GiveBackOffers(f.ctx, []store.GiveBack{{Tenant: f.tenant, ID: second.ID, Fence: second.Fence, Instance: second.Instance, Reason: domain.ReasonOfferRefused}})
		f.ok(err)
		require.Equal(t, []domain.ExecutionID{runs[3].ID}, identify(f.admit(k)))
		third := f.start(runs[3])
		f.offer(store.OfferBlocked, runs[2])
		f.finish(f.grant(got[1].Execution), domain.OutcomeSucceeded)
		f.finish(third, domain.OutcomeSucceeded)
		require.ElementsMatch(t, []domain.ExecutionID{runs[2].ID, runs[4].ID}, identify(f.admit(k)))
		f.finish(f.start(runs[2]), domain.OutcomeSucceeded)
		f.finish(f.start(runs[4]), domain.OutcomeSucceeded)
		require.Equal(t, [2]int{0, 0}, f.counts(k))
		f.limit(k, 0)
	}
	list, err := f.s.ListLimits(f.ctx, f.tenant)
	f.ok(err)
	require.Empty(t, list)
	f.code(domain.CodeNotFound, f.s.SetLimit(f.ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: f.tenant, Executor: domain.ExecutorID(ids.Next())}, Max: 1}))
	f.code(domain.CodeNotFound, f.s.SetLimit(f.ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: domain.TenantID(ids.Next())}, Max: 1}))
	f.code(domain.CodeInvalid, f.s.SetLimit(f.ctx, domain.Limit{LimitKey: f.tenantLimit(), Max: -1}))
	f.code(domain.CodeInvalid, f.s.SetLimit(f.ctx, domain.Limit{LimitKey: f.tenantLimit(), Max: domain.MaxLimit + 1}))
}

// A run under two limits waits under the first that is full, and is in nobody's
// way under the other one.
func testLimitBoth(t *testing.T, f *fixture) {
	other := domain.ExecutorID(ids.Next())
	f.ok(f.s.CreateExecutor(f.ctx, domain.Executor{ID: other, TenantID: f.tenant, Name: "other"}))
	j := f.job(nil)
	elsewhere, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: other, State: domain.JobEnabled,
		Spec: domain.JobSpec{Name: "elsewhere " + j.Spec.Name, Handler: "h", Blocking: domain.BlockParallel},
	}, at(domain.Never))
	f.ok(err)
	f.limit(f.executorLimit(), 1)
	f.limit(f.tenantLimit(), 2)
	mine, theirs := f.seconds(j, 3), f.seconds(elsewhere, 2)
	running := f.start(mine[0])
	f.offer(store.OfferBlocked, mine[1])
	require.Equal(t, [2]int{1, 1}, f.counts(f.executorLimit()))
	require.Equal(t, [2]int{1, 0}, f.counts(f.tenantLimit()), "it waits under its executor's limit alone")
	other1 := f.start(theirs[0]) // later than mine[1], but mine[1] could not use the room
	f.offer(store.OfferBlocked, theirs[1])
	require.Equal(t, [2]int{2, 1}, f.counts(f.tenantLimit()))

	f.finish(running, domain.OutcomeSucceeded)
	require.ElementsMatch(t, []domain.ExecutionID{mine[1].ID, theirs[1].ID}, identify(f.admit(f.executorLimit(), f.tenantLimit())),
		"each has room under the limit it waits for")
	f.offer(store.OfferMade, theirs[1]) // quicker
	f.offer(store.OfferBlocked, mine[1])
	require.Equal(t, [2]int{2, 1}, f.counts(f.tenantLimit()), "now it waits for the tenant's")
	require.Equal(t, [2]int{0, 0}, f.counts(f.executorLimit()))
	f.offer(store.OfferBlocked, mine[2])
	report := f.report(other1, domain.OutcomeSucceeded)
	report.Executor = other
	_, err = f.s.FinishAttempts(f.ctx, []store.AttemptReport{report})
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{mine[1].ID}, identify(f.admit(f.executorLimit(), f.tenantLimit())))
	f.start(mine[1])
}

func testLimitPrecedence(t *testing.T, f *fixture) {
	plain, urgent := f.job(nil), f.job(func(s *domain.JobSpec) { s.Priority = 30 })
	f.limit(f.tenantLimit(), 1)
	now := f.now().Truncate(time.Millisecond)
	running := f.start(f.runAt(plain, now.Add(-time.Hour)))
	old, fresh := f.runAt(plain, now.Add(-31*time.Second)), f.runAt(plain, now.Add(-29*time.Second))
	quick := f.runAt(urgent, now)
	require.Equal(t, 30, quick.Priority)
	want := []domain.Execution{old, quick, fresh}
	for _, e := range []domain.Execution{fresh, quick, old} {
		f.offer(store.OfferBlocked, e)
	}
	for _, e := range want {
		f.finish(running, domain.OutcomeSucceeded)
		require.Equal(t, []domain.ExecutionID{e.ID}, identify(f.admit(f.tenantLimit())))
		running = f.start(e)
	}
	f.finish(running, domain.OutcomeSucceeded)

	// In one batch too: the first in precedence gets what room there is.
	got := f.offerTo(f.instance, f.runAt(plain, now), f.runAt(urgent, now))
	require.Equal(t, store.OfferBlocked, got[0].Status)
	require.Equal(t, store.OfferMade, got[1].Status)
}

// Runs of a serial job keep their order while they wait for room.
func testLimitSlot(t *testing.T, f *fixture) {
	j, busy := f.job(serial), f.job(nil)
	f.limit(f.tenantLimit(), 1)
	running := f.start(f.run(busy))
	runs := f.seconds(j, 3)
	f.offer(store.OfferBlocked, runs[0])
	require.Equal(t, domain.ReasonWaitLimit, f.find(runs[0]).Reason)
	require.False(t, f.find(runs[0]).HoldsSlot)
	f.offer(store.OfferBlocked, runs[1])
	require.Equal(t, domain.ReasonWaitSlot, f.find(runs[1]).Reason, "it waits for its turn")
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[0].ID}, identify(f.admit(f.tenantLimit())))
	first := f.start(runs[0])
	done := f.finish(first, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(done.Woken))
	second := f.start(runs[1])

	// A slot that becomes free does not wake who waits for room.
	f.offer(store.OfferBlocked, runs[2])
	full := f.run(busy)
	f.offer(store.OfferBlocked, full)
	f.finish(second, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{full.ID}, identify(f.admit(f.tenantLimit())))
	running = f.start(full)
	f.offer(store.OfferBlocked, runs[2])
	require.Equal(t, domain.ReasonWaitLimit, f.find(runs[2]).Reason)
	fourth := f.run(j)
	f.offer(store.OfferBlocked, fourth)
	_, err := f.s.RequestCancel(f.ctx, f.tenant, fourth.ID, domain.ReasonKilled, "")
	f.ok(err)
	require.Equal(t, domain.ReasonWaitLimit, f.find(runs[2]).Reason)
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[2].ID}, identify(f.admit(f.tenantLimit())))
	f.start(runs[2])
}

// What was on instances before counts, also what a node starts that has not
// heard of the limit.
func testLimitAdopts(t *testing.T, f *fixture) {
	j := f.job(nil)
	before := f.start(f.run(j))
	ended := f.start(f.run(j))
	f.finish(ended, domain.OutcomeSucceeded)
	f.limit(f.executorLimit(), 2)
	f.limit(f.tenantLimit(), 2)
	require.Equal(t, [2]int{1, 0}, f.counts(f.executorLimit()))
	require.Equal(t, [2]int{1, 0}, f.counts(f.tenantLimit()))
	one := f.start(f.run(j))
	full := f.run(j)
	f.offer(store.OfferBlocked, full)

	// Without its holders, as after runs that nobody counted, the limit lets one
	// run too many go; the next look counts them all.
	f.ok(f.s.ForgetHolders(f.ctx, f.executorLimit()))
	f.ok(f.s.ForgetHolders(f.ctx, f.tenantLimit()))
	require.Equal(t, [2]int{0, 1}, f.counts(f.executorLimit()))
	require.Empty(t, f.admit(), "the sweep has counted")
	require.Equal(t, [2]int{2, 1}, f.counts(f.executorLimit()))
	require.Equal(t, [2]int{2, 0}, f.counts(f.tenantLimit()))
	f.finish(before, domain.OutcomeSucceeded)
	f.finish(one, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{full.ID}, identify(f.admit()))
	f.start(full)
}

// A higher limit lets more go at once, a lower one stops nobody, and none lets
// all go.
func testLimitChanges(t *testing.T, f *fixture) {
	j := f.job(nil)
	f.limit(f.tenantLimit(), 1)
	runs := f.seconds(j, 6)
	got := f.offerTo(f.instance, runs...)
	f.limit(f.tenantLimit(), 3)
	require.Equal(t, identify(runs[1:3]), identify(f.admit(f.tenantLimit())))
	second, third := f.start(runs[1]), f.start(runs[2])
	f.limit(f.tenantLimit(), 2)
	require.Equal(t, [2]int{3, 3}, f.counts(f.tenantLimit()))
	f.finish(second, domain.OutcomeSucceeded)
	require.Empty(t, f.admit(f.tenantLimit()), "two are as many as may be")
	f.limit(f.tenantLimit(), 0)
	require.Equal(t, identify(runs[3:]), identify(f.admit()))
	for _, e := range runs[3:] {
		f.start(e)
	}
	require.Empty(t, f.admit())
	f.limit(f.tenantLimit(), 5) // nothing is left of the old one
	require.Equal(t, [2]int{5, 0}, f.counts(f.tenantLimit()))
	f.finish(third, domain.OutcomeSucceeded)
	f.finish(f.grant(got[0].Execution), domain.OutcomeSucceeded)
	require.Equal(t, [2]int{3, 0}, f.counts(f.tenantLimit()))
}

// Who waits for something else, or has ended, keeps nobody from the room.
func testLimitLeavesNoPlace(t *testing.T, f *fixture) {
	j := f.job(nil)
	f.limit(f.tenantLimit(), 1)
	running := f.start(f.run(j))
	runs := f.seconds(j, 4)
	for _, e := range runs {
		f.offer(store.OfferBlocked, e)
	}
	_, err := f.s.RequestCancel(f.ctx, f.tenant, runs[0].ID, domain.ReasonKilled, "")
	f.ok(err)
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(f.admit(f.tenantLimit())), "the first one was cancelled")
	f.wait([]store.Wait{{Tenant: f.tenant, ID: runs[1].ID, Reason: domain.ReasonWaitInstance, For: time.Minute}})
	require.Equal(t, []domain.ExecutionID{runs[2].ID}, identify(f.admit(f.tenantLimit())), "it found no instance")
	second := f.start(runs[2])
	f.offer(store.OfferBlocked, runs[1])
	f.finish(second, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(f.admit(f.tenantLimit())), "its place is that of its fire time")
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	require.Empty(t, f.admit(f.tenantLimit()))
	require.Equal(t, [2]int{0, 0}, f.counts(f.tenantLimit()))
}

// Waiting for room is not waiting for an instance.
func testLimitPatience(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.DispatchTimeout = time.Minute })
	f.limit(f.tenantLimit(), 1)
	running := f.start(f.run(j))
	e := f.run(j)
	f.offer(store.OfferBlocked, e)
	f.age(e, time.Hour) // longer than anything
	swept := f.sweep()
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(swept.Dispatch), "asked again, should nobody have woken it")
	require.Equal(t, domain.Due, f.find(e).State)
	f.offer(store.OfferBlocked, e)
	f.finish(running, domain.OutcomeSucceeded)
	woken := f.admit(f.tenantLimit())
	require.Equal(t, []domain.ExecutionID{e.ID}, identify(woken))
	require.True(t, woken[0].ExpireAt.After(f.now().Add(50*time.Second)), "the wait for an instance begins here")
	f.age(e, time.Hour)
	f.sweep()
	require.Equal(t, domain.Missed, f.find(e).State, "none came")
}

// Several nodes offer, finish and admit: never more than may, and all get their
// turn.
func testLimitRace(t *testing.T, f *fixture) {
	const jobs, each, workers = 3, 14, 4
	caps := map[domain.LimitKey]int{f.executorLimit(): 4, f.tenantLimit(): 3}
	for k, n := range caps {
		f.limit(k, n)
	}
	var mu sync.Mutex
	on, done := 0, 0
	queue := make(chan domain.Execution, jobs*each*workers*20)
	for range jobs {
		for _, e := range f.seconds(f.job(nil), each) {
			queue <- e
		}
	}
	start := func(es []domain.Execution) error {
		offers := make([]store.Offer, len(es))
		for i, e := range es {
			offers[i] = store.Offer{Tenant: f.tenant, ID: e.ID, Node: 1, Instance: f.instance, Idempotent: true, Granted: true}
		}
		got, err := f.s.OfferExecutions(f.ctx, offers)
		if err != nil {
			return fmt.Errorf("offer: %w", err)
		}
		var reports []store.AttemptReport
		mu.Lock()
		for _, r := range got {
			if r.Status == store.OfferMade {
				on++
				reports = append(reports, f.report(r.Execution, domain.OutcomeSucceeded))
			}
		}
		if on > caps[f.tenantLimit()] {
			t.Errorf("%d runs at once", on)
		}
		on -= len(reports) // before the database hears of it
		mu.Unlock()
		if len(reports) > 0 {
			if _, err := f.s.FinishAttempts(f.ctx, reports); err != nil {
				return fmt.Errorf("finish: %w", err)
			}
		}
		woken, err := f.s.AdmitWaiting(f.ctx, []domain.LimitKey{f.tenantLimit(), f.executorLimit()})
		if err != nil {
			return fmt.Errorf("admit: %w", err)
		}
		for _, e := range woken {
			queue <- e
		}
		mu.Lock()
		done += len(reports)
		mu.Unlock()
		return nil
	}
	race(workers, func(int) {
		for {
			var es []domain.Execution
			for len(es) < 5 && len(queue) > 0 {
				select {
				case e := <-queue:
					es = append(es, e)
				default:
				}
			}
			mu.Lock()
			over := done >= jobs*each || t.Failed() || f.ctx.Err() != nil
			mu.Unlock()
			if over {
				return
			}
			if err := start(es); err != nil {
				t.Error(err)
				return
			}
		}
	})
	require.Equal(t, jobs*each, done)
	for k := range caps {
		require.Equal(t, [2]int{0, 0}, f.counts(k))
	}
}

// A node that dies between two steps loses no place and no room: what it would
// have told, the sweeps of any other find.
func testLimitCrash(t *testing.T, f *fixture) {
	j := f.job(nil)
	f.limit(f.tenantLimit(), 1)
	running := f.start(f.run(j))
	runs := f.seconds(j, 2)
	f.offer(store.OfferBlocked, runs[0])
	f.offer(store.OfferBlocked, runs[1])
	f.finish(running, domain.OutcomeSucceeded) // and dies before it asks who waits
	require.Equal(t, []domain.ExecutionID{runs[0].ID}, identify(f.admit()))
	f.age(runs[0], 10*time.Second) // dies before it offers the woken one
	require.Empty(t, f.admit())
	require.Equal(t, []domain.ExecutionID{runs[0].ID}, identify(f.sweep().Dispatch))
	f.offer(store.OfferBlocked, runs[1])
	offered := f.offer(store.OfferMade, runs[0])
	f.age(offered, 10*time.Second) // dies with the offer
	require.Equal(t, []domain.ExecutionID{runs[0].ID}, identify(f.sweep().Dispatch))
	require.Equal(t, [2]int{0, 1}, f.counts(f.tenantLimit()))
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(f.admit()))
	first := f.start(runs[0]) // it comes back, and is still the first in precedence
	f.offer(store.OfferBlocked, runs[1])
	f.finish(first, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(f.admit()))
	f.finish(f.start(runs[1]), domain.OutcomeSucceeded)
	require.Equal(t, [2]int{0, 0}, f.counts(f.tenantLimit()))
}
