package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testExecutors(t *testing.T, f *fixture) {
	second := domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: f.tenant, Name: "billing_x", Description: "d", State: domain.ExecutorEnabled, Version: 1, CreatedAt: time.UnixMilli(1800000000001).UTC()}
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

func testHeard(t *testing.T, f *fixture) {
	resting := f.register("resting", domain.LeaseTTL+10*time.Second)
	silent, err := RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{
		Instance: domain.Instance{ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: "silent", Build: "d9"},
		Build:    domain.Build{Digest: "d9", Handlers: []string{"h"}, Catalogue: []byte("c")}, TTL: domain.SilentAfter,
	})
	f.ok(err)
	require.Equal(t, 1, f.builds()["d9"].Instances)
	heard := func() []int {
		n, err := f.s.CountHeard(f.ctx, f.tenant, f.executor)
		f.ok(err)
		all, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant})
		f.ok(err)
		return []int{n, all[0].Online, all[0].Total}
	}
	before := heard()
	f.ok(f.s.AgeInstance(f.ctx, resting.ID, 10*time.Second))
	require.Equal(t, before, heard(), "its next heartbeat may come every 10 s")
	f.ok(f.s.AgeInstance(f.ctx, silent.ID, domain.SilentAfter+time.Second))
	require.Equal(t, []int{before[0] - 1, before[1] - 1, before[2]}, heard(), "its lease lasts still")
	for _, i := range []domain.Instance{resting, silent} {
		found, err := f.s.FindInstance(f.ctx, f.tenant, i.ID)
		f.ok(err)
		require.Equal(t, i.ID == silent.ID, found.Silent(f.now()), "rows and statements agree")
	}
	require.Zero(t, f.builds()["d9"].Instances)
	require.True(t, f.builds()["d9"].Present, "it has not gone")
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
	handlers, err := listHandlers(f, f.executor)
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
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
	f.code(domain.CodeNotFound, LeaveInstance(f.ctx, f.s, f.tenant, domain.InstanceID(ids.Next()), ""))
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
	recent := func(since time.Time) int {
		list, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, IncludeGone: true, GoneSince: since})
		f.ok(err)
		return len(list)
	}
	require.Equal(t, []int{2, 1}, []int{recent(f.now().Add(-time.Hour)), recent(f.now().Add(time.Hour))})

	gone, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, IncludeGone: true, OnlyGone: true, GoneSince: f.now().Add(-time.Hour)})
	f.ok(err)
	require.Len(t, gone, 1)
	require.Equal(t, i.ID, gone[0].ID)

	// Eight nodes hear of a new boot at once.
	seen := make([]domain.InstanceID, 8)
	race(8, func(n int) {
		got, err := RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{
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
	_, err = RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{Instance: domain.Instance{ID: 1, TenantID: f.tenant, Executor: 1, BootID: "x"}})
	f.code(domain.CodeNotFound, err)
}

// testInstancesTogether: many register at once after a node's restart, and one
// of them that cannot keeps no other one out.
func testInstancesTogether(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	build := func(digest string) domain.Build {
		return domain.Build{TenantID: f.tenant, Executor: f.executor, Digest: digest, Version: digest, Handlers: []string{"h-" + digest}, Catalogue: []byte("c")}
	}
	of := func(of *fixture, boot string, slots int, digest string) store.RegisterInstanceParams {
		return store.RegisterInstanceParams{
			Instance: domain.Instance{
				ID: domain.InstanceID(ids.Next()), TenantID: of.tenant, Executor: of.executor, BootID: boot, Name: "n-" + boot, Build: digest,
				Labels: map[string]string{"boot": boot}, Handlers: []string{"h-" + digest}, Slots: slots, StartedAt: time.UnixMilli(1800000000001).UTC(),
			},
			Build: build(digest), Handlers: []domain.Handler{{Name: "h-" + digest}}, TTL: time.Hour,
		}
	}
	one := func(p store.RegisterInstanceParams) domain.Instance {
		i, err := RegisterInstance(f.ctx, f.s, p)
		f.ok(err)
		return i
	}
	known, gone, long := one(of(f, "known", 1, "d1")), one(of(f, "gone", 2, "d1")), one(of(f, "long", 2, "d1"))
	_, _, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: long.ID, Running: 2, Slots: 2, Parked: true}}, 3*time.Hour)
	f.ok(err)
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "stopped"))

	orphan := of(f, "orphan", 1, "d1")
	orphan.Instance.Executor = 1
	stranger := of(b, "stranger", 1, "d1")
	stranger.Instance.Executor = f.executor // its tenant has no such executor
	list := []store.RegisterInstanceParams{
		of(f, "new-1", 5, "d2"), orphan, of(f, "gone", 6, "d2"), of(f, "known", 7, "d1"), stranger, of(b, "known", 8, "d1"), of(f, "new-2", 9, "d3"),
		of(f, "long", 3, "d1"), of(f, "new-1", 4, "d2"),
	}
	out, err := f.s.RegisterInstances(f.ctx, list)
	f.ok(err)
	f.code(domain.CodeNotFound, out[1].Err)
	f.code(domain.CodeNotFound, out[4].Err)
	for i, r := range out {
		if i == 1 || i == 4 {
			continue
		}
		f.ok(r.Err)
		got, err := f.s.FindInstance(f.ctx, list[i].Instance.TenantID, r.Instance.ID)
		f.ok(err)
		require.Equal(t, r.Instance, got)
		require.True(t, got.GoneAt.IsZero())
		require.Empty(t, got.GoneReason)
		if i != 0 { // another one of its boot came later
			require.Equal(t, list[i].Instance.Slots, got.Slots)
		}
		require.Equal(t, list[i].Instance.Labels, got.Labels)
		require.True(t, got.LeaseUntil.After(f.now().Add(30*time.Minute)))
	}
	require.Equal(t, []domain.InstanceID{known.ID, gone.ID, long.ID}, []domain.InstanceID{out[3].Instance.ID, out[2].Instance.ID, out[7].Instance.ID})
	require.Equal(t, known.ConnectedAt, out[3].Instance.ConnectedAt)
	require.True(t, out[7].Instance.LeaseUntil.After(f.now().Add(2*time.Hour)), "a lease is never shortened")
	require.Zero(t, out[7].Instance.Running)
	require.Equal(t, out[0].Instance.ID, out[8].Instance.ID, "the same boot is the same instance")
	require.NotEqual(t, known.ID, out[5].Instance.ID, "another tenant's boot of that id is another one")

	builds, err := f.s.ListBuilds(f.ctx, f.tenant, f.executor)
	f.ok(err)
	living := map[string]int{}
	for _, b := range builds {
		living[b.Digest] = b.Instances
	}
	require.Equal(t, map[string]int{"d1": 2, "d2": 2, "d3": 1}, living)
	for _, name := range []string{"h-d1", "h-d2", "h-d3"} {
		_, err := f.s.FindHandler(f.ctx, f.tenant, f.executor, name)
		f.ok(err)
	}
	out, err = f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{orphan})
	f.ok(err)
	f.code(domain.CodeNotFound, out[0].Err)

	// What the database takes of none of them keeps no other one out either.
	bad := of(f, strings.Repeat("x", 100), 1, "d1")
	bad.Instance.ID = known.ID // taken
	out, err = f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{of(f, "new-3", 5, "d1"), bad, of(f, "new-4", 5, "d1")})
	f.ok(err)
	f.ok(out[0].Err)
	require.Error(t, out[1].Err)
	f.ok(out[2].Err)

	// Nodes that hear of the same new boots at once, in different orders.
	seen := make([]map[string]domain.InstanceID, 4)
	race(4, func(n int) {
		var list []store.RegisterInstanceParams
		for i := range 20 {
			list = append(list, of(f, fmt.Sprintf("crowd-%d", (i*7+n*5)%20), 1, "d4"))
		}
		out, err := f.s.RegisterInstances(f.ctx, list)
		if err != nil {
			t.Errorf("register: %v", err)
		}
		seen[n] = map[string]domain.InstanceID{}
		for _, r := range out {
			seen[n][r.Instance.BootID] = r.Instance.ID
		}
	})
	require.Len(t, seen[0], 20)
	for _, s := range seen {
		require.Equal(t, seen[0], s)
	}
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
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "stopped"))
	now, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{
		{ID: unknown}, {ID: f.instance, Running: 3, Slots: 9, Draining: true, DrainingFor: 2 * time.Second}, {ID: gone.ID},
	}, time.Hour)
	f.ok(err)
	require.Equal(t, []domain.InstanceID{f.instance}, renewed)
	got, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Equal(t, []int{3, 9}, []int{got.Running, got.Slots})
	require.True(t, got.Draining)
	require.Equal(t, now.Add(-2*time.Second), got.DrainingAt)
	require.Equal(t, now.Add(time.Hour), got.LeaseUntil)
	_, _, err = f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Draining: true}}, time.Second) // by a node that heard it later
	f.ok(err)
	again, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Equal(t, got.DrainingAt, again.DrainingAt, "the first instant stays")
	later, _, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Quiet: time.Minute}}, time.Hour)
	f.ok(err)
	got, err = f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Zero(t, got.DrainingAt)
	require.Equal(t, later.Add(time.Hour+time.Minute), got.LeaseUntil, "who may be quiet has longer")
	last, _, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: f.instance, Running: 1}}, time.Second)
	f.ok(err)
	got, err = f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	require.Equal(t, later.Add(time.Hour+time.Minute), got.LeaseUntil, "a lease is never shortened")
	require.Equal(t, last, got.LastSeenAt)

	require.Equal(t, []domain.InstanceID{dead.ID}, f.expire(nil))
	got, err = f.s.FindInstance(f.ctx, f.tenant, dead.ID)
	f.ok(err)
	require.False(t, got.GoneAt.IsZero())
	_, renewed, err = f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: dead.ID}}, time.Hour)
	f.ok(err)
	require.Empty(t, renewed, "gone is gone")
	require.True(t, f.register("dead", time.Minute).GoneAt.IsZero(), "until the process registers again")
}

