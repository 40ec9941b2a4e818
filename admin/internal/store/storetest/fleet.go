package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testExecutors(t *testing.T, f *fixture) {
	second := domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: f.tenant, Name: "billing_x", Description: "d", CreatedAt: time.UnixMilli(1800000000001).UTC()}
	f.ok(f.s.CreateExecutor(f.ctx, second))
	f.code(domain.CodeConflict, f.s.CreateExecutor(f.ctx, domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: f.tenant, Name: "billing_x"}))
	found, err := f.s.FindExecutor(f.ctx, f.tenant, second.ID)
	f.ok(err)
	require.Equal(t, second, found)
	found, err = f.s.FindExecutorByName(f.ctx, f.tenant, "billing_x")
	f.ok(err)
	require.Equal(t, second, found)
	_, err = f.s.FindExecutorByName(f.ctx, f.tenant, "none")
	f.code(domain.CodeNotFound, err)

	f.register("gone soon", -time.Minute, domain.Handler{Name: "a"}, domain.Handler{Name: "b"})
	all, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant})
	f.ok(err)
	require.Len(t, all, 2)
	require.Equal(t, store.ExecutorSummary{Executor: second}, all[0])
	require.Equal(t, []int{1, 2, 2}, []int{all[1].Online, all[1].Total, all[1].Handlers})
	page, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant, After: "billing_x", Limit: 1})
	f.ok(err)
	require.Equal(t, "shop", page[0].Name)
	page, err = f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant, Query: "G_X"})
	f.ok(err)
	require.Len(t, page, 1)
	page, err = f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant, Query: "b%x"})
	f.ok(err)
	require.Empty(t, page)
}

func testInstances(t *testing.T, f *fixture) {
	i := f.register("boot-2", time.Minute, domain.Handler{Name: "z", Description: "one", InputSchema: []byte("{}")}, domain.Handler{Name: "a", Idempotent: true})
	found, err := f.s.FindInstance(f.ctx, f.tenant, i.ID)
	f.ok(err)
	require.Equal(t, i, found)
	require.Equal(t, map[string]string{"zone": "a"}, found.Labels)
	require.Equal(t, []string{"close-day"}, found.Handlers)
	require.True(t, found.LeaseUntil.After(f.now().Add(30*time.Second)))

	again := f.register("boot-2", time.Hour, domain.Handler{Name: "z", Description: "two"})
	require.Equal(t, i.ID, again.ID, "the same boot is the same instance")
	require.Equal(t, i.ConnectedAt, again.ConnectedAt)
	handlers, err := f.s.ListHandlers(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Len(t, handlers, 2)
	require.Equal(t, "two", handlers[1].Description)
	require.Nil(t, handlers[1].InputSchema)
	a, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, "a")
	f.ok(err)
	require.True(t, a.Idempotent)
	_, err = f.s.FindHandler(f.ctx, f.tenant, f.executor, "none")
	f.code(domain.CodeNotFound, err)

	n, err := f.s.CountOnline(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, 2, n)
	f.ok(f.s.LeaveInstance(f.ctx, f.tenant, i.ID, "stopped"))
	f.code(domain.CodeNotFound, f.s.LeaveInstance(f.ctx, f.tenant, domain.InstanceID(ids.Next()), ""))
	n, err = f.s.CountOnline(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, 1, n)
	living, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, Executor: f.executor})
	f.ok(err)
	require.Len(t, living, 1)
	all, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, IncludeGone: true})
	f.ok(err)
	require.Len(t, all, 2)
	require.Equal(t, i.ID, all[1].ID, "the living first")
	require.Equal(t, "stopped", all[1].GoneReason)

	// Eight nodes hear of a new boot at once.
	seen := make([]domain.InstanceID, 8)
	race(8, func(n int) {
		got, err := f.s.RegisterInstance(f.ctx, store.RegisterInstanceParams{
			Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: "boot-8", Name: "x"},
			Handlers: []domain.Handler{{Name: "h1"}, {Name: "h2"}}, TTL: time.Minute,
		})
		if err != nil {
			t.Errorf("register: %v", err)
		}
		seen[n] = got.ID
	})
	for _, id := range seen {
		require.Equal(t, seen[0], id)
	}
	_, err = f.s.RegisterInstance(f.ctx, store.RegisterInstanceParams{Instance: domain.Instance{ID: 1, TenantID: f.tenant, Executor: 1, BootID: "x"}})
	f.code(domain.CodeNotFound, err)
}

