package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// cancelTimers cancels timers by their keys.
func (f *fixture) cancelTimers(j store.JobView, keys ...string) []store.CancelTimerResult {
	f.t.Helper()
	got := f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: j.ID, Keys: keys, By: "anna"})
	require.Len(f.t, got, len(keys))
	for i, key := range keys {
		require.Equal(f.t, key, got[i].Key)
	}
	return got
}

func testTimerCancel(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	at := f.now().Add(time.Hour)
	one := f.timer(j, "1", at, domain.TimerKeep)
	one.Labels, one.Note = []string{"a"}, "why"
	f.setOK(domain.TimerCreated, one)
	for _, key := range []string{"due", "running", "ended"} {
		f.setOK(domain.TimerCreated, f.timer(j, key, f.now(), domain.TimerKeep))
	}
	byKey := map[string]domain.Execution{}
	for _, e := range f.claimTimers(0) {
		_, key, _ := domain.SplitTimerOccurrence(e.OccurrenceKey)
		byKey[key] = e
	}
	f.start(byKey["running"])
	f.finish(f.start(byKey["ended"]), domain.OutcomeSucceeded)
	require.EqualValues(t, 1, f.pending(j))

	got := f.cancelTimers(j, "1", "due", "running", "ended", "none", "1")
	f.ok(got[0].Err)
	run := got[0].View.Run
	require.Equal(t, []any{domain.Cancelled, domain.ReasonKilled, "cancelled by anna", at.UTC().Truncate(time.Millisecond), "why", domain.CauseTimer, true},
		[]any{run.State, run.Reason, run.Message, run.FireAt, run.Note, run.Cause, run.WakeAt.IsZero()})
	require.Equal(t, got[0].View, got[5].View)
	f.ok(f.s.FillTimer(f.ctx, &got[0].View))
	require.Equal(t, *got[0].View.Run, f.find(*run), "the run has the input of the timer")
	require.Equal(t, domain.Cancelled, got[1].View.Run.State)
	require.Equal(t, domain.Cancelling, got[2].View.Run.State)
	f.code(domain.CodeAlreadyFinished, got[3].Err)
	require.Equal(t, domain.Succeeded, got[3].View.Run.State)
	f.code(domain.CodeNotFound, got[4].Err)
	require.Zero(t, f.pending(j))
	require.Empty(t, f.claimTimers(2*time.Hour), "it does not fire")
	found, err := f.s.FindTimer(f.ctx, f.tenant, j.ID, "1")
	f.ok(err)
	require.Equal(t, []any{run.ID, one.ID, []string{"a"}}, []any{found.Run.ID, found.ID, found.Labels})
	f.code(domain.CodeAlreadyFinished, f.cancelTimers(j, "1")[0].Err)
	f.setOK(domain.TimerCreated, f.timer(j, "1", at, domain.TimerReject))
	require.Equal(t, "pending", f.timerState(j, "1"))

	theirs := newFixture(t, f.s)
	foreign := f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: theirs.tenant, Job: j.ID, Keys: []string{"1", "ended"}, FreeEnded: true})
	f.code(domain.CodeNotFound, foreign[0].Err)
	f.code(domain.CodeNotFound, foreign[1].Err)
	require.Equal(t, "pending", f.timerState(j, "1"))
	require.Equal(t, "succeeded", f.timerState(j, "ended"))

	// To set keys anew: one that has ended is freed, one that is being stopped is not free yet.
	free := f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: j.ID, Keys: []string{"ended", "running", "none"}, By: "anna", FreeEnded: true})
	f.code(domain.CodeAlreadyFinished, free[0].Err)
	f.code(domain.CodeNotFound, free[2].Err)
	require.Equal(t, []string{"none", "cancelling"}, []string{f.timerState(j, "ended"), f.timerState(j, "running")})
	require.Equal(t, domain.Succeeded, f.find(byKey["ended"]).State, "its run stays")
	f.setOK(domain.TimerCreated, f.timer(j, "ended", at, domain.TimerKeep))
	f.code(domain.CodeTimerStarted, f.set(f.timer(j, "running", at, domain.TimerKeep)).Err)
	f.finish(f.find(byKey["running"]), domain.OutcomeCancelled)
	f.setOK(domain.TimerCreated, f.timer(j, "running", at, domain.TimerKeep))
}

