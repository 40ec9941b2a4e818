package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// timerJob makes a job of kind timer.
func (f *fixture) timerJob(change func(*domain.JobSpec)) store.JobView {
	f.t.Helper()
	spec := domain.JobSpec{
		Name: fmt.Sprintf("timer:shop/%06d", jobNumber.Add(1)), Handler: "cancel-order", Blocking: domain.BlockParallel,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}, OnLost: domain.OnLostFail, Retry: domain.Retry{MaxAttempts: 2}, Priority: 3,
	}
	if change != nil {
		change(&spec)
	}
	view, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, State: domain.JobEnabled, Kind: domain.JobTimer, Source: domain.SourceConsole, Spec: spec,
	}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
	f.ok(err)
	return view
}

func (f *fixture) timer(j store.JobView, key string, at time.Time, policy domain.TimerPolicy) store.SetTimer {
	return store.SetTimer{Policy: policy, Timer: domain.Timer{
		ID: domain.TimerID(ids.Next()), TenantID: f.tenant, JobID: j.ID, FireAt: at.UTC().Truncate(time.Millisecond), Key: key, Input: []byte(`{"order":` + key + `}`),
	}}
}

// set sets one timer.
func (f *fixture) set(timer store.SetTimer) store.SetTimerResult {
	f.t.Helper()
	got := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: []store.SetTimer{timer}})
	require.Len(f.t, got, 1)
	return got[0]
}

// setOK sets one timer, which has to come out so.
func (f *fixture) setOK(want domain.TimerOutcome, timer store.SetTimer) store.TimerView {
	f.t.Helper()
	got := f.set(timer)
	f.ok(got.Err)
	require.Equal(f.t, want, got.Outcome, "%s", got.Outcome)
	return got.View
}

// claimTimers claims all timers that are due within horizon.
func (f *fixture) claimTimers(horizon time.Duration) []domain.Execution {
	f.t.Helper()
	var all []domain.Execution
	for {
		got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: horizon, Limit: 500, NewID: ids.Next})
		f.ok(err)
		all = append(all, f.mine(got.Executions)...)
		if !got.More {
			return all
		}
	}
}

// timerState is what FindTimer says of a key.
func (f *fixture) timerState(j store.JobView, key string) string {
	f.t.Helper()
	v, err := f.s.FindTimer(f.ctx, f.tenant, j.ID, key)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return "none"
	case err != nil:
		return err.Error()
	case v.Run == nil:
		return "pending"
	}
	return v.Run.State.String()
}

// pending is what CountTimers says of a job.
func (f *fixture) pending(j store.JobView) int64 {
	f.t.Helper()
	list, err := f.s.CountTimers(f.ctx, f.tenant)
	f.ok(err)
	i := slices.IndexFunc(list, func(c store.TimerCount) bool { return c.Job == j.ID })
	require.GreaterOrEqual(f.t, i, 0)
	return list[i].Pending
}

