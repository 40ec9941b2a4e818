package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// stillRunning reports that an attempt is over but for its handler.
func (f *fixture) stillRunning(e domain.Execution, outcome domain.Outcome) store.FinishResult {
	f.t.Helper()
	r := f.report(e, outcome)
	r.Report.StillRunning = true
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{r})
	f.ok(err)
	return got[0]
}

// testLingerKeepsTheSlot: promise P6 for a handler that ignores its cancel.
func testLingerKeepsTheSlot(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	got := f.stillRunning(running, domain.OutcomeTimedOut)
	require.Equal(t, store.FinishStored, got.Code)
	require.Empty(t, got.Woken)
	lingering := f.find(first)
	require.Equal(t, got.Execution, lingering)
	require.Equal(t, domain.TimedOut, lingering.State)
	require.True(t, lingering.Lingers)
	require.True(t, lingering.HoldsSlot)
	require.Zero(t, lingering.ReturnedAt)
	require.Equal(t, []domain.AlertKind{domain.AlertRunTimedOut}, f.alertKinds(first))

	f.offer(store.OfferBlocked, second)
	require.Equal(t, store.FinishDuplicate, f.stillRunning(running, domain.OutcomeTimedOut).Code, "resent")
	require.Empty(t, f.sweep().Ended)
	holders, err := f.s.ListSlotHolders(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Len(t, holders, 1)
	require.Equal(t, lingering, holders[0].Execution)
	require.Equal(t, "boot-1 name", holders[0].InstanceName)
	for _, states := range [][]domain.State{nil, {domain.TimedOut}, {domain.TimedOut, domain.Due}} {
		list, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, States: states, Before: second.ID, Limit: 10})
		f.ok(err)
		require.Len(t, list, 1)
		require.Equal(t, lingering, list[0].Execution)
	}
	list, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, States: []domain.State{domain.Failed}})
	f.ok(err)
	require.Empty(t, list)
	counts, err := f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, now.Add(-time.Hour))
	f.ok(err)
	require.Equal(t, map[domain.State]int64{domain.Due: 1, domain.TimedOut: 1}, counts)
	_, err = f.s.RequestCancel(f.ctx, f.tenant, first.ID, domain.ReasonKilled, "")
	f.code(domain.CodeAlreadyFinished, err)

	got = f.finish(running, domain.OutcomeSucceeded) // what it did in the end changes nothing
	require.Equal(t, store.FinishReturned, got.Code)
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Woken))
	after := f.find(first)
	require.Equal(t, got.Execution, after)
	require.Equal(t, domain.TimedOut, after.State)
	require.False(t, after.Lingers)
	require.False(t, after.HoldsSlot)
	require.False(t, after.ReturnedAt.Before(after.FinishedAt))
	require.Zero(t, after.WakeAt)
	require.Equal(t, store.FinishDuplicate, f.finish(running, domain.OutcomeSucceeded).Code)
	require.Empty(t, f.alertKinds(first), "told once")
	f.start(second)
}

// testLingerCancelled: what was killed, or covered, keeps its place as well.
func testLingerCancelled(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Blocking = domain.BlockCover })
	now := f.now()
	first, second, third := f.runAt(j, now.Add(-3*time.Second)), f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	require.Equal(t, []domain.ExecutionID{first.ID}, identify(f.offerTo(f.instance, second)[0].Covered))
	require.Empty(t, f.stillRunning(running, domain.OutcomeCancelled).Woken)
	require.Equal(t, domain.Cancelled, f.find(first).State)
	require.Equal(t, domain.ReasonCovered, f.find(first).Reason)

	got := f.offerTo(f.instance, third)[0]
	require.Equal(t, store.OfferBlocked, got.Status, "it covers who waits, and waits for who cannot be stopped")
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Covered))
	require.Equal(t, []domain.ExecutionID{third.ID}, identify(f.finish(running, domain.OutcomeCancelled).Woken))
	f.start(third)
}

// testLingerOneBatch: both reports of an attempt in one transaction.
func testLingerOneBatch(t *testing.T, f *fixture) {
	j := f.job(serial)
	running, next := f.start(f.run(j)), f.run(j)
	still, back := f.report(running, domain.OutcomeTimedOut), f.report(running, domain.OutcomeTimedOut)
	still.Report.StillRunning = true
	got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{still, back})
	f.ok(err)
	require.Equal(t, store.FinishStored, got[0].Code)
	require.Equal(t, store.FinishReturned, got[1].Code)
	require.False(t, f.find(running).HoldsSlot)
	f.start(next)
}

// testLingerLease: when nobody is left who could report the end, the lease
// says it, as of a running attempt.
func testLingerLease(t *testing.T, f *fixture) {
	j := f.job(serial)
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	f.stillRunning(f.start(first), domain.OutcomeTimedOut)
	f.offer(store.OfferBlocked, second)
	f.age(first, domain.LeaseTTL+domain.LeaseMargin)
	swept := f.sweep()
	require.Empty(t, swept.Ended)
	require.Empty(t, swept.Dispatch)
	looked := f.find(first)
	require.True(t, looked.HoldsSlot, "its instance lives")
	require.True(t, looked.WakeAt.After(f.now()), "looked at again when the lease ends")

	dead := f.register("lingers and dies", -time.Minute)
	j = f.job(serial)
	first, second = f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	f.stillRunning(f.grant(f.offerTo(dead.ID, first)[0].Execution), domain.OutcomeTimedOut)
	f.offer(store.OfferBlocked, second)
	f.age(first, domain.LeaseTTL+domain.LeaseMargin)
	swept = f.sweep()
	require.Empty(t, swept.Ended, "it has ended before")
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(swept.Dispatch))
	after := f.find(first)
	require.Equal(t, domain.TimedOut, after.State)
	require.False(t, after.Lingers)
	require.False(t, after.HoldsSlot)
	require.NotZero(t, after.ReturnedAt)
	f.start(second)
}

