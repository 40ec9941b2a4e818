package dispatch

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
)

var roomSpec = &domain.JobSpec{Handler: "close-day", Blocking: domain.BlockParallel}

func waitingRun(id domain.ExecutionID, due time.Time, change func(*waiting)) *waiting {
	w := &waiting{execution: domain.Execution{ID: id, Executor: 1, State: domain.Due, FireAt: due, NotBefore: due}, spec: roomSpec}
	if change != nil {
		change(w)
	}
	w.line = waiter{execution: w.execution, spec: w.spec}.line()
	return w
}

func runIDs(list []domain.Execution) (out []domain.ExecutionID) {
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// TestWhoLeavesAFullLine: the runs between the oldest and the freshest wait in the database
// alone from then on.
func TestWhoLeavesAFullLine(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	var spilled []*waiting
	for i := range domain.ExecutionID(maxWaiting + 5) {
		spilled = append(spilled, waits.add(waitingRun(i+1, now.Add(time.Duration(i)), nil), false)...)
	}
	require.Len(t, spilled, 5)
	for i, w := range spilled {
		require.Equal(t, domain.ExecutionID(maxWaiting/2+1+i), w.execution.ID)
	}
	require.Equal(t, maxWaiting, waits.runs)
	l := waits.of(1, 0, now)[0]
	late := now.Add(2 * lateAfter)
	require.ElementsMatch(t, []domain.ExecutionID{1, 2, maxWaiting + 5, maxWaiting + 4}, runIDs(taken(waits.take(l, 4, 1<<30, late))))
	waits.drop(maxWaiting / 2) // the last one of the older half
	for i := range domain.ExecutionID(6) {
		spilled = waits.add(waitingRun(2*maxWaiting+i, now.Add(time.Hour), nil), false)
	}
	require.Len(t, spilled, 1)
	require.InDelta(t, maxWaiting/2, int(spilled[0].execution.ID), 20)
	require.Len(t, taken(waits.take(l, 2*maxWaiting, 1<<30, now)), maxWaiting)
	require.Empty(t, waits.of(1, 0, now))
	require.Zero(t, waits.runs)
	require.Zero(t, waits.lines)
	require.Empty(t, waits.executors)
	require.Empty(t, waits.numbers)
}

// TestInputsCountInALine: a line with large inputs has fewer runs.
func TestInputsCountInALine(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	input := make([]byte, 250<<10)
	for i := range domain.ExecutionID(100) {
		waits.add(waitingRun(i+1, now.Add(time.Duration(i)), func(w *waiting) { w.execution.Input = input }), false)
	}
	require.Equal(t, maxWaiting/251, waits.runs)
	require.LessOrEqual(t, waits.size, maxWaiting)
	require.Len(t, waits.numbers, 1)
	require.Len(t, taken(waits.take(waits.of(1, 0, now)[0], 100, 1<<30, now)), maxWaiting/251)
	require.Zero(t, waits.size)
	require.Empty(t, waits.numbers)
}

// TestAllLinesTogetherAreBounded: more lines have shorter ones.
func TestAllLinesTogetherAreBounded(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	id := domain.ExecutionID(0)
	for executor := range domain.ExecutorID(15) {
		for range maxWaiting {
			id++
			waits.add(waitingRun(id, now, func(w *waiting) { w.execution.Executor = executor + 1 }), false)
		}
	}
	require.Less(t, waits.runs, 3*maxWaitingAll/2)
	require.Equal(t, waits.runs, waits.table.Len())
}

func TestInputsOnTheirWayBoundWhatIsTaken(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	spec := *roomSpec
	spec.Input = []byte("1234567890")
	for i := range domain.ExecutionID(6) {
		waits.add(waitingRun(i+1, now, func(w *waiting) { w.spec = &spec }), false)
	}
	l := waits.of(1, 0, now)[0]
	require.Len(t, taken(waits.take(l, 5, 25, now)), 3, "two that fit, and one more")
	require.Len(t, taken(waits.take(l, 5, 0, now)), 1)
	require.Len(t, taken(waits.take(l, 5, 1000, now)), 2)
}

// TestALateLineTakesTurns: the oldest that still may wait and the freshest, by
// turns; what is past its deadline leaves by itself.
func TestALateLineTakesTurns(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	for i := range domain.ExecutionID(8) {
		waits.add(waitingRun(i+1, now.Add(time.Duration(i-20)*time.Second), func(w *waiting) {
			if i < 2 {
				w.execution.ExpireAt = now // its wait is over
			}
		}), false)
	}
	l := waits.of(1, 0, now)[0]
	require.Equal(t, []domain.ExecutionID{3, 8, 4, 7, 5, 6}, runIDs(taken(waits.take(l, 10, 1<<30, now))))

	for i := range domain.ExecutionID(4) {
		waits.add(waitingRun(i+1, now.Add(time.Duration(i-4)*time.Second/4), nil), false)
	}
	require.Equal(t, []domain.ExecutionID{1, 2, 3, 4}, runIDs(taken(waits.take(l, 10, 1<<30, now))), "nothing is late")
}

// TestLateLinesTakeTurns: of three lines one has the oldest runs all the time, and
// one has but few. Each gets its places, and the fresh ones of each get theirs.
func TestLateLinesTakeTurns(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	id := domain.ExecutionID(0)
	add := func(handler string, age time.Duration) {
		id++
		waits.add(waitingRun(id, now.Add(-age), func(w *waiting) { w.spec = &domain.JobSpec{Handler: handler, Blocking: domain.BlockParallel} }), false)
	}
	for i := range time.Duration(1000) {
		add("patient", 5*time.Minute-i*time.Millisecond)
		add("short", time.Minute-i*time.Millisecond)
	}
	served, fresh := map[string]int{}, map[string]int{}
	for i := range 400 {
		if i%10 == 0 {
			add("rare", 0)
			add("short", 0)
		}
		l := waits.of(1, 0, now)[0]
		w := taken(waits.take(l, 1, 1<<30, now))[0]
		served[l.handler]++
		if w.FireAt.Equal(now) {
			fresh[l.handler]++
		}
	}
	require.Equal(t, map[string]int{"rare": 40, "short": 40}, fresh, "at once, all of them")
	require.GreaterOrEqual(t, served["short"], 100)
	require.GreaterOrEqual(t, served["patient"], 200)
}

// TestRunsOfASerialJobKeepTheirOrder: the job's first run has the turn of its freshest.
func TestRunsOfASerialJobKeepTheirOrder(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	spec := *roomSpec
	spec.Blocking = domain.BlockSerial
	for i := range domain.ExecutionID(6) {
		waits.add(waitingRun(i+1, now.Add(time.Duration(i-20)*time.Second), func(w *waiting) {
			w.spec, w.execution.JobID = &spec, domain.JobID(1+i%2)
		}), false)
	}
	l := waits.of(1, 0, now)[0]
	require.Equal(t, []domain.ExecutionID{1, 2, 3, 4, 5, 6}, runIDs(taken(waits.take(l, 10, 1<<30, now))))
}

// TestPriorityCountsAmongTheFreshest.
func TestPriorityCountsAmongTheFreshest(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	for i := range domain.ExecutionID(5) {
		waits.add(waitingRun(i+1, now.Add(-10*time.Second), func(w *waiting) { w.execution.Priority = int(i) }), false)
	}
	l := waits.of(1, 0, now)[0]
	require.Equal(t, []domain.ExecutionID{5, 4, 3, 2, 1}, runIDs(taken(waits.take(l, 10, 1<<30, now))), "the more urgent first, whoever's turn it is")
}

// TestTheRoomAgainstAModel: whatever comes and goes, both orders and all indexes
// hold the same runs.
func TestTheRoomAgainstAModel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	there := map[domain.ExecutionID]bool{}
	for range 20_000 {
		id := domain.ExecutionID(random.IntN(400) + 1)
		switch random.IntN(4) {
		case 0, 1:
			waits.add(waitingRun(id, now.Add(time.Duration(id%37)*time.Second), func(w *waiting) {
				w.execution.Executor, w.execution.Bound = domain.ExecutorID(id%3+1), domain.InstanceID(id%5)
				w.execution.Priority = int(id % 7)
			}), false)
			there[id] = true
		case 2:
			waits.drop(id)
			delete(there, id)
		default:
			for _, l := range waits.of(domain.ExecutorID(id%3+1), domain.InstanceID(id%5), now) {
				for _, e := range taken(waits.take(l, random.IntN(3), 1<<30, now.Add(time.Duration(random.IntN(60))*time.Second))) {
					require.True(t, there[e.ID])
					delete(there, e.ID)
				}
			}
		}
		require.Equal(t, len(there), waits.runs)
		require.Equal(t, len(there), waits.table.Len())
		queues, runs := 0, 0
		for _, at := range waits.executors {
			all := []map[line]*queue{at.open}
			for _, of := range at.bound {
				all = append(all, of)
			}
			for _, of := range all {
				for _, q := range of {
					require.Positive(t, q.old.Len())
					require.Equal(t, q.old.Len(), q.fresh.Len())
					queues++
					runs += q.old.Len()
				}
			}
		}
		require.Equal(t, waits.lines, queues)
		require.Equal(t, len(there), runs)
	}
}