func testTimer(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	at := f.now().Add(time.Minute)
	want := f.timer(j, "order-77", at, domain.TimerKeep)
	want.MaxAttempts, want.Timeout, want.StartWithin = 7, 90*time.Second, 2*time.Hour
	want.Note, want.RequestedBy, want.Labels = "why", "key:shop", []string{"a", "b"}
	view := f.setOK(domain.TimerCreated, want)
	expect := want.Timer
	expect.Partition = view.Partition
	require.Equal(t, store.TimerView{Timer: expect, ExecutorName: "shop", Handler: "cancel-order"}, view)
	found, err := f.s.FindTimer(f.ctx, f.tenant, j.ID, "order-77")
	f.ok(err)
	require.Equal(t, view, found)
	require.EqualValues(t, 1, f.pending(j))

	require.Empty(t, f.claimTimers(0), "it is not due")
	require.Equal(t, "pending", f.timerState(j, "order-77"))
	got := f.claimTimers(2 * time.Minute)
	require.Len(t, got, 1)
	e := got[0]
	require.Equal(t, domain.Execution{
		ID: e.ID, TenantID: f.tenant, JobID: j.ID, Revision: 1, Executor: f.executor, Partition: view.Partition, Cause: domain.CauseTimer, Priority: 3,
		FireAt: want.FireAt, OccurrenceKey: domain.TimerOccurrence(want.ID, "order-77"), State: domain.Due, Input: want.Input, Note: "why", RequestedBy: "key:shop",
		MaxAttempts: 7, Timeout: 90 * time.Second, NotBefore: want.FireAt, WakeAt: want.FireAt.Add(domain.PickupGrace),
		ExpireAt: want.FireAt.Add(2 * time.Hour), PlannedAt: e.PlannedAt, LogLines: -1,
	}, e)
	require.Equal(t, e, f.find(e))
	require.Empty(t, f.claimTimers(2*time.Minute), "it is claimed once")
	require.Zero(t, f.pending(j))
	found, err = f.s.FindTimer(f.ctx, f.tenant, j.ID, "order-77")
	f.ok(err)
	require.Equal(t, []any{e.ID, want.ID, "order-77", []string{"a", "b"}, "shop", "cancel-order"},
		[]any{found.Run.ID, found.ID, found.Key, found.Labels, found.ExecutorName, found.Handler})

	f.age(e, 2*time.Minute)
	require.Equal(t, domain.Succeeded, f.finish(f.start(e), domain.OutcomeSucceeded).Execution.State)
	require.Equal(t, "succeeded", f.timerState(j, "order-77"))
	_, err = f.s.FindTimer(f.ctx, f.tenant, j.ID, "order-78")
	f.code(domain.CodeNotFound, err)
}

func testTimerDefaults(t *testing.T, f *fixture) {
	j := f.timerJob(func(s *domain.JobSpec) { s.DispatchTimeout = time.Hour })
	past := f.now().Add(-time.Minute)
	f.setOK(domain.TimerCreated, f.timer(j, "1", past, domain.TimerKeep))
	got := f.claimTimers(0)
	require.Len(t, got, 1)
	require.Equal(t, 2, got[0].MaxAttempts)
	require.Equal(t, got[0].PlannedAt.Add(time.Hour), got[0].ExpireAt, "the wait of one that is late begins when it is claimed")
	require.Equal(t, past.Truncate(time.Millisecond), got[0].FireAt)
}