func (f *fixture) supersede(p store.SupersedeBootsParams) ([]domain.InstanceID, error) {
	out := f.s.SupersedeBoots(f.ctx, []store.SupersedeBootsParams{p})
	return out[0].Ended, out[0].Err
}

func testSupersede(t *testing.T, f *fixture) {
	old := f.register("old", time.Hour)
	e := f.grant(f.offerTo(old.ID, f.run(f.job(nil)))[0].Execution)
	other := f.start(f.run(f.job(nil)))
	params := store.SupersedeBootsParams{Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"old", "unknown"}, Grace: 5 * time.Second}
	ended, err := f.supersede(params)
	f.ok(err)
	require.Equal(t, []domain.InstanceID{old.ID}, ended)
	ended, err = f.supersede(params)
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
	_, err := f.supersede(store.SupersedeBootsParams{
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

// testInstancesLeave: at a rolling deploy many leave at once, and are succeeded.
func testInstancesLeave(t *testing.T, f *fixture) {
	other := newFixture(t, f.s)
	job, foreign := f.job(nil), other.job(nil)
	a, b, c := f.register("a", time.Hour), f.register("b", time.Hour), other.register("c", time.Hour)
	left, stays := f.grant(f.offerTo(a.ID, f.run(job))[0].Execution), f.start(f.run(job))
	leave := func(of *fixture, id domain.InstanceID) store.InstanceLeave {
		return store.InstanceLeave{Tenant: of.tenant, ID: id, Reason: "stopped"}
	}
	out := f.s.LeaveInstances(f.ctx, []store.InstanceLeave{leave(f, a.ID), leave(other, b.ID), leave(f, domain.InstanceID(ids.Next())), leave(f, a.ID)})
	require.Len(t, out, 4)
	f.ok(out[0])
	f.code(domain.CodeNotFound, out[1])
	f.code(domain.CodeNotFound, out[2])
	f.ok(out[3])
	require.WithinDuration(t, f.now().Add(domain.LeaseMargin), f.find(left).WakeAt, 3*time.Second)
	require.Equal(t, stays, f.find(stays))
	gone := func(i domain.Instance) bool {
		got, err := f.s.FindInstance(f.ctx, i.TenantID, i.ID)
		f.ok(err)
		return !got.GoneAt.IsZero()
	}
	require.True(t, gone(a))
	require.False(t, gone(b))

	ofB, ofC := f.grant(f.offerTo(b.ID, f.run(job))[0].Execution), other.grant(other.offerTo(c.ID, other.run(foreign))[0].Execution)
	ended := f.s.SupersedeBoots(f.ctx, []store.SupersedeBootsParams{
		{Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"a", "b", "c"}, Grace: time.Hour},
		{Tenant: other.tenant, Executor: other.executor, BootIDs: []string{"c"}, OwedComplete: true},
		{Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"b"}},
		{Tenant: f.tenant, Executor: f.executor},
	})
	require.Equal(t, []store.SupersededBoots{{Ended: []domain.InstanceID{b.ID}}, {Ended: []domain.InstanceID{c.ID}}, {}, {}}, ended)
	require.WithinDuration(t, f.now().Add(time.Hour), f.find(ofB).WakeAt, time.Minute)
	require.False(t, other.find(ofC).WakeAt.After(f.now()), "each by its own grace")
}

