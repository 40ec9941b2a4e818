package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// timerKeys lists all pages, and returns the keys.
func (f *fixture) timerKeys(p store.ListTimersParams) (keys []string) {
	f.t.Helper()
	p.Tenant = f.tenant
	for range 100 {
		page, err := f.s.ListTimers(f.ctx, p)
		f.ok(err)
		require.LessOrEqual(f.t, len(page.Timers), max(p.Limit, 1))
		for _, v := range page.Timers {
			require.NotEmpty(f.t, v.Handler)
			keys = append(keys, v.Key)
		}
		if page.Next == nil {
			return keys
		}
		p.After = *page.Next
	}
	f.t.Fatal("the list has no end")
	return nil
}

func testTimerLists(t *testing.T, f *fixture) {
	j, other := f.timerJob(nil), f.timerJob(nil)
	now := f.now().Truncate(time.Second)
	var list []store.SetTimer
	for i := range 25 {
		timer := f.timer(j, fmt.Sprintf("a/%02d", i), now.Add(time.Hour+time.Duration(i)*time.Minute), domain.TimerKeep)
		if i%5 == 0 {
			timer.Labels = []string{"fifth"}
		}
		list = append(list, timer)
	}
	list = append(list, f.timer(j, "b", now.Add(time.Hour), domain.TimerKeep), f.timer(other, "a/00", now.Add(time.Hour), domain.TimerKeep))
	for _, r := range f.s.SetTimers(f.ctx, store.SetTimersParams{Timers: list}) {
		f.ok(r.Err)
	}
	numbered := func(numbers ...int) (keys []string) {
		for _, i := range numbers {
			keys = append(keys, fmt.Sprintf("a/%02d", i))
		}
		return keys
	}
	ones := []domain.JobID{j.ID}
	all := f.timerKeys(store.ListTimersParams{Limit: 4})
	require.Len(t, all, 27)
	require.Equal(t, append(numbered(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24), "b"), f.timerKeys(store.ListTimersParams{Jobs: ones, Limit: 7}))
	require.Equal(t, numbered(10, 11, 12, 13, 14, 15, 16, 17, 18, 19), f.timerKeys(store.ListTimersParams{Jobs: ones, KeyPrefix: "a/1", Limit: 3}))
	require.Equal(t, []string{"a/00"}, f.timerKeys(store.ListTimersParams{Jobs: []domain.JobID{other.ID}, Limit: 100}))
	require.Equal(t, numbered(3, 4), f.timerKeys(store.ListTimersParams{Jobs: ones, From: now.Add(time.Hour + 3*time.Minute), To: now.Add(time.Hour + 5*time.Minute), Limit: 1}))
	require.Equal(t, numbered(0, 5, 10, 15, 20), f.timerKeys(store.ListTimersParams{Jobs: ones, Label: "fifth", Limit: 2}))
	require.Equal(t, numbered(10, 15), f.timerKeys(store.ListTimersParams{Label: "fifth", KeyPrefix: "a/1", Limit: 1}))
	require.Empty(t, f.timerKeys(store.ListTimersParams{State: store.TimersEnded, Limit: 10}))

	f.cancelTimers(j, numbered(0, 1)...)
	require.Len(t, f.claimTimers(time.Hour+3*time.Minute), 4, "a/02, a/03, b and the other job's")
	first := func(keys []string) []string { slices.Sort(keys); return keys }
	for _, jobs := range [][]domain.JobID{nil, ones, {j.ID, other.ID}} {
		require.Equal(t, numbered(0, 1), first(f.timerKeys(store.ListTimersParams{Jobs: jobs, State: store.TimersEnded, Limit: 1})))
		require.Equal(t, numbered(0), f.timerKeys(store.ListTimersParams{Jobs: jobs, State: store.TimersEnded, Label: "fifth", Limit: 1}))
		require.Equal(t, numbered(1), f.timerKeys(store.ListTimersParams{Jobs: jobs, State: store.TimersEnded, From: now.Add(time.Hour + time.Minute), To: now.Add(2 * time.Hour), Limit: 1}))
		require.Equal(t, []string{"b"}, f.timerKeys(store.ListTimersParams{Jobs: jobs, State: store.TimersClaimed, KeyPrefix: "b", Limit: 1}))
	}
	require.Equal(t, []string{"a/02", "a/03", "b"}, first(f.timerKeys(store.ListTimersParams{Jobs: ones, State: store.TimersClaimed, Limit: 2})))
	theirs := newFixture(t, f.s)
	require.Empty(t, theirs.timerKeys(store.ListTimersParams{Jobs: ones, Limit: 10}))
	require.Empty(t, theirs.timerKeys(store.ListTimersParams{Jobs: ones, State: store.TimersEnded, Limit: 10}))
}

// Timers' runs have lists of their own; what counts or looks for runs on instances
// finds them all the same.
func testTimerPhases(t *testing.T, f *fixture) {
	j := f.timerJob(nil)
	for _, key := range []string{"1", "2", "3"} {
		f.setOK(domain.TimerCreated, f.timer(j, key, f.now(), domain.TimerKeep))
	}
	runs := f.claimTimers(0)
	require.Len(t, runs, 3)
	f.finish(f.start(runs[0]), domain.OutcomeSucceeded)
	f.start(runs[1])
	plain := f.run(f.job(nil))
	list := func(p store.ListExecutionsParams) []domain.ExecutionID {
		t.Helper()
		p.Tenant, p.Limit = f.tenant, 100
		views, err := f.s.ListExecutions(f.ctx, p)
		f.ok(err)
		var out []domain.ExecutionID
		for _, v := range views {
			out = append(out, v.ID)
		}
		slices.Sort(out)
		return out
	}
	require.Equal(t, []domain.ExecutionID{plain.ID}, list(store.ListExecutionsParams{}))
	require.Equal(t, []domain.ExecutionID{plain.ID}, list(store.ListExecutionsParams{Executor: f.executor}))
	require.Empty(t, list(store.ListExecutionsParams{States: []domain.State{domain.Succeeded}}))
	mine := slices.Sorted(slices.Values(identify(runs)))
	require.Equal(t, mine, list(store.ListExecutionsParams{Cause: domain.CauseTimer}))
	require.Equal(t, mine, list(store.ListExecutionsParams{Job: j.ID}))
	require.Len(t, list(store.ListExecutionsParams{Instance: f.instance}), 2)
	counts, err := f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, f.now().Add(-time.Hour))
	f.ok(err)
	require.Equal(t, map[domain.State]int64{domain.Due: 1}, counts)

	jobs, err := f.s.ListWaitingJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Len(t, jobs, 2, "a timer waits, and a run")
	// The limit is set while a timer's run is on an instance.
	f.ok(f.s.SetLimit(f.ctx, domain.Limit{LimitKey: domain.LimitKey{Tenant: f.tenant, Executor: f.executor}, Max: 1}))
	require.Equal(t, store.OfferBlocked, f.offerTo(f.instance, plain)[0].Status)
}
