package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// An offer that ends its run frees the slot. The successor is woken by the transaction that
// follows, as in gormstore.
func TestAnOfferThatEndsItsRunWakesTheSuccessor(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000).UTC()
	d := newDatabase(func() time.Time { return now })
	d.createJob(domain.Job{ID: 1, TenantID: tenant, Spec: domain.JobSpec{Blocking: domain.BlockSerial}}, domain.Never)
	run := domain.Execution{
		ID: 1, TenantID: tenant, JobID: 1, Revision: 1, State: domain.Due, Cause: domain.CauseManual, HoldsSlot: true, Fence: 1, MaxAttempts: 1,
		FireAt: now.Add(-time.Minute), NotBefore: now.Add(-time.Minute), WakeAt: now, ExpireAt: now,
	}
	next := run
	next.ID, next.FireAt, next.HoldsSlot, next.Reason, next.Fence, next.ExpireAt = 2, now.Add(-time.Second), false, domain.ReasonWaitSlot, 0, time.Time{}
	require.True(t, d.insert(run))
	require.True(t, d.insert(next))
	d.jobs[1].holders, d.jobs[1].waiters = 1, []domain.ExecutionID{2}
	results := d.offer(nil, []store.Offer{{Tenant: tenant, ID: 1, Node: 1, Instance: 1}})
	require.Equal(t, store.OfferDiscarded, results[0].Status)
	require.Zero(t, d.jobs[1].holders)
	require.Empty(t, d.find(2).Reason, "it is woken")
}
