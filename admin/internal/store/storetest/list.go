package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testListExecutions(t *testing.T, f *fixture) {
	now := f.now()
	a := f.job(func(s *domain.JobSpec) { s.Name = "close 50% off" })
	b := f.job(func(s *domain.JobSpec) { s.Name, s.Handler = "report", "other" })
	var all []domain.Execution // in the order of their ids
	for i := range 12 {
		j := a
		if i%3 == 2 {
			j = b
		}
		all = append(all, f.runAt(j, now.Add(time.Duration(i-20)*time.Second)))
	}
	for i := 0; i < 8; i += 2 {
		f.finish(f.start(all[i]), domain.OutcomeSucceeded)
	}
	f.finish(f.start(all[1]), domain.OutcomeFailed)
	f.start(all[3])
	other := f.register("boot-2", time.Minute)
	f.grant(f.offerTo(other.ID, all[5])[0].Execution)

	list := func(p store.ListExecutionsParams) (out []int) {
		t.Helper()
		p.Tenant = f.tenant
		for {
			page, err := f.s.ListExecutions(f.ctx, p)
			f.ok(err)
			if len(page) == 0 {
				return out
			}
			for _, v := range page {
				out = append(out, slices.IndexFunc(all, func(e domain.Execution) bool { return e.ID == v.ID }))
			}
			p.Before = page[len(page)-1].ID
		}
	}
	for _, limit := range []int{1, 5, 100} {
		require.Equal(t, []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, list(store.ListExecutionsParams{Limit: limit}))
		require.Equal(t, []int{6, 4, 2, 1, 0}, list(store.ListExecutionsParams{States: []domain.State{domain.Succeeded, domain.Failed}, Limit: limit}))
		require.Equal(t, []int{11, 8, 5, 2}, list(store.ListExecutionsParams{Job: b.ID, Limit: limit}))
		require.Equal(t, []int{2}, list(store.ListExecutionsParams{Job: b.ID, States: []domain.State{domain.Succeeded}, Limit: limit}))
		require.Len(t, list(store.ListExecutionsParams{Executor: f.executor, Limit: limit}), 12)
		require.Equal(t, []int{5}, list(store.ListExecutionsParams{Instance: other.ID, Limit: limit}))
		require.Equal(t, []int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, list(store.ListExecutionsParams{Within: domain.Within(f.executor, 999), Limit: limit}))
		require.Equal(t, []int{11, 8, 5, 2}, list(store.ListExecutionsParams{Within: domain.Within(f.executor), Job: b.ID, Limit: limit}))
		require.Equal(t, []int{10, 9, 7, 6, 4, 3, 1, 0}, list(store.ListExecutionsParams{JobQuery: "50% OFF", Limit: limit}))
	}
	require.Empty(t, list(store.ListExecutionsParams{JobQuery: "5%0"}))
	for _, p := range []store.ListExecutionsParams{{}, {Job: b.ID}, {Executor: f.executor}, {Instance: other.ID}, {States: []domain.State{domain.Succeeded}}} {
		for _, p.Within = range []domain.Reach{domain.Within(), domain.Within(999)} {
			require.Empty(t, list(p))
		}
	}
	require.Empty(t, list(store.ListExecutionsParams{Cause: domain.CauseSchedule}))
	require.Len(t, list(store.ListExecutionsParams{Cause: domain.CauseManual}), 12)
	made := func(i int) time.Time { return domain.IDTime(int64(all[i].ID)) }
	require.Empty(t, list(store.ListExecutionsParams{To: made(0)}))
	require.Len(t, list(store.ListExecutionsParams{From: made(0)}), 12)
	for i := range all {
		var since, before []int
		for k := range all {
			if made(k).Before(made(i)) {
				before = append([]int{k}, before...)
			} else {
				since = append([]int{k}, since...)
			}
		}
		require.Equal(t, since, list(store.ListExecutionsParams{From: made(i), Limit: 5}))
		require.Equal(t, before, list(store.ListExecutionsParams{To: made(i), Limit: 5}))
	}
	// A run that is written ahead belongs to its fire time.
	fire := made(11).Truncate(time.Second).Add(4 * time.Second)
	all = append(all, f.runAt(b, fire))
	for _, p := range []store.ListExecutionsParams{{}, {Job: b.ID}, {Executor: f.executor}, {Within: domain.Within(f.executor)}, {States: []domain.State{domain.Due}}, {JobQuery: "report"}} {
		p.From = fire
		require.Equal(t, []int{12}, list(p))
		p.From, p.To = fire.Add(-time.Second), fire
		require.Empty(t, list(p))
		p.Tenant = f.tenant
		total, err := f.s.TotalExecutions(f.ctx, p)
		f.ok(err)
		require.Zero(t, total.Count)
		p.From, p.To = fire, fire.Add(time.Millisecond)
		require.Equal(t, []int{12}, list(p))
		total, err = f.s.TotalExecutions(f.ctx, p)
		f.ok(err)
		require.Equal(t, 1, total.Count)
		p.From, p.To = fire.Add(time.Millisecond), time.Time{}
		require.Empty(t, list(p))
	}

	view, err := f.s.FindExecution(f.ctx, f.tenant, all[5].ID)
	f.ok(err)
	require.Equal(t, []string{"report", "other", "shop", "boot-2 name"}, []string{view.JobName, view.Handler, view.ExecutorName, view.InstanceName})
}

func testCountExecutions(t *testing.T, f *fixture) {
	start := f.now().Add(-time.Minute)
	j := f.job(nil)
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	f.finish(f.start(f.run(j)), domain.OutcomeSucceeded)
	f.run(j)
	got, err := f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, start)
	f.ok(err)
	require.Equal(t, map[domain.State]int64{domain.Succeeded: 2, domain.Due: 1}, got)
	got, err = f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, time.Now().Add(time.Minute))
	f.ok(err)
	require.Empty(t, got)
}