// TestWhatDoesNotWaitAnyMoreLeaves: it was cancelled, or its job deleted, or the instance
// that a shard waits for has gone for good. Nobody tells this node.
func TestWhatDoesNotWaitAnyMoreLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.join(0, nil)
		job := r.Job(nil)
		cancelled, stays := r.Run(job, time.Now()), r.Run(job, time.Now())
		shard := r.Run(job, time.Now())
		shard.Bound = 4711
		r.fire(cancelled, stays, shard)
		require.Equal(t, 3, r.d.waits.queues.runs)
		for _, id := range []domain.ExecutionID{cancelled.ID, shard.ID} {
			_, err := r.S.RequestCancel(t.Context(), r.Tenant, id, domain.ReasonKilled, "")
			require.NoError(t, err)
		}
		for range 12 {
			time.Sleep(time.Second)
			r.look()
		}
		require.Equal(t, 1, r.d.waits.queues.runs)
		require.Empty(t, r.d.Unattended([]domain.ExecutionID{stays.ID}))
		time.Sleep(time.Until(stays.ExpireAt))
		r.look()
		require.Zero(t, r.d.opt.Table.Len(), "its wait is over")
		require.Len(t, r.d.Unattended([]domain.ExecutionID{stays.ID}), 1, "the sweep may end it")
	})
}

