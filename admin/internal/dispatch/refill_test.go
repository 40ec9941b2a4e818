package dispatch

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// waitElsewhere makes runs of a job that wait in the database alone.
func (r *rig) waitElsewhere(job domain.Job, n int) {
	var waits []store.Wait
	for range n {
		waits = append(waits, store.Wait{Tenant: r.Tenant, ID: r.Run(job, time.Now()).ID, Reason: domain.ReasonWaitInstance})
	}
	_, err := r.S.RecordWaits(r.World.T.Context(), waits)
	require.NoError(r.World.T, err)
}

// TestAGainedPartitionsWaitersAreLoaded: the dead node
// looked after them, so their rows ask for no look before the end of the wait.
func TestAGainedPartitionsWaitersAreLoaded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		var held []domain.PartitionTerm
		r.d.held.list = func() []domain.PartitionTerm { return held }
		job := r.Job(nil)
		r.waitElsewhere(job, 3)
		to := r.join(10, nil)
		r.look()
		require.Empty(t, to.sent(), "they are another node's")
		held = append(held, domain.PartitionTerm{Partition: job.Partition, Term: 2})
		r.look()
		require.Len(t, to.sent(), 3)
		r.look()
		synctest.Wait()
		require.Empty(t, to.sent())
	})
}

// TestARunBeginsToWaitAtAnyTime: a node that has lost a partition may note for seconds that
// it looks after a run. Each look of the new holder finds what waits then.
func TestARunBeginsToWaitAtAnyTime(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := r.Job(nil)
		run := r.Run(job, time.Now())
		held := []domain.PartitionTerm{{Partition: job.Partition, Term: 2}}
		r.d.held.list = func() []domain.PartitionTerm { return held }
		to := r.join(10, nil)
		for range 20 {
			r.look()
			time.Sleep(LookEvery)
		}
		require.Empty(t, to.sent())
		_, err := r.S.RecordWaits(t.Context(), []store.Wait{{Tenant: r.Tenant, ID: run.ID, Reason: domain.ReasonWaitInstance}})
		require.NoError(t, err)
		r.look()
		require.Len(t, to.sent(), 1)
	})
}

// TestFreeSlotsServeOtherPartitions: a node with free slots takes runs of another node's
// partition after that node had time for them. It takes a few first, and more if they start.
// It takes none of a line with runs of its own.
func TestFreeSlotsServeOtherPartitions(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.d.held.list = func() []domain.PartitionTerm { return nil }
		job := r.Job(nil)
		to := r.join(100, nil)
		r.waitElsewhere(job, 100)
		r.look()
		require.Empty(t, to.sent(), "they are left to the holder")
		time.Sleep(store.OwnFor)
		var sent []int
		for range 4 {
			r.look()
			sent = append(sent, len(to.sent()))
		}
		require.Equal(t, []int{othersLeast, 2 * othersLeast, 100 - 3*othersLeast, 0}, sent)
	})
}

// TestRunsThatNoInstanceHereTakesLeave: the runs are of another node's partition, and no
// instance here serves their handler. They do not stay in memory, and are not written.
func TestRunsThatNoInstanceHereTakesLeave(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.d.held.list = func() []domain.PartitionTerm { return nil }
		to := r.join(100, func(i *instance) { i.handler = "another" })
		r.waitElsewhere(r.Job(nil), 100)
		time.Sleep(store.OwnFor)
		writes := 0
		r.store.fail(func(method string) error {
			if method == "RecordWaits" || method == "OfferExecutions" {
				writes++
			}
			return nil
		}, nil)
		for range 10 {
			r.look()
			require.Zero(t, r.d.waits.queues.runs)
		}
		require.Empty(t, to.sent())
		require.Zero(t, writes)
	})
}