func testTimerPolicies(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	soon, later := f.now().Add(time.Second), f.now().Add(time.Hour)
	first := f.timer(j, "1", later, domain.TimerKeep)
	f.setOK(domain.TimerCreated, first)

	kept := f.setOK(domain.TimerKept, f.timer(j, "1", soon, domain.TimerKeep))
	require.Equal(t, []any{first.ID, first.FireAt}, []any{kept.ID, kept.FireAt})
	rejected := f.set(f.timer(j, "1", soon, domain.TimerReject))
	f.code(domain.CodeTimerExists, rejected.Err)
	require.Equal(t, first.ID, rejected.View.ID)
	second := f.timer(j, "1", soon, domain.TimerReplace)
	second.Labels = []string{"new"}
	require.Equal(t, second.ID, f.setOK(domain.TimerReplaced, second).ID)
	require.EqualValues(t, 1, f.pending(j))

	// Its run is there and has not started.
	run := f.claimTimers(time.Minute)
	require.Len(t, run, 1)
	require.Equal(t, run[0].ID, f.setOK(domain.TimerKept, f.timer(j, "1", later, domain.TimerKeep)).Run.ID)
	f.code(domain.CodeTimerExists, f.set(f.timer(j, "1", later, domain.TimerReject)).Err)
	require.Zero(t, f.pending(j), "what was refused left nothing")
	f.setOK(domain.TimerReplaced, f.timer(j, "1", soon, domain.TimerReplace))
	ended := f.find(run[0])
	require.Equal(t, []any{domain.Cancelled, domain.ReasonRescheduled}, []any{ended.State, ended.Reason})
	require.Equal(t, "pending", f.timerState(j, "1"))
	require.EqualValues(t, 1, f.pending(j))

	// It has started.
	run = f.claimTimers(time.Minute)
	require.Len(t, run, 1)
	f.age(run[0], time.Minute)
	started := f.start(run[0])
	busy := f.set(f.timer(j, "1", later, domain.TimerReplace))
	f.code(domain.CodeTimerStarted, busy.Err)
	require.Equal(t, started.ID, busy.View.Run.ID)
	require.Equal(t, started.ID, f.setOK(domain.TimerKept, f.timer(j, "1", later, domain.TimerKeep)).Run.ID)

	// It has ended: only a repeated request is answered with it.
	f.finish(started, domain.OutcomeSucceeded)
	require.Equal(t, started.ID, f.setOK(domain.TimerKept, f.timer(j, "1", later, domain.TimerKeep)).Run.ID)
	f.code(domain.CodeTimerExists, f.set(f.timer(j, "1", later, domain.TimerReject)).Err)
	f.setOK(domain.TimerCreated, f.timer(j, "1", soon, domain.TimerReplace))

	// It was cancelled: the key is free.
	run = f.claimTimers(time.Minute)
	_, err := f.s.RequestCancel(f.ctx, f.tenant, run[0].ID, domain.ReasonKilled, "by anna")
	f.ok(err)
	f.setOK(domain.TimerCreated, f.timer(j, "1", later, domain.TimerReject))
}

func testTimerBatch(t *testing.T, f *fixture) {
	j, other := f.timerJob(nil), f.timerJob(nil)
	at := f.now().Add(time.Hour)
	f.setOK(domain.TimerCreated, f.timer(j, "7", at, domain.TimerKeep))
	gone := j
	gone.ID = domain.JobID(ids.Next())
	var list []store.SetTimer
	for i := range 1203 {
		list = append(list, f.timer(j, fmt.Sprint(i), at, domain.TimerReject))
	}
	list = append(list, f.timer(other, "7", at, domain.TimerReject), f.timer(gone, "7", at, domain.TimerKeep),
		f.timer(f.job(nil), "7", at, domain.TimerKeep), f.timer(other, "7", at, domain.TimerKeep))
	got := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list})
	require.Len(t, got, len(list))
	for i, r := range got[:1203] {
		if i == 7 {
			f.code(domain.CodeTimerExists, r.Err)
			continue
		}
		f.ok(r.Err)
		require.Equal(t, []any{domain.TimerCreated, fmt.Sprint(i)}, []any{r.Outcome, r.View.Key})
	}
	f.ok(got[1203].Err)
	f.code(domain.CodeNotFound, got[1204].Err)
	f.code(domain.CodeNotFound, got[1205].Err)
	require.Equal(t, []any{domain.TimerKept, got[1203].View.ID}, []any{got[1206].Outcome, got[1206].View.ID}, "the same key twice")
	require.EqualValues(t, 1203, f.pending(j))
	require.EqualValues(t, 1, f.pending(other))
	parts := map[int]bool{}
	for _, r := range got {
		parts[r.View.Partition] = true
	}
	require.Greater(t, len(parts), domain.Partitions/2, "all nodes have some")

	claimed := f.claimTimers(2 * time.Hour)
	require.Len(t, claimed, 1204)
	require.Zero(t, f.pending(j))
}

