package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestInventoryGrantsAnew: the node that granted died before it could say so.
func TestInventoryGrantsAnew(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(3, nil)
		r.fire(r.Run(r.Job(nil), time.Now()))
		o := one(t, to.sent()).Execution
		ask := func() domain.Verdict {
			t.Helper()
			settled := r.d.SettleInventories(t.Context(), []store.SettleInventoryParams{{
				Tenant: r.Tenant, Executor: r.Executor, Instance: to.id, Items: []domain.Held{{ID: o.ID, Fence: o.Fence, Phase: domain.HeldAccepted}},
			}})[0]
			require.NoError(t, settled.Err)
			return one(t, settled.Verdicts)
		}
		require.Equal(t, domain.VerdictGrant, ask(), "the answer was lost: this is the acceptance")
		require.Equal(t, domain.VerdictGrant, ask(), "the grant was lost")
		require.Equal(t, 1, r.Find(o.ID).Attempt)
		r.accept(to, store.OfferResult{Execution: o})
		require.True(t, one(t, to.told()).Granted, "an answer that was only late is not refused")
		require.Empty(t, r.postponed())
	})
}

// TestInventoryBringsBackWhatCannotStart: the offer's time is over, so that the
// run is offered anew at once and not by a sweep.
func TestInventoryBringsBackWhatCannotStart(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(3, nil)
		r.fire(r.Run(r.Job(nil), time.Now()))
		o := one(t, to.sent()).Execution
		time.Sleep(domain.OfferTTL)
		settled := r.d.SettleInventories(t.Context(), []store.SettleInventoryParams{{
			Tenant: r.Tenant, Executor: r.Executor, Instance: to.id, Items: []domain.Held{{ID: o.ID, Fence: o.Fence, Phase: domain.HeldAccepted}},
		}})[0]
		require.NoError(t, settled.Err)
		require.Equal(t, domain.VerdictDrop, one(t, settled.Verdicts))
		require.Equal(t, o.ID, one(t, r.postponed()).ID)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		require.Equal(t, o.Fence+1, one(t, to.sent()).Execution.Fence)
	})
}
