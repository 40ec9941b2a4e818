package dispatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func broadcast(s *domain.JobSpec) {
	s.Sharding = domain.Sharding{Mode: domain.ShardBroadcast, OnGone: domain.GoneMiss}
}

func fixed(n int) func(*domain.JobSpec) {
	return func(s *domain.JobSpec) { s.Sharding = domain.Sharding{Mode: domain.ShardFixed, Shards: n} }
}

func TestABroadcastGivesEachInstanceItsShard(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.join(5, nil), r.join(5, nil)
		run := r.Run(r.Job(broadcast), time.Now())
		r.fire(run)
		first, second := one(t, a.sent()), one(t, b.sent())
		require.Equal(t, [2]int{0, 2}, [2]int{first.Execution.Shard, first.Execution.Shards})
		require.Equal(t, [2]int{1, 2}, [2]int{second.Execution.Shard, second.Execution.Shards})
		require.Equal(t, run.ID, first.Execution.Parent)
		r.fire(run) // a copy that comes again
		require.Empty(t, append(a.sent(), b.sent()...))
	})
}

// TestABoundShardWaitsForItsInstance: it goes to no other one, and nobody is kept
// busy with it while it waits.
func TestABoundShardWaitsForItsInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.join(5, nil), r.join(1, nil)
		b.Reserve(1, 1, 1, 0) // it is full
		waits := 0
		r.store.fail(func(method string) error {
			if method == "RecordWaits" {
				waits++
			}
			return nil
		}, nil)
		r.fire(r.Run(r.Job(broadcast), time.Now()))
		require.Equal(t, 0, one(t, a.sent()).Execution.Shard)
		require.Equal(t, 1, waits)
		r.d.SlotsFreed(r.Executor, 0, 5)
		synctest.Wait()
		require.Equal(t, 1, waits, "the room is another instance's")
		b.Release(1, 1)
		r.d.SlotsFreed(r.Executor, b.id, 1)
		synctest.Wait()
		require.Equal(t, 1, one(t, b.sent()).Execution.Shard)

		// One without a session here is left to the other nodes, and to the sweep.
		r.fleet.leave(b)
		r.fire(r.Run(r.Job(broadcast), time.Now()))
		require.Len(t, a.sent(), 1)
		require.Empty(t, b.sent())
	})
}

func TestFixedShardsSpreadOverInstances(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a, b := r.join(5, nil), r.join(5, nil)
		r.fire(r.Run(r.Job(func(s *domain.JobSpec) { fixed(6)(s); s.Routing = domain.RouteFirst }), time.Now()))
		require.Len(t, a.sent(), 3)
		require.Len(t, b.sent(), 3)
	})
}

// TestARunWithShardsWaitsForAnInstance as any other.
func TestARunWithShardsWaitsForAnInstance(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		run := r.Run(r.Job(fixed(2)), time.Now())
		r.fire(run)
		r.settle()
		require.Equal(t, domain.ReasonWaitInstance, r.Find(run.ID).Reason)
		a := r.join(5, nil)
		r.d.SlotsFreed(r.Executor, 0, 5)
		synctest.Wait()
		require.Len(t, a.sent(), 2)
	})
}

// TestASpreadThatIsNotWrittenIsTriedAgain: with its commit lost in the end, too.
func TestASpreadThatIsNotWrittenIsTriedAgain(t *testing.T) {
	for name, lost := range map[string]bool{"not written": false, "answer lost": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				a := r.join(5, nil)
				if lost {
					r.store.fail(nil, only("SpreadExecutions"))
				} else {
					r.store.fail(only("SpreadExecutions"), nil)
				}
				run := r.Run(r.Job(fixed(2)), time.Now())
				r.fire(run)
				require.Empty(t, a.sent())
				r.store.heal()
				r.fire(run)
				if lost { // the shards are there, and nobody has fired them: the sweep does
					require.Empty(t, a.sent())
					time.Sleep(domain.PickupGrace)
					swept, err := r.S.SweepExecutions(t.Context(), store.SweepParams{Partitions: []int{run.Partition}, Limit: 10})
					require.NoError(t, err)
					r.fire(swept.Dispatch...)
				}
				require.Len(t, a.sent(), 2)
			})
		})
	}
}

func TestACancelReachesAllShards(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.join(1, nil)
		run := r.Run(r.Job(fixed(2)), time.Now())
		r.fire(run)
		o := one(t, a.sent())
		r.accept(a, o)
		require.True(t, one(t, a.told()).Granted)
		parent, err := r.S.RequestCancel(t.Context(), r.Tenant, run.ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		r.store.fail(only("CancelParts"), nil)
		r.d.SendCancel(parent)
		synctest.Wait()
		require.Empty(t, a.cancels)
		r.store.heal()
		r.d.SendCancel(parent) // as the sweep does
		synctest.Wait()
		require.Equal(t, o.Execution.ID, a.cancels[0].ID)
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Len(t, r.ended, 1, "the shard that had not started")
	})
}

func TestASpreadThatEndsARunTellsSo(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := r.join(5, nil)
		job := r.Job(func(s *domain.JobSpec) { fixed(2)(s); s.Blocking = domain.BlockDiscard })
		r.fire(r.Run(job, time.Now().Add(-time.Second)))
		require.Len(t, a.sent(), 2)
		r.fire(r.Run(job, time.Now()))
		require.Empty(t, a.sent())
		r.mu.Lock()
		defer r.mu.Unlock()
		require.Equal(t, domain.Discarded, one(t, r.ended).State)
	})
}
