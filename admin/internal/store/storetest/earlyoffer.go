package storetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testOfferAhead: a run may be offered before its time and is not granted before
// it, and an edit takes it back with its slot. The database's clock does not wait
// for the test, so it tries until all of that fell before the run's time.
func testOfferAhead(t *testing.T, f *fixture) {
	j := f.job(serial)
	tooLate := func(e domain.Execution) bool {
		for f.now().Before(e.FireAt) {
		}
		f.finish(f.grant(e), domain.OutcomeSucceeded)
		return false
	}
	inTime := func() bool {
		e := f.fire(j, f.now().Add(2*domain.OfferAhead))[0]
		ahead := e.FireAt.Add(-domain.OfferAhead)
		got := f.offerTo(f.instance, e)[0]
		if got.Status == store.OfferMade {
			require.False(t, got.Execution.OfferedAt.Before(ahead))
			return tooLate(got.Execution)
		}
		require.Equal(t, store.OfferGone, got.Status)
		for f.now().Before(ahead) {
		}
		e = f.offer(store.OfferMade, e)
		if !e.OfferedAt.Before(e.FireAt) {
			return tooLate(e)
		}
		grants, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: e.ID, Fence: e.Fence, Instance: e.Instance}})
		f.ok(err)
		if grants[0].Granted {
			require.False(t, grants[0].Execution.GrantedAt.Before(e.FireAt))
			f.finish(grants[0].Execution, domain.OutcomeSucceeded)
			return false
		}
		_, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Next: at(domain.Never)})
		f.ok(err)
		if !f.now().Before(e.FireAt) {
			if after, err := f.s.FindExecution(f.ctx, f.tenant, e.ID); err == nil { // the edit came too late for it
				f.finish(f.grant(after.Execution), domain.OutcomeSucceeded)
			}
			return false
		}
		_, err = f.s.FindExecution(f.ctx, f.tenant, e.ID)
		f.code(domain.CodeNotFound, err)
		return true
	}
	for tries := 1; !inTime(); tries++ {
		require.Less(t, tries, 100, "the machine is too slow for it")
		view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
		f.ok(err)
		j = view
	}
	f.start(f.run(j)) // the slot is free
}