// TestARunThatStandsStillIsSeen: the check goes by rows and slots. A run that this node
// believes to look after does not start, because its place in memory was lost.
func TestARunThatStandsStillIsSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(0, nil)
		job := r.Job(nil)
		run := r.Run(job, time.Now())
		r.fire(run)
		r.settle()
		lost := &offering{of: &r.d.due} // a batch that never ends
		r.d.opt.Table.Lock()
		r.d.opt.Table.Move(&run, lost)
		r.d.opt.Table.Unlock()
		look := func(d time.Duration) time.Duration {
			for range d / LookEvery {
				r.look()
				time.Sleep(LookEvery)
			}
			return r.d.Stalled()
		}
		require.Zero(t, look(time.Minute), "no slot is free")
		to.mu.Lock()
		to.slots, to.handler = 1, "another"
		to.mu.Unlock()
		require.Zero(t, look(time.Minute), "the instance does not serve its handler")
		to.mu.Lock()
		to.handler = ""
		to.mu.Unlock()
		require.GreaterOrEqual(t, look(3*StalledAfter), StalledAfter)
		require.Len(t, r.log.read(), 1)
		r.d.opt.Table.Lock()
		r.d.opt.Table.Pass(run.ID, lost, nil)
		r.d.opt.Table.Unlock()
		require.Zero(t, look(time.Second))
		require.Len(t, to.sent(), 1)
	})
}

// TestALineIsLoadedByTurns: while its first run is late, half of the loaded runs are the
// freshest ones. A line that is full of runs does not hide another one.
func TestALineIsLoadedByTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(0, nil)
		job := r.Job(nil)
		var waits []store.Wait
		for i := range loadedRuns + 100 {
			e := r.Run(job, time.Now().Add(time.Duration(i-20_000)*time.Millisecond))
			waits = append(waits, store.Wait{Tenant: r.Tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Line: 1})
		}
		other := r.Run(job, time.Now())
		waits = append(waits, store.Wait{Tenant: r.Tenant, ID: other.ID, Reason: domain.ReasonWaitInstance, Line: 2})
		for part := range slices.Chunk(waits, offerBatch) {
			_, err := r.S.RecordWaits(t.Context(), part)
			require.NoError(t, err)
		}
		r.look()
		require.Equal(t, loadedRuns+1, r.d.waits.queues.runs)
		at := func(i int) bool { return len(r.d.Unattended([]domain.ExecutionID{waits[i].ID})) == 0 }
		require.True(t, at(0))
		require.False(t, at(loadedRuns/2+50))
		require.True(t, at(loadedRuns+99))
		require.True(t, at(loadedRuns+100), "the other line")
	})
}

// TestALineThatCannotBeReadIsNotInTheWay. The lines behind it are loaded in the same look.
func TestALineThatCannotBeReadIsNotInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(10, nil)
		job := r.Job(nil)
		var waits []store.Wait
		for line := range int64(3) {
			waits = append(waits, store.Wait{Tenant: r.Tenant, ID: r.Run(job, time.Now()).ID, Reason: domain.ReasonWaitInstance, Line: line + 1})
		}
		_, err := r.S.RecordWaits(t.Context(), waits)
		require.NoError(t, err)
		reads := 0
		r.store.fail(func(method string) error {
			if method == "ListWaiting" {
				if reads++; reads == 1 {
					return errDatabase
				}
			}
			return nil
		}, nil)
		require.ErrorIs(t, r.d.LookAfterWaiting(t.Context()), errDatabase)
		synctest.Wait()
		require.Len(t, to.sent(), 2, "the lines after it")
	})
}

// TestEachLineHasItsShare: one look loads of each line, although the first ones have more than
// it may load.
func TestEachLineHasItsShare(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(0, nil)
		job := r.Job(nil)
		const lines = 2 * loadMost / loadedRuns
		list := make([]domain.Execution, loadedRuns)
		loaded := map[int64]int{}
		r.store.listed = func(p store.ListWaitingParams) []domain.Execution {
			has := min(p.Limit, len(list))
			if p.Line == 1 {
				has = 1 // its share is for the lines behind it
			}
			loaded[p.Line] = has
			return list[:has] // they leave memory at once
		}
		var waits []store.Wait
		for line := range int64(lines) {
			waits = append(waits, store.Wait{Tenant: r.Tenant, ID: r.Run(job, time.Now()).ID, Reason: domain.ReasonWaitInstance, Line: line + 1})
		}
		_, err := r.S.RecordWaits(t.Context(), waits)
		require.NoError(t, err)
		require.NoError(t, r.d.look.refill(t.Context(), time.Now()))
		require.Len(t, loaded, lines)
		for line := range int64(lines - 1) {
			require.Greater(t, loaded[line+2], loadMost/lines)
		}
	})
}