// testLingerDeadline: the admin gave up waiting; nobody has said that the
// handler stopped.
func testLingerDeadline(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Blocking, s.Timeout = domain.BlockSerial, time.Hour })
	now := f.now()
	first, second := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second))
	running := f.start(first)
	f.offer(store.OfferBlocked, second)
	f.age(first, time.Hour+domain.DeadlineGrace)
	swept := f.sweep()
	require.Equal(t, []domain.ExecutionID{first.ID}, identify(swept.Ended))
	require.Empty(t, swept.Dispatch)
	require.True(t, f.find(first).Lingers)

	f.age(first, domain.LeaseTTL+domain.LeaseMargin)
	swept = f.sweep()
	require.Equal(t, []domain.ExecutionID{first.ID}, identify(swept.Cancel), "again: an instance that never saw it says so")
	require.Empty(t, swept.Ended)
	got := f.finish(running, domain.OutcomeNeverStarted)
	require.Equal(t, store.FinishReturned, got.Code)
	require.Equal(t, []domain.ExecutionID{second.ID}, identify(got.Woken))
	require.Equal(t, domain.TimedOut, f.find(first).State)
}

// testLingerSuperseded: a new boot proves that the old process is dead, and
// whatever it had is looked at.
func testLingerSuperseded(t *testing.T, f *fixture) {
	old := f.register("lingers and is superseded", time.Minute)
	e := f.run(f.job(serial))
	f.stillRunning(f.grant(f.offerTo(old.ID, e)[0].Execution), domain.OutcomeTimedOut)
	ended, err := f.supersede(store.SupersedeBootsParams{Tenant: f.tenant, Executor: f.executor, BootIDs: []string{old.BootID}})
	f.ok(err)
	require.Equal(t, []domain.InstanceID{old.ID}, ended)
	require.False(t, f.find(e).WakeAt.After(f.now()))
	require.True(t, f.find(e).HoldsSlot)
}

// testLingerLimit: it counts under limits, also one that is set while it
// lingers.
func testLingerLimit(t *testing.T, f *fixture) {
	j := f.job(nil)
	f.limit(f.tenantLimit(), 1)
	running, next := f.start(f.run(j)), f.run(j)
	f.stillRunning(running, domain.OutcomeTimedOut)
	f.offer(store.OfferBlocked, next)
	require.Equal(t, domain.ReasonWaitLimit, f.find(next).Reason)
	require.Empty(t, f.admit(f.tenantLimit()))
	limits, err := f.s.ListLimits(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, 1, limits[0].Running)

	executor := domain.LimitKey{Tenant: f.tenant, Executor: f.executor}
	f.limit(executor, 1)
	f.offer(store.OfferBlocked, next)
	require.Empty(t, f.admit(executor), "adopted")
	require.Equal(t, store.FinishReturned, f.finish(running, domain.OutcomeTimedOut).Code)
	require.Equal(t, []domain.ExecutionID{next.ID}, identify(f.admit(f.tenantLimit(), executor)))
	f.start(next)
}

// testLingerLateLimit: a handler that outlived its instance's lease, and is
// heard of afterwards, counts under limits again, beside those that took the
// room meanwhile.
func testLingerLateLimit(t *testing.T, f *fixture) {
	for _, retry := range []domain.OnLost{domain.OnLostFail, domain.OnLostRetry} {
		j := f.job(func(s *domain.JobSpec) {
			s.OnLost, s.Retry = retry, domain.Retry{MaxAttempts: 2, Delay: time.Hour}
		})
		limits := []domain.LimitKey{f.executorLimit(), f.tenantLimit()}
		f.limit(limits[0], 2)
		f.limit(limits[1], 2)
		dead := f.register("silent with "+string(retry), -time.Minute)
		running := f.grant(f.offerTo(dead.ID, f.run(j))[0].Execution)
		f.age(running, domain.LeaseTTL+domain.LeaseMargin)
		f.sweep()
		second := f.start(f.run(j))
		require.Equal(t, [2]int{1, 0}, f.counts(limits[0]))

		require.Equal(t, store.FinishStored, f.stillRunning(running, domain.OutcomeTimedOut).Code)
		require.True(t, f.find(running).Lingers)
		for _, k := range limits {
			require.Equal(t, [2]int{2, 0}, f.counts(k))
		}
		next := f.run(j)
		f.offer(store.OfferBlocked, next)
		require.Empty(t, f.admit(limits...))
		f.finish(running, domain.OutcomeTimedOut)
		require.Equal(t, []domain.ExecutionID{next.ID}, identify(f.admit(limits...)))
		f.finish(f.start(next), domain.OutcomeSucceeded)
		f.finish(second, domain.OutcomeSucceeded)
		f.limit(limits[0], 0)
		f.limit(limits[1], 0)
	}
}

// testLingerRetention works with ids of months ago: other tests share the
// tables.
func testLingerRetention(t *testing.T, f *fixture) {
	const month = 30 * 24 * time.Hour
	e := f.start(f.oldRun(f.job(serial), 7*month, "lingers"))
	f.stillRunning(e, domain.OutcomeTimedOut)
	n, err := f.s.DeleteRunsBefore(f.ctx, time.Now().Add(-6*month), 10)
	f.ok(err)
	require.Zero(t, n, "its slot would be taken for ever")
	f.finish(e, domain.OutcomeTimedOut)
	n, err = f.s.DeleteRunsBefore(f.ctx, time.Now().Add(-6*month), 10)
	f.ok(err)
	require.EqualValues(t, 1, n)
}
