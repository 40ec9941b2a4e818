package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testInventory(t *testing.T, f *fixture) {
	j := f.job(nil)
	granted, running, offered, expired := f.start(f.run(j)), f.start(f.run(j)), f.offer(store.OfferMade, f.run(j)), f.offer(store.OfferMade, f.run(j))
	f.age(expired, domain.OfferTTL)
	again := f.offer(store.OfferMade, f.run(j))
	_, err := f.s.GiveBackOffers(f.ctx, []store.GiveBack{{Tenant: f.tenant, ID: again.ID, Fence: again.Fence, Instance: f.instance}})
	f.ok(err)
	newer := f.start(again) // under fence 2
	done := f.start(f.run(j))
	f.finish(done, domain.OutcomeSucceeded)

	held := func(e domain.Execution, phase domain.HeldPhase) domain.Held {
		return domain.Held{ID: e.ID, Fence: e.Fence, Phase: phase}
	}
	p := store.SettleInventoryParams{Tenant: f.tenant, Executor: f.executor, Instance: f.instance, Items: []domain.Held{
		held(granted, domain.HeldAccepted), held(running, domain.HeldRunning), held(offered, domain.HeldAccepted),
		held(expired, domain.HeldAccepted), held(again, domain.HeldRunning), held(newer, domain.HeldRunning),
		held(done, domain.HeldRunning), {ID: domain.ExecutionID(ids.Next()), Fence: 1, Phase: domain.HeldRunning},
	}}
	got, err := SettleInventory(f.ctx, f.s, p)
	f.ok(err)
	var verdicts []domain.Verdict
	for i, s := range got {
		verdicts = append(verdicts, s.Verdict)
		require.Equal(t, i == 3, s.GivenBack)
		if i < 7 {
			require.Equal(t, f.find(domain.Execution{ID: p.Items[i].ID}), s.Execution)
		}
	}
	const keep, grant, drop = domain.VerdictKeep, domain.VerdictGrant, domain.VerdictDrop
	require.Equal(t, []domain.Verdict{grant, keep, grant, drop, drop, keep, drop, drop}, verdicts)
	require.Equal(t, granted, f.find(granted), "granted once")
	require.Equal(t, domain.Running, f.find(offered).State)
	require.Equal(t, 1, f.find(offered).Attempt)
	require.Equal(t, domain.Due, f.find(expired).State)
	// What an instance says it runs has started: it is not taken for unheard of.
	for _, e := range []*domain.Execution{&newer, &running} {
		heard := f.find(*e)
		require.False(t, heard.StartedAt.IsZero())
		e.StartedAt = heard.StartedAt
		require.Equal(t, *e, heard)
	}
	require.Zero(t, got[7].Execution.ID)

	// Nobody else's word counts: another tenant, executor or process.
	for _, change := range []func(*store.SettleInventoryParams){
		func(p *store.SettleInventoryParams) { p.Tenant++ },
		func(p *store.SettleInventoryParams) { p.Executor++ },
		func(p *store.SettleInventoryParams) { p.Instance++ },
	} {
		foreign := p
		waits := f.offer(store.OfferMade, f.run(j))
		foreign.Items = []domain.Held{held(running, domain.HeldRunning), held(waits, domain.HeldAccepted)}
		change(&foreign)
		got, err := SettleInventory(f.ctx, f.s, foreign)
		f.ok(err)
		require.Equal(t, []domain.Verdict{drop, drop}, []domain.Verdict{got[0].Verdict, got[1].Verdict})
		require.Equal(t, running, f.find(running))
		require.Equal(t, waits, f.find(waits))
	}
	none, err := SettleInventory(f.ctx, f.s, store.SettleInventoryParams{Tenant: f.tenant, Executor: f.executor, Instance: f.instance})
	f.ok(err)
	require.Empty(t, none)
}

// testInventoriesTogether: when a node is gone, all of its instances ask the
// others at once. Each is judged by what is its own.
func testInventoriesTogether(t *testing.T, f *fixture) {
	other := newFixture(t, f.s)
	var list []store.SettleInventoryParams
	var want [][]domain.Verdict
	ask := func(of *fixture, instance domain.InstanceID, items []domain.Held, verdicts ...domain.Verdict) {
		list = append(list, store.SettleInventoryParams{Tenant: of.tenant, Executor: of.executor, Instance: instance, Items: items})
		want = append(want, verdicts)
	}
	of := func(e domain.Execution) domain.Held {
		return domain.Held{ID: e.ID, Fence: e.Fence, Phase: domain.HeldRunning}
	}
	job, foreign := f.job(nil), other.job(nil)
	first := f.start(f.run(job))
	ask(f, f.instance, []domain.Held{of(first)}, domain.VerdictKeep)
	for n := range 4 { // more than one transaction takes
		i := f.register(fmt.Sprint("asks ", n), time.Minute)
		mine := f.grant(f.offerTo(i.ID, f.run(job))[0].Execution)
		waits := f.offerTo(i.ID, f.run(job))[0].Execution
		items := []domain.Held{of(mine), {ID: waits.ID, Fence: waits.Fence, Phase: domain.HeldAccepted}, of(first)}
		verdicts := []domain.Verdict{domain.VerdictKeep, domain.VerdictGrant, domain.VerdictDrop}
		for range 250 {
			items = append(items, domain.Held{ID: domain.ExecutionID(ids.Next()), Fence: 1, Phase: domain.HeldRunning})
			verdicts = append(verdicts, domain.VerdictDrop)
		}
		ask(f, i.ID, items, verdicts...)
	}
	theirs := other.start(other.run(foreign))
	ask(other, other.instance, []domain.Held{of(theirs), of(first)}, domain.VerdictKeep, domain.VerdictDrop)
	ask(other, other.instance, nil)

	got := f.s.SettleInventories(f.ctx, list)
	require.Len(t, got, len(want))
	for i, inventory := range got {
		f.ok(inventory.Err)
		require.Len(t, inventory.Items, len(want[i]))
		for n, item := range inventory.Items {
			require.Equal(t, want[i][n], item.Verdict, "item %d of %d", n, i)
		}
	}
	require.Equal(t, domain.Running, got[1].Items[1].Execution.State)
	require.Zero(t, got[5].Items[1].Execution.ID, "another tenant's is none of its business")
	require.Empty(t, f.s.SettleInventories(f.ctx, nil))
}