// One that is due soon comes into a partition of the node that sets it.
func testTimerHeld(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	var list []store.SetTimer
	for i := range 20 {
		list = append(list, f.timer(j, fmt.Sprint(i), f.now().Add(time.Duration(i%2)*time.Hour), domain.TimerKeep))
	}
	far := map[int]bool{}
	for i, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list, Held: []int{5, 9}}) {
		f.ok(r.Err)
		if i%2 == 0 {
			require.Contains(t, []int{5, 9}, r.View.Partition)
		} else {
			far[r.View.Partition] = true
		}
	}
	require.Greater(t, len(far), 2)
	got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{
		Partitions: []domain.PartitionTerm{f.held[5], f.held[9]}, Horizon: 3 * time.Second, Limit: 500, NewID: ids.Next,
	})
	f.ok(err)
	require.Len(t, f.mine(got.Executions), 10)
}

// However many nodes claim at once, each timer becomes one run.
func testTimerClaimRace(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	var list []store.SetTimer
	for i := range 300 {
		list = append(list, f.timer(j, fmt.Sprint(i), f.now(), domain.TimerKeep))
	}
	for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
		f.ok(r.Err)
	}
	var mu sync.Mutex
	runs := map[string]int{}
	var failed error
	race(6, func(int) {
		for {
			got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: time.Second, Limit: 37, NewID: ids.Next})
			mu.Lock()
			failed = errors.Join(failed, err)
			for _, e := range f.mine(got.Executions) {
				runs[e.OccurrenceKey]++
			}
			done := err != nil || len(runs) == len(list)
			mu.Unlock()
			if done {
				return
			}
		}
	})
	f.ok(failed)
	require.Len(t, runs, len(list))
	for key, n := range runs {
		require.Equal(t, 1, n, key)
	}
	require.Zero(t, f.pending(j))
}

// A request that many send at once, and whose timer is claimed meanwhile, makes one
// run.
func testTimerKeyRace(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	for round := range 10 {
		key := fmt.Sprint(round)
		var mu sync.Mutex
		created := 0
		var failed error
		race(8, func(i int) {
			if i < 6 {
				r := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: []store.SetTimer{f.timer(j, key, time.Now(), domain.TimerKeep)}})[0]
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, r.Err)
				if r.Outcome == domain.TimerCreated {
					created++
				}
				return
			}
			for range 5 {
				_, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: time.Second, Limit: 500, NewID: ids.Next})
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
			}
		})
		f.ok(failed)
		require.Equal(t, 1, created, "round %d", round)
		f.claimTimers(time.Second)
	}
	list, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID, Limit: 100})
	f.ok(err)
	require.Len(t, list, 10)
	require.Zero(t, f.pending(j))
}

// Batches of the same keys in any order, from many at once, are all set: none is told
// that others are in its way.
func testTimerKeysOfMany(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	const clients, rounds, keys = 8, 5, 100
	at := f.now().Add(time.Hour)
	var mu sync.Mutex
	var failed error
	race(clients, func(int) {
		for range rounds {
			var list []store.SetTimer
			for _, key := range rand.Perm(keys) {
				list = append(list, f.timer(j, fmt.Sprint(key), at, domain.TimerReplace))
			}
			for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
				mu.Lock()
				failed = errors.Join(failed, r.Err)
				mu.Unlock()
			}
		}
	})
	f.ok(failed)
	require.EqualValues(t, keys, f.pending(j))
}

// Nobody claims under a term that is over, or for a clock that is not believed.
func testTimerFence(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	v := f.setOK(domain.TimerCreated, f.timer(j, "1", f.now(), domain.TimerKeep))
	old := f.held[v.Partition]
	old.Term--
	p := store.ClaimDueTimersParams{Partitions: []domain.PartitionTerm{old}, Limit: 500, NewID: ids.Next}
	_, err := f.s.ClaimDueTimers(f.ctx, p)
	f.code(domain.CodeStaleTerm, err)
	p.Partitions = f.held[v.Partition : v.Partition+1]
	p.Latest = func() time.Time { return f.now().Add(-time.Hour) }
	_, err = f.s.ClaimDueTimers(f.ctx, p)
	f.code(domain.CodeClockJump, err)
	p.Latest, p.Except = nil, []domain.TenantID{f.tenant}
	got, err := f.s.ClaimDueTimers(f.ctx, p)
	f.ok(err)
	require.Empty(t, f.mine(got.Executions))
	require.Equal(t, "pending", f.timerState(j, "1"))
	require.Len(t, f.claimTimers(0), 1)
}

