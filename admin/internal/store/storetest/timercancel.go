package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// cancelMany cancels by a prefix or a label, until it is done, and returns the
// cancellation and the runs that have to hear of it.
func (f *fixture) cancelMany(j store.JobView, prefix, label string) (domain.TimerCancellation, []domain.Execution) {
	f.t.Helper()
	c, err := f.s.CreateTimerCancellation(f.ctx, domain.TimerCancellation{
		ID: domain.TimerCancellationID(ids.Next()), TenantID: f.tenant, JobID: j.ID, KeyPrefix: prefix, Label: label, CreatedBy: "anna",
	})
	f.ok(err)
	require.False(f.t, c.Done())
	require.Equal(f.t, []any{prefix, label, "anna"}, []any{c.KeyPrefix, c.Label, c.CreatedBy})
	var cancel []domain.Execution
	for range 100 {
		driven, err := f.s.DriveTimerCancellations(f.ctx, 100)
		f.ok(err)
		cancel = append(cancel, f.mine(driven.Cancel)...)
		c, err = f.s.FindTimerCancellation(f.ctx, f.tenant, c.ID)
		f.ok(err)
		if c.Done() {
			return c, cancel
		}
	}
	f.t.Fatal("the cancellation has no end")
	return c, nil
}

func testTimerCancelMany(t *testing.T, f *fixture) {
	j, other := f.timerJob(nil), f.timerJob(nil)
	later := f.now().Add(time.Hour)
	var list []store.SetTimer
	for i := range 1100 {
		timer := f.timer(j, fmt.Sprintf("a/%04d", i), later, domain.TimerKeep)
		if i%2 == 0 {
			timer.Labels = []string{"even"}
		}
		list = append(list, timer)
	}
	for i, key := range []string{"a/due", "a/running", "a/ended", "b/due", "b/running"} {
		timer := f.timer(j, key, f.now().Add(time.Duration(i)*time.Millisecond), domain.TimerKeep)
		timer.Labels = []string{"near"}
		list = append(list, timer)
	}
	list = append(list, f.timer(j, "b", later, domain.TimerKeep), f.timer(other, "a/0000", later, domain.TimerKeep))
	for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
		f.ok(r.Err)
	}
	for _, e := range f.claimTimers(time.Second) {
		_, key, _ := domain.SplitTimerOccurrence(e.OccurrenceKey)
		f.age(e, time.Second)
		switch key {
		case "a/ended":
			f.finish(f.start(e), domain.OutcomeSucceeded)
		case "a/running", "b/running":
			f.start(e)
		}
	}

	even, _ := f.cancelMany(j, "", "even")
	require.Equal(t, []int64{550, 550}, []int64{even.Found, even.Cancelled})
	require.EqualValues(t, 551, f.pending(j))
	require.Equal(t, []string{"cancelled", "pending", "due"}, []string{f.timerState(j, "a/0000"), f.timerState(j, "a/0001"), f.timerState(j, "a/due")})
	byPrefix, cancel := f.cancelMany(j, "a/", "")
	require.Equal(t, []int64{552, 552}, []int64{byPrefix.Found, byPrefix.Cancelled}, "those that are pending, due and running")
	require.Len(t, cancel, 1)
	require.Equal(t, []string{"cancelled", "cancelled", "cancelling", "succeeded", "pending", "due"}, []string{
		f.timerState(j, "a/0001"), f.timerState(j, "a/due"), f.timerState(j, "a/running"), f.timerState(j, "a/ended"), f.timerState(j, "b"), f.timerState(j, "b/due"),
	})
	require.EqualValues(t, 1, f.pending(j))
	require.EqualValues(t, 1, f.pending(other))
	near, cancel := f.cancelMany(j, "", "near")
	require.EqualValues(t, 2, near.Cancelled, "what is cancelling already is not cancelled again")
	require.Len(t, cancel, 1)
	require.Equal(t, []string{"cancelled", "cancelling"}, []string{f.timerState(j, "b/due"), f.timerState(j, "b/running")})

	_, err := f.s.CreateTimerCancellation(f.ctx, domain.TimerCancellation{ID: domain.TimerCancellationID(ids.Next()), TenantID: f.tenant, JobID: f.job(nil).ID})
	f.code(domain.CodeNotFound, err)
	theirs := newFixture(t, f.s)
	_, err = f.s.CreateTimerCancellation(f.ctx, domain.TimerCancellation{ID: domain.TimerCancellationID(ids.Next()), TenantID: theirs.tenant, JobID: j.ID})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.FindTimerCancellation(f.ctx, theirs.tenant, near.ID)
	f.code(domain.CodeNotFound, err)
}

// What is set after the wish stays, also what takes the place of what was there.
func testTimerCancelLater(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	f.setOK(domain.TimerCreated, f.timer(j, "1", f.now().Add(time.Hour), domain.TimerKeep))
	f.setOK(domain.TimerCreated, f.timer(j, "2", f.now().Add(time.Hour), domain.TimerKeep))
	c, err := f.s.CreateTimerCancellation(f.ctx, domain.TimerCancellation{ID: domain.TimerCancellationID(ids.Next()), TenantID: f.tenant, JobID: j.ID})
	f.ok(err)
	f.setOK(domain.TimerReplaced, f.timer(j, "1", f.now().Add(time.Hour), domain.TimerReplace))
	f.setOK(domain.TimerCreated, f.timer(j, "3", f.now().Add(time.Hour), domain.TimerKeep))
	for !c.Done() {
		_, err := f.s.DriveTimerCancellations(f.ctx, 100)
		f.ok(err)
		c, err = f.s.FindTimerCancellation(f.ctx, f.tenant, c.ID)
		f.ok(err)
	}
	require.Equal(t, []string{"pending", "cancelled", "pending"}, []string{f.timerState(j, "1"), f.timerState(j, "2"), f.timerState(j, "3")})
}