// TestAFreedSlotAsksNobodyElsesShards: lines for other instances are not looked at.
func TestAFreedSlotAsksNobodyElsesShards(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	for i := range domain.ExecutionID(1000) {
		waits.add(waitingRun(i+1, now, func(w *waiting) { w.execution.Bound = domain.InstanceID(i + 1) }), false)
	}
	require.Empty(t, waits.of(1, 0, now))
	require.Len(t, waits.of(1, 7, now), 1)
	require.Empty(t, waits.of(1, 1001, now))
}

// TestDeadRunsCostNothing: what is past its deadline takes no slot, no offer and
// no place in the wait queues.
func TestDeadRunsCostNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		job := r.Job(nil)
		var dead []domain.Execution
		for range 10 {
			dead = append(dead, r.Run(job, time.Now()))
		}
		live := r.Run(job, time.Now().Add(6*time.Minute))
		time.Sleep(time.Until(live.FireAt))
		calls := 0
		r.store.fail(func(string) error { calls++; return nil }, nil)
		r.fire(append(dead, live)...)
		require.Equal(t, live.ID, one(t, to.sent()).Execution.ID)
		require.Zero(t, r.d.waits.queues.runs)
		r.store.heal()
		require.Equal(t, int64(0), r.Find(dead[0].ID).Fence)
		require.LessOrEqual(t, calls, 3)
	})
}

// TestAnOfferThatComesTooLateEndsTheRun: the deadline is the row's, whatever a
// node's memory says.
func TestAnOfferThatComesTooLateEndsTheRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		to := r.join(1, nil)
		run := r.Run(r.Job(nil), time.Now())
		time.Sleep(time.Until(run.ExpireAt))
		run.ExpireAt = time.Time{} // an old copy
		r.fire(run)
		require.Empty(t, to.sent())
		require.Equal(t, domain.Missed, r.Find(run.ID).State)
		require.Equal(t, 1, to.Free())
	})
}

// TestARefusalDoesNotMakeALineEarly: a run that a full instance has refused comes
// back to the head of its line. It is as late as before.
func TestARefusalDoesNotMakeALineEarly(t *testing.T) {
	waits := newWaitQueues(new(runtable.Table))
	now := time.Now()
	for i := range domain.ExecutionID(4) {
		waits.add(waitingRun(i+1, now.Add(time.Duration(i-20)*time.Second), func(w *waiting) {
			w.execution.ExpireAt = w.execution.FireAt.Add(domain.DefaultDispatchTimeout)
			w.execution.NotBefore = now
		}), false)
	}
	l := waits.of(1, 0, now)[0]
	require.Equal(t, []domain.ExecutionID{1, 4, 2, 3}, runIDs(taken(waits.take(l, 10, 1<<30, now))))
}

// taken leaves out the ranks of those who take turns.
func taken(list []domain.Execution, _ map[domain.ExecutionID]int64) []domain.Execution { return list }

// TestAFreshRunKeepsItsTurn on the way to an instance: what it takes turns with
// does not go before it there, where only the first find room.
func TestAFreshRunKeepsItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := r.Job(nil)
		for range 6 {
			r.fire(r.Run(job, time.Now()))
		}
		time.Sleep(time.Minute)
		fresh := r.Run(job, time.Now())
		r.fire(fresh)
		to := r.join(4, nil)
		r.d.SlotsFreed(r.Executor, to.id, 4)
		synctest.Wait()
		var at []int
		for i, o := range to.sent() {
			if o.Execution.ID == fresh.ID {
				at = append(at, i)
			}
		}
		require.Len(t, at, 1, "it has its turn")
		require.Less(t, at[0], 3, "and is not the last of those that are sent together")
	})
}