// The timers of a job that is deleted end with it, and no new one is set.
func testTimerJobDeleted(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	f.setOK(domain.TimerCreated, f.timer(j, "1", f.now(), domain.TimerKeep))
	f.setOK(domain.TimerCreated, f.timer(j, "2", f.now(), domain.TimerKeep))
	claimed := f.claimTimers(0)
	require.Len(t, claimed, 2)
	f.setOK(domain.TimerCreated, f.timer(j, "3", f.now(), domain.TimerKeep))
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	for _, e := range claimed {
		require.Equal(t, []any{domain.Cancelled, domain.ReasonDeleted}, []any{f.find(e).State, f.find(e).Reason}, "in whatever partition it is")
	}
	got := f.claimTimers(0)
	require.Len(t, got, 1)
	require.Equal(t, []any{domain.Cancelled, domain.ReasonDeleted}, []any{got[0].State, got[0].Reason})
	f.code(domain.CodeNotFound, f.set(f.timer(j, "4", f.now(), domain.TimerKeep)).Err)
}

// Timers are their tenant's.
func testTimerWall(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	f.setOK(domain.TimerCreated, f.timer(j, "1", f.now().Add(time.Hour), domain.TimerKeep))
	theirs := newFixture(t, f.s)
	foreign := f.timer(j, "1", f.now(), domain.TimerReplace)
	foreign.TenantID = theirs.tenant
	f.code(domain.CodeNotFound, theirs.set(foreign).Err)
	_, err := f.s.FindTimer(f.ctx, theirs.tenant, j.ID, "1")
	f.code(domain.CodeNotFound, err)
	list, err := f.s.CountTimers(f.ctx, theirs.tenant)
	f.ok(err)
	require.Empty(t, list)
	f.claimTimers(2 * time.Hour)
	_, err = f.s.FindTimer(f.ctx, theirs.tenant, j.ID, "1")
	f.code(domain.CodeNotFound, err)
}

// A request with a name sets one timer, also when it is repeated after a cancellation.
func testTimerRequests(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	at := f.now().Add(time.Hour)
	request := func(key, name string) store.SetTimer {
		timer := f.timer(j, key, at, domain.TimerKeep)
		timer.RequestID = name
		return timer
	}
	f.setOK(domain.TimerCreated, request("1", "a"))
	f.setOK(domain.TimerKept, request("1", "a"))
	f.ok(f.cancelTimers(j, "1")[0].Err)
	require.Equal(t, domain.Cancelled, f.setOK(domain.TimerKept, request("1", "a")).Run.State)
	require.Zero(t, f.pending(j))
	f.setOK(domain.TimerCreated, request("1", "b"))

	// It has a run, and was moved.
	soon := request("2", "c")
	soon.FireAt = f.now().UTC().Truncate(time.Millisecond)
	f.setOK(domain.TimerCreated, soon)
	require.Len(t, f.claimTimers(time.Minute), 1)
	_, err := f.move(j, "2", at)
	f.ok(err)
	f.ok(f.cancelTimers(j, "2")[0].Err)
	for _, policy := range []domain.TimerPolicy{domain.TimerKeep, domain.TimerReplace, domain.TimerReject} {
		again := request("2", "c")
		again.Policy = policy
		f.setOK(domain.TimerKept, again)
	}
	require.EqualValues(t, 1, f.pending(j))

	// One without a name, or of another key, is another one.
	f.ok(f.cancelTimers(j, "1")[0].Err)
	f.setOK(domain.TimerCreated, request("1", ""))
	f.setOK(domain.TimerCreated, request("3", "b"))
}