// A job that is deleted has its pending timers cancelled.
func testTimerJobDeletedDriven(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	f.setOK(domain.TimerCreated, f.timer(j, "1", f.now().Add(time.Hour), domain.TimerKeep))
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted, By: "anna"})
	f.ok(err)
	for range 100 {
		if f.timerState(j, "1") != "pending" {
			break
		}
		_, err := f.s.DriveTimerCancellations(f.ctx, 100)
		f.ok(err)
	}
	require.Equal(t, "cancelled", f.timerState(j, "1"))
	require.Empty(t, f.claimTimers(2*time.Hour))
}

// testTimerRetention works with ids of months ago: other tests share the tables.
func testTimerRetention(t *testing.T, f *fixture) {
	const month = 30 * 24 * time.Hour
	last := domain.IDFloor(time.Now().Add(-5*month)) + 2048
	old := func() int64 { last++; return last }
	j := f.timerJob(nil)
	for _, key := range []string{"ended", "waits"} {
		timer := f.timer(j, key, f.now(), domain.TimerKeep)
		timer.Labels = []string{"a"}
		f.setOK(domain.TimerCreated, timer)
	}
	got, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Limit: 500, NewID: old})
	f.ok(err)
	var ended domain.ExecutionID
	for _, e := range f.mine(got.Executions) {
		if _, key, _ := domain.SplitTimerOccurrence(e.OccurrenceKey); key == "ended" {
			f.finish(f.start(e), domain.OutcomeSucceeded)
			ended = e.ID
		}
	}
	young := f.timer(j, "young", f.now(), domain.TimerKeep)
	f.setOK(domain.TimerCreated, young)
	f.finish(f.start(f.claimTimers(0)[0]), domain.OutcomeSucceeded)

	before := time.Now().Add(-4 * month)
	_, err = f.s.DeleteRunsBefore(f.ctx, before, 100)
	f.ok(err)
	require.Equal(t, "succeeded", f.timerState(j, "ended"), "it has a retention of its own")
	n, err := f.s.DeleteTimersBefore(f.ctx, before, 100)
	f.ok(err)
	require.Zero(t, n, "planned long ago, it has ended just now")
	f.ok(f.s.Age(f.ctx, ended, 5*month))
	n, err = f.s.DeleteTimersBefore(f.ctx, before, 100)
	f.ok(err)
	require.EqualValues(t, 1, n)
	require.Equal(t, []string{"none", "due", "succeeded"}, []string{f.timerState(j, "ended"), f.timerState(j, "waits"), f.timerState(j, "young")})
	require.Empty(t, f.timerKeys(store.ListTimersParams{Label: "a", State: store.TimersEnded, Limit: 10}))
	f.setOK(domain.TimerCreated, f.timer(j, "ended", f.now().Add(time.Hour), domain.TimerReject))

	// A run before the newest one goes without the key.
	got, err = f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Horizon: 2 * time.Hour, Limit: 500, NewID: old})
	f.ok(err)
	ended = f.mine(got.Executions)[0].ID
	_, err = f.s.RequestCancel(f.ctx, f.tenant, ended, domain.ReasonKilled, "")
	f.ok(err)
	f.ok(f.s.Age(f.ctx, ended, 5*month))
	f.setOK(domain.TimerCreated, f.timer(j, "ended", f.now(), domain.TimerKeep))
	require.Len(t, f.claimTimers(0), 1)
	n, err = f.s.DeleteTimersBefore(f.ctx, before, 100)
	f.ok(err)
	require.EqualValues(t, 1, n)
	require.Equal(t, "due", f.timerState(j, "ended"))
}

func testQuotaOfTimers(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	f.quota(domain.QuotaTimers, 3)
	at := f.now().Add(time.Hour)
	list := []store.SetTimer{f.timer(j, "1", at, domain.TimerKeep), f.timer(j, "2", at, domain.TimerKeep)}
	for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
		f.ok(r.Err)
	}
	list = []store.SetTimer{
		f.timer(j, "1", at, domain.TimerKeep), f.timer(j, "3", at, domain.TimerKeep), f.timer(j, "4", at, domain.TimerKeep), f.timer(j, "2", at, domain.TimerReplace),
	}
	list[2].Labels = []string{"a"}
	got := f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list})
	require.Equal(t, domain.TimerKept, got[0].Outcome)
	f.ok(got[1].Err)
	f.code(domain.CodeQuotaExceeded, got[2].Err)
	f.ok(got[3].Err)
	require.Equal(t, domain.TimerReplaced, got[3].Outcome)
	require.EqualValues(t, 3, f.has(domain.QuotaTimers).Used)
	require.Equal(t, "none", f.timerState(j, "4"))
	f.quota(domain.QuotaTimers, 1)
	f.setOK(domain.TimerReplaced, f.timer(j, "1", at, domain.TimerReplace))
	require.EqualValues(t, 3, f.has(domain.QuotaTimers).Used, "what was there stays")
	f.ok(f.cancelTimers(j, "1", "2", "3")[2].Err)
	require.Zero(t, f.has(domain.QuotaTimers).Used)
	f.setOK(domain.TimerCreated, f.timer(j, "4", at, domain.TimerKeep))
}