// testLostInstances: a lease that ran out a minute ago is told, unless a process of that
// name came back, or the process had said that it leaves or drains.
func testLostInstances(t *testing.T, f *fixture) {
	lost := func() (out []string) {
		list, err := f.s.ListLostInstances(f.ctx)
		f.ok(err)
		for _, x := range list {
			if x.Executor != f.executor {
				continue
			}
			require.Equal(t, []any{f.tenant, 1}, []any{x.Tenant, x.Living}, "the fixture's own")
			require.Positive(t, x.LostSlots)
			require.False(t, x.Since.IsZero())
			out = append(out, x.Lost...)
		}
		return out
	}
	const over = -time.Minute // the lease
	dead, followed, drained, left := f.register("dead", over), f.register("followed", over), f.register("drained", over), f.register("left", time.Minute)
	_, err := f.s.DrainInstance(f.ctx, store.DrainInstanceParams{Tenant: f.tenant, ID: drained.ID, By: "alice"})
	f.ok(err)
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, left.ID, "stopped"))
	f.expire(nil)
	require.Empty(t, lost(), "one may still come back")
	for _, i := range []domain.Instance{dead, followed, drained, left} {
		f.ok(f.s.AgeInstance(f.ctx, i.ID, domain.LostFor+time.Second))
	}
	require.ElementsMatch(t, []string{dead.Name + " on host", followed.Name + " on host"}, lost())
	again, err := RegisterInstance(f.ctx, f.s, store.RegisterInstanceParams{Instance: domain.Instance{
		ID: domain.InstanceID(ids.Next()), TenantID: f.tenant, Executor: f.executor, BootID: "followed again", Name: followed.Name, Slots: 10, StartedAt: time.Now(),
	}, TTL: time.Minute})
	f.ok(err)
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, again.ID, "stopped"))
	require.Equal(t, []string{dead.Name + " on host"}, lost())
	f.setExecutor(domain.ExecutorDisabled, "")
	require.Empty(t, lost(), "its processes are to end")
	f.setExecutor(domain.ExecutorEnabled, "")
	require.Equal(t, []string{dead.Name + " on host"}, lost())
	f.ok(f.s.AgeInstance(f.ctx, dead.ID, domain.LostWindow))
	require.Empty(t, lost())
}