// move reschedules a timer.
func (f *fixture) move(j store.JobView, key string, at time.Time) (store.TimerView, error) {
	f.t.Helper()
	return f.s.RescheduleTimer(f.ctx, store.RescheduleTimerParams{Tenant: f.tenant, Job: j.ID, Key: key, FireAt: at.UTC().Truncate(time.Millisecond), By: "anna", Held: []int{3}})
}

func testTimerReschedule(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	later, soon := f.now().Add(time.Hour), f.now().Add(time.Second)
	one := f.timer(j, "1", later, domain.TimerKeep)
	one.Labels, one.StartWithin, one.MaxAttempts, one.Note = []string{"a"}, 90*time.Second, 5, "why"
	first := f.setOK(domain.TimerCreated, one)

	moved, err := f.move(j, "1", soon)
	f.ok(err)
	want := first
	want.FireAt, want.Partition = soon.UTC().Truncate(time.Millisecond), 3
	require.Equal(t, want, moved, "it is due soon, and in a partition of whoever moved it")
	run := f.claimTimers(3 * time.Second)
	require.Len(t, run, 1)
	require.Zero(t, f.pending(j))

	moved, err = f.move(j, "1", later.Add(time.Hour))
	f.ok(err)
	require.Equal(t, []any{later.Add(time.Hour).UTC().Truncate(time.Millisecond), 90 * time.Second, 5, "why", []string{"a"}, one.Input, false},
		[]any{moved.FireAt, moved.StartWithin, moved.MaxAttempts, moved.Note, moved.Labels, moved.Input, moved.Run != nil})
	require.NotEqual(t, first.ID, moved.ID)
	ended := f.find(run[0])
	require.Equal(t, []any{domain.Cancelled, domain.ReasonRescheduled}, []any{ended.State, ended.Reason})
	require.EqualValues(t, 1, f.pending(j))
	require.Equal(t, "pending", f.timerState(j, "1"))
	require.Empty(t, f.claimTimers(90*time.Minute))

	_, err = f.move(j, "1", f.now().Add(-time.Second))
	f.ok(err)
	run = f.claimTimers(0)
	require.Len(t, run, 1)
	offered := f.offer(store.OfferMade, run[0])
	_, err = f.move(j, "1", later)
	f.ok(err)
	require.Equal(t, domain.Cancelled, f.find(offered).State)
	got, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.False(t, got[0].Granted, "an instance that was asked does not begin")

	_, err = f.move(j, "1", f.now())
	f.ok(err)
	started := f.start(f.claimTimers(0)[0])
	_, err = f.move(j, "1", later)
	f.code(domain.CodeTimerStarted, err)
	f.finish(started, domain.OutcomeSucceeded)
	_, err = f.move(j, "1", later)
	f.code(domain.CodeAlreadyFinished, err)
	_, err = f.move(j, "2", later)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.RescheduleTimer(f.ctx, store.RescheduleTimerParams{Tenant: newFixture(t, f.s).tenant, Job: j.ID, Key: "1", FireAt: later})
	f.code(domain.CodeNotFound, err)
}

