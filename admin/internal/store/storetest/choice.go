package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testChoice: what a choice leaves comes back with the run, and rows tell what
// was where at that moment: neither what came later nor what had ended.
func testChoice(t *testing.T, f *fixture) {
	second := f.register("second", time.Minute).ID
	j, other := f.job(nil), f.job(nil)
	now := f.now()
	ended, there, elsewhere := f.runAt(j, now.Add(-5*time.Second)), f.runAt(j, now.Add(-4*time.Second)), f.runAt(other, now.Add(-3*time.Second))
	asked, later, waits := f.runAt(j, now.Add(-2*time.Second)), f.runAt(j, now.Add(-time.Second)), f.runAt(j, now.Add(-time.Second+time.Millisecond))
	f.finish(f.start(ended), domain.OutcomeSucceeded)
	f.tick()
	f.start(there)
	f.offerTo(second, elsewhere)
	f.tick()
	passed := domain.NewPassed(3, func(i int) bool { return i == 1 }, func(i int) domain.InstanceID { return domain.InstanceID(100 + i) })
	got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: asked.ID, Node: 1, Instance: second, Passed: passed}})
	f.ok(err)
	require.Equal(t, store.OfferMade, got[0].Status)
	offered := f.find(asked)
	require.Equal(t, passed, offered.Passed)
	f.tick()
	f.start(later)

	p := store.FindChoiceParams{Tenant: f.tenant, Job: j.ID, Executor: f.executor, Run: asked.ID, At: offered.OfferedAt}
	choice, err := f.s.FindChoice(f.ctx, p)
	f.ok(err)
	require.Equal(t, []domain.Use{
		{Instance: f.instance, OfferedAt: f.find(there).OfferedAt}, {Instance: f.instance, OfferedAt: f.find(ended).OfferedAt},
	}, choice.Uses, "newest first, without itself, what came later (%s) and what nobody got (%s)", later.ID, waits.ID)
	require.Equal(t, map[domain.InstanceID]int{f.instance: 1, second: 1}, choice.Running)

	p.Tenant++
	choice, err = f.s.FindChoice(f.ctx, p)
	f.ok(err)
	require.Empty(t, choice.Uses, "another tenant's")
	require.Empty(t, choice.Running)
}