func testHeld(t *testing.T, f *fixture) {
	j := f.job(nil)
	due, offered, running, ended := f.run(j), f.offer(store.OfferMade, f.run(j)), f.start(f.run(j)), f.start(f.run(j))
	f.finish(ended, domain.OutcomeSucceeded)
	held := func(e domain.Execution, fence int64) domain.Held { return domain.Held{ID: e.ID, Fence: fence} }
	asked := []domain.Held{held(due, 1), held(offered, 1), held(running, 1), held(running, 2), held(ended, 1), {ID: 1, Fence: 1}}
	got, err := f.s.ListHeld(f.ctx, f.tenant, f.instance, asked)
	f.ok(err)
	require.ElementsMatch(t, []domain.Held{held(offered, 1), held(running, 1)}, got)
	got, err = f.s.ListHeld(f.ctx, f.tenant, f.instance+1, asked)
	f.ok(err)
	require.Empty(t, got, "another instance holds none of them")
}

func testLeases(t *testing.T, f *fixture) {
	dead := f.register("dead", -time.Minute)
	unknown := domain.InstanceID(ids.Next())
	gone := f.register("gone", time.Minute)
	f.ok(f.s.LeaveInstance(f.ctx, f.tenant, gone.ID, "stopped"))
	now, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{
		{ID: unknown}, {ID: f.instance, Running: 3, Slots: 9, Draining: true}, {ID: gone.ID},
	}, time.Hour)
	f.ok(err)
	require.Equal(t, []domain.InstanceID{f.instance}, renewed)
	got, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Equal(t, []int{3, 9}, []int{got.Running, got.Slots})
	require.True(t, got.Draining)
	require.Equal(t, now.Add(time.Hour), got.LeaseUntil)
	_, _, err = f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance}}, time.Second)
	f.ok(err)
	got, err = f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Equal(t, now.Add(time.Hour), got.LeaseUntil, "a lease is never shortened")

	expired, err := f.s.ExpireInstances(f.ctx, 1000, time.Time{})
	f.ok(err)
	var mine []domain.InstanceID
	for _, i := range expired {
		if i.TenantID == f.tenant {
			mine = append(mine, i.ID)
		}
	}
	require.Equal(t, []domain.InstanceID{dead.ID}, mine)
	got, err = f.s.FindInstance(f.ctx, f.tenant, dead.ID)
	f.ok(err)
	require.False(t, got.GoneAt.IsZero())
	_, renewed, err = f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: dead.ID}}, time.Hour)
	f.ok(err)
	require.Empty(t, renewed, "gone is gone")
	require.True(t, f.register("dead", time.Minute).GoneAt.IsZero(), "until the process registers again")
}

func testSupersede(t *testing.T, f *fixture) {
	old := f.register("old", time.Hour)
	e := f.grant(f.offerTo(old.ID, f.run(f.job(nil)))[0].Execution)
	other := f.start(f.run(f.job(nil)))
	params := store.SupersedeBootsParams{Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"old", "unknown"}, Grace: 5 * time.Second}
	ended, err := f.s.SupersedeBoots(f.ctx, params)
	f.ok(err)
	require.Equal(t, []domain.InstanceID{old.ID}, ended)
	ended, err = f.s.SupersedeBoots(f.ctx, params)
	f.ok(err)
	require.Empty(t, ended)
	require.WithinDuration(t, f.now().Add(5*time.Second), f.find(e).WakeAt, 3*time.Second)
	require.Equal(t, other, f.find(other))
	// Its journal's results arrive within the grace …
	require.Equal(t, store.FinishStored, f.finish(e, domain.OutcomeSucceeded).Code)
	require.Equal(t, domain.Succeeded, f.find(e).State)
}

// testSupersedeProven: with the whole list of what its journal owes, nobody
// waits for the rest of a dead process.
func testSupersedeProven(t *testing.T, f *fixture) {
	old := f.register("old", time.Hour)
	j := f.job(nil)
	offered := f.offerTo(old.ID, f.run(j), f.run(j))
	owed, dead := f.grant(offered[0].Execution), f.grant(offered[1].Execution)
	_, err := f.s.SupersedeBoots(f.ctx, store.SupersedeBootsParams{
		Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"old"}, Grace: time.Hour,
		Owed: []domain.ExecutionID{owed.ID}, OwedComplete: true,
	})
	f.ok(err)
	f.tick()
	f.sweep()
	require.Equal(t, domain.Lost, f.find(dead).State)
	require.Equal(t, domain.Running, f.find(owed).State, "its result is on its way")
	require.Equal(t, store.FinishStored, f.finish(owed, domain.OutcomeSucceeded).Code)
}