// A search serves several claims; what was moved away since then stays.
func testTimerMovedAway(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	v := f.setOK(domain.TimerCreated, f.timer(j, "1", f.now(), domain.TimerKeep))
	second := f.timer(j, "2", f.now().Add(time.Millisecond), domain.TimerKeep)
	for domain.PartitionOf(domain.JobID(second.ID)) == v.Partition {
		second.ID = domain.TimerID(ids.Next())
	}
	w := f.setOK(domain.TimerCreated, second)
	held := []domain.PartitionTerm{f.held[v.Partition], f.held[w.Partition]}
	p := store.ClaimDueTimersParams{Partitions: held, Horizon: time.Second, Limit: 1, NewID: ids.Next}
	got, err := f.s.ClaimDueTimers(f.ctx, p)
	f.ok(err)
	require.Len(t, got.Executions, 1)
	require.Equal(t, v.FireAt, got.Executions[0].FireAt)
	require.True(t, got.More)
	_, err = f.s.RescheduleTimer(f.ctx, store.RescheduleTimerParams{Tenant: f.tenant, Job: j.ID, Key: "2", FireAt: f.now().Add(time.Hour)})
	f.ok(err)
	got, err = f.s.ClaimDueTimers(f.ctx, p)
	f.ok(err)
	require.Empty(t, f.mine(got.Executions))
	require.Equal(t, "pending", f.timerState(j, "2"))

	// So does one that was moved into a partition that this node does not hold.
	third := f.timer(j, "3", f.now(), domain.TimerKeep)
	third.ID = second.ID
	for domain.PartitionOf(domain.JobID(third.ID)) != v.Partition || third.ID == second.ID {
		third.ID = domain.TimerID(ids.Next())
	}
	f.setOK(domain.TimerCreated, third)
	fourth := f.timer(j, "4", f.now().Add(time.Millisecond), domain.TimerKeep)
	for domain.PartitionOf(domain.JobID(fourth.ID)) != w.Partition {
		fourth.ID = domain.TimerID(ids.Next())
	}
	f.setOK(domain.TimerCreated, fourth)
	got, err = f.s.ClaimDueTimers(f.ctx, p)
	f.ok(err)
	require.Len(t, got.Executions, 1)
	elsewhere := slices.IndexFunc(f.held, func(h domain.PartitionTerm) bool { return h.Partition != v.Partition && h.Partition != w.Partition })
	_, err = f.s.RescheduleTimer(f.ctx, store.RescheduleTimerParams{Tenant: f.tenant, Job: j.ID, Key: "4", FireAt: f.now(), Held: []int{f.held[elsewhere].Partition}})
	f.ok(err)
	got, err = f.s.ClaimDueTimers(f.ctx, p)
	f.ok(err)
	require.Empty(t, f.mine(got.Executions))
	require.Equal(t, "pending", f.timerState(j, "4"))
}

// A timer that many claim, move and cancel at once ends in one way: each of its
// runs is unique, and the last word is one of theirs.
func testTimerEditRace(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	for round := range 12 {
		key := fmt.Sprint(round)
		f.setOK(domain.TimerCreated, f.timer(j, key, f.now(), domain.TimerKeep))
		var mu sync.Mutex
		var failed error
		cancelled := 0
		race(6, func(i int) {
			var err error
			switch i % 3 {
			case 0:
				_, err = f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: time.Second, Limit: 500, NewID: ids.Next})
			case 1:
				_, err = f.move(j, key, time.Now())
			default:
				r := f.s.CancelTimers(f.ctx, store.CancelTimersParams{Tenant: f.tenant, Job: j.ID, Keys: []string{key}, By: "anna"})[0]
				if err = r.Err; err == nil {
					mu.Lock()
					cancelled++
					mu.Unlock()
				}
			}
			if domain.Is(err, domain.CodeAlreadyFinished) {
				err = nil
			}
			mu.Lock()
			failed = errors.Join(failed, err)
			mu.Unlock()
		})
		f.ok(failed)
		require.Equal(t, 1, cancelled, "it is cancelled, wherever it is, and once")
		f.claimTimers(time.Second)
		living := 0
		list, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID, Limit: 1000})
		f.ok(err)
		for _, e := range list {
			if strings.HasSuffix(e.OccurrenceKey, ":"+key) && !e.State.Terminal() {
				living++
			}
		}
		require.Zero(t, living, "round %d", round)
	}
	require.Zero(t, f.pending(j))
}
