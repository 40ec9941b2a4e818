package dispatch

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// TestALaterRunCoversTheOneThatFillsTheHouse: the only instance is busy with the
// earlier run, which is told to stop and makes room.
func TestALaterRunCoversTheOneThatFillsTheHouse(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, func(i *instance) { i.idempotent = true })
		job := r.Job(func(s *domain.JobSpec) { s.Blocking = domain.BlockCover })
		base := time.Now().Add(-time.Minute)
		runs := []domain.Execution{r.Run(job, base), r.Run(job, base.Add(time.Second)), r.Run(job, base.Add(2*time.Second))}
		r.fire(runs[0])
		first := one(t, to.sent()).Execution
		r.fire(runs[1])
		require.Empty(t, to.sent())
		told := func() []domain.Execution {
			to.mu.Lock()
			defer to.mu.Unlock()
			return to.cancels
		}
		cancel := one(t, told())
		require.Equal(t, first.ID, cancel.ID)
		require.Equal(t, domain.ReasonCovered, cancel.Reason)
		r.fire(runs[2])
		require.Len(t, told(), 1, "once; the sweep repeats it")
		require.Equal(t, runs[1].ID, one(t, r.ended).ID)
		r.finish(to, first)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, runs[2].ID, one(t, to.sent()).Execution.ID)
		require.Equal(t, domain.Discarded, r.Find(runs[1].ID).State)
	})
}

// TestLimitsHoldAndNobodyIsForgotten: many runs of two executors under two
// limits, started by those that end alone; no sweep helps here.
func TestLimitsHoldAndNobodyIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		const each, most, all = 60, 3, 4
		other := *r.World
		other.Executor = domain.ExecutorID(storetest.NewID())
		require.NoError(t, r.S.CreateExecutor(t.Context(), domain.Executor{ID: other.Executor, TenantID: r.Tenant, Name: "other"}))
		require.NoError(t, r.S.SetLimit(t.Context(), domain.Limit{LimitKey: domain.LimitKey{Tenant: r.Tenant, Executor: r.Executor}, Max: most}))
		require.NoError(t, r.S.SetLimit(t.Context(), domain.Limit{LimitKey: domain.LimitKey{Tenant: r.Tenant}, Max: all}))
		var mu sync.Mutex
		on, done := map[domain.ExecutorID]int{}, 0
		for _, w := range []*storetest.World{r.World, &other} {
			to := &instance{id: w.Instance(fmt.Sprint("boot ", w.Executor), time.Hour), slots: 20, idempotent: true, executor: w.Executor}
			to.onOffers = func(offers []store.OfferResult) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range offers {
					on[w.Executor]++
					if on[r.Executor] > most || on[r.Executor]+on[other.Executor] > all {
						t.Errorf("%d and %d runs at once", on[r.Executor], on[other.Executor])
					}
					time.AfterFunc(7*time.Millisecond, func() {
						mu.Lock()
						on[w.Executor]--
						done++
						mu.Unlock()
						r.finishFor(w, to, o.Execution)
					})
				}
			}
			r.fleet.join(to)
			r.d.fire(flood(w, each, nil))
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		require.Equal(t, 2*each, done)
	})
}