func testDrains(t *testing.T, f *fixture) {
	drained := func() bool {
		list, err := f.s.ListDrained(f.ctx)
		f.ok(err)
		return slices.Contains(list, f.instance)
	}
	drain := func(undo bool) domain.Instance {
		i, err := f.s.DrainInstance(f.ctx, store.DrainInstanceParams{Tenant: f.tenant, ID: f.instance, By: "alice", Undo: undo})
		f.ok(err)
		return i
	}
	connected := func() bool {
		list, err := f.s.ListConnected(f.ctx)
		f.ok(err)
		return slices.Contains(list, f.instance)
	}
	require.False(t, drained())
	require.True(t, connected())
	first := drain(false)
	require.False(t, connected())
	require.Equal(t, []any{true, "alice", false}, []any{first.Draining, first.DrainedBy, first.DrainedAt.IsZero()})
	require.True(t, drained())
	require.Equal(t, first.DrainedAt, drain(false).DrainedAt, "twice is once")

	// The same process stays drained when it comes back, whatever it says itself.
	i, err := f.s.FindInstance(f.ctx, f.tenant, f.instance)
	f.ok(err)
	i.Draining = false
	answers, err := f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{{Instance: i, TTL: time.Minute}})
	f.ok(err)
	require.NoError(t, answers[0].Err)
	require.Equal(t, []any{f.instance, true, first.DrainedAt}, []any{answers[0].Instance.ID, answers[0].Instance.Draining, answers[0].Instance.DrainedAt})
	i.ID, i.BootID = domain.InstanceID(ids.Next()), "the next boot"
	answers, err = f.s.RegisterInstances(f.ctx, []store.RegisterInstanceParams{{Instance: i, TTL: time.Minute}})
	f.ok(err)
	require.False(t, answers[0].Instance.Draining, "another process is not drained")

	require.True(t, drain(true).DrainedAt.IsZero())
	require.False(t, drained())
	_, err = f.s.DrainInstance(f.ctx, store.DrainInstanceParams{Tenant: domain.TenantID(ids.Next()), ID: f.instance})
	f.code(domain.CodeNotFound, err)
	drain(false)
	require.NoError(t, f.s.LeaveInstances(f.ctx, []store.InstanceLeave{{Tenant: f.tenant, ID: f.instance, Reason: "stopped"}})[0])
	require.False(t, drained(), "it has gone")
	_, err = f.s.DrainInstance(f.ctx, store.DrainInstanceParams{Tenant: f.tenant, ID: f.instance})
	f.code(domain.CodeConflict, err)
}
