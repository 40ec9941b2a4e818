package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// heavy is an instance where a run of "bake" takes three slots.
func (r *rig) heavy(slots int) *instance {
	return r.join(slots, func(i *instance) { i.weights = map[string]int{"bake": 3} })
}

func (r *rig) handled(by string, at time.Time) domain.Execution {
	return r.Run(r.Job(func(s *domain.JobSpec) { s.Handler = by }), at)
}

// free gives an attempt's slots back, and tells of them.
func (r *rig) free(from *instance, e domain.Execution) {
	before := from.Free()
	from.Release(e.ID, e.Fence)
	r.d.SlotsFreed(r.Executor, 0, from.Free()-before)
	synctest.Wait()
}

// TestARunIsOfferedOnlyWhereItsSlotsAreFree: not once to an instance that has
// fewer, and at once to the one that has enough.
func TestARunIsOfferedOnlyWhereItsSlotsAreFree(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.heavy(4)
		began := time.Now()
		for range 2 {
			r.fire(r.handled("fry", began))
		}
		light := a.sent()
		require.Len(t, light, 2)
		run := r.handled("bake", began)
		r.fire(run)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Empty(t, a.sent())
		r.settle()
		waits := r.Find(run.ID)
		require.Zero(t, waits.Fence, "it was not offered")
		require.Equal(t, domain.ReasonWaitInstance, waits.Reason)
		require.Equal(t, "a run of the handler takes 3 slots, and no instance that it may go to has so many free", waits.Message)
		r.free(a, light[0].Execution)
		require.Equal(t, run.ID, one(t, a.sent()).Execution.ID)
		require.Zero(t, a.Free())

		b := r.heavy(3)
		another := r.handled("bake", began)
		r.fire(another)
		require.Equal(t, another.ID, one(t, b.sent()).Execution.ID, "another one has room")
	})
}

// TestAWeightBeyondTheSlotsTakesAll as the SDK counts it.
func TestAWeightBeyondTheSlotsTakesAll(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		small := r.heavy(2)
		run := r.handled("bake", time.Now())
		r.fire(run)
		require.Equal(t, run.ID, one(t, small.sent()).Execution.ID)
		require.Zero(t, small.Free())
	})
}

// TestLightRunsDoNotTakeEverySlotThatAHeavyOneWaitsFor: each slot that becomes
// free is kept for it until it has enough, though light runs wait and come.
func TestLightRunsDoNotTakeEverySlotThatAHeavyOneWaitsFor(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.heavy(4)
		began := time.Now()
		for range 4 {
			r.fire(r.handled("fry", began))
		}
		running := a.sent()
		require.Len(t, running, 4)
		heavy := r.handled("bake", began.Add(time.Millisecond))
		first := r.handled("fry", began) // before it
		behind := r.handled("fry", began.Add(2*time.Millisecond))
		time.Sleep(10 * time.Millisecond)
		r.fire(first, heavy, behind)
		require.Empty(t, a.sent())

		r.free(a, running[0].Execution)
		require.Equal(t, first.ID, one(t, a.sent()).Execution.ID, "who comes before it goes first")
		for _, done := range running[1:3] {
			r.free(a, done.Execution)
			fresh := r.handled("fry", time.Now())
			r.fire(fresh)
			require.Empty(t, a.sent())
			r.settle()
			require.Equal(t, "the free slots are kept for a run before this one that takes more of them", r.Find(fresh.ID).Message)
			time.Sleep(time.Millisecond)
		}
		r.free(a, running[3].Execution)
		offer := one(t, a.sent()).Execution
		require.Equal(t, heavy.ID, offer.ID)

		r.free(a, offer)
		var next []domain.ExecutionID
		for _, o := range a.sent() {
			next = append(next, o.Execution.ID)
		}
		require.Len(t, next, 3, "nothing is kept any more")
		require.Contains(t, next, behind.ID)
	})
}

// TestHeavyRunsTakeTurnsWithLightOnes: the second heavy one gets its slots too,
// when what stood before it has gone.
func TestHeavyRunsTakeTurnsWithLightOnes(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.heavy(3)
		began := time.Now().Add(-time.Second)
		r.fire(r.handled("bake", began))
		running := one(t, a.sent()).Execution
		bakes := []domain.Execution{r.handled("bake", began.Add(time.Millisecond)), r.handled("bake", began.Add(5*time.Millisecond))}
		fries := []domain.Execution{r.handled("fry", began.Add(2*time.Millisecond)), r.handled("fry", began.Add(3*time.Millisecond))}
		r.fire(append(fries, bakes...)...)
		require.Empty(t, a.sent())
		r.free(a, running)
		running = one(t, a.sent()).Execution
		require.Equal(t, bakes[0].ID, running.ID)
		r.free(a, running)
		both := a.sent()
		require.Len(t, both, 2)
		require.ElementsMatch(t, []domain.ExecutionID{fries[0].ID, fries[1].ID}, []domain.ExecutionID{both[0].Execution.ID, both[1].Execution.ID})
		r.fire(r.handled("fry", began.Add(6*time.Millisecond)))
		require.Empty(t, a.sent(), "one slot is free, but kept for the second heavy one")
		r.free(a, both[0].Execution)
		require.Empty(t, a.sent())
		r.free(a, both[1].Execution)
		require.Equal(t, bakes[1].ID, one(t, a.sent()).Execution.ID)
	})
}

// TestSlotsAreNotKeptForARunThatIsGone: nobody tells this node of its cancel.
func TestSlotsAreNotKeptForARunThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.heavy(3)
		began := time.Now()
		r.fire(r.handled("fry", began))
		require.Len(t, a.sent(), 1)
		heavy := r.handled("bake", began)
		r.fire(heavy)
		_, err := r.S.RequestCancel(t.Context(), r.Tenant, heavy.ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		light := r.handled("fry", time.Now().Add(time.Millisecond))
		time.Sleep(time.Millisecond)
		r.fire(light)
		require.Empty(t, a.sent())
		time.Sleep(keptFor)
		r.d.SlotsFreed(r.Executor, 0, a.Free()) // as with every heartbeat
		synctest.Wait()
		require.Equal(t, light.ID, one(t, a.sent()).Execution.ID)
	})
}
