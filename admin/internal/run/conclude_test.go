package run_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Job 1 is serial. One of its runs has the slot, and one waits for it.
const (
	holder domain.ExecutionID = 1
	waiter domain.ExecutionID = 2
	part   domain.ExecutionID = 3 // of the holder
)

// endOfFamily is a world in which all parts of each run were cancelled.
type endOfFamily struct{ *world }

func (endOfFamily) Family(*run.Move) (domain.Family, error) {
	return domain.Family{Shards: map[domain.State]int{domain.Cancelled: 1}}, nil
}

// transition is a method of a batch, by which the holder ends or gives up its slot.
type transition struct {
	kind  run.Kind
	state domain.State // of the holder
	move  func(w *world, b *run.Batch) error
}

var transitions = map[string]transition{
	"Finish": {run.Ends, domain.Running, func(_ *world, b *run.Batch) error {
		results, err := b.Finish([]store.AttemptReport{{Tenant: tenant, Executor: executor, Report: domain.Report{ExecutionID: holder, Fence: 1, Outcome: domain.OutcomeSucceeded}}})
		return onceWoken(b, err, func() bool { return len(results[0].Woken) == 1 })
	}},
	"RequestCancel": {run.Ends, domain.Due, func(_ *world, b *run.Batch) error {
		_, err := b.RequestCancel(tenant, holder, domain.ReasonKilled, "")
		return err
	}},
	"Sweep": {run.Sweeps, domain.Running, func(_ *world, b *run.Batch) error {
		swept, err := b.Sweep([]domain.ExecutionID{holder}, time.Second)
		return onceWoken(b, err, func() bool { return len(swept.Dispatch) == 1 })
	}},
	"EndOrphans": {run.Ends, domain.Running, func(w *world, b *run.Batch) error {
		ended := b.EndOrphans(&store.EndOrphansParams{Tenant: tenant, Executor: executor, Instance: 2}, w.now)
		return onceWoken(b, nil, func() bool { return len(ended.Woken) == 1 })
	}},
	"TakeBack": {run.Ends, domain.Due, func(_ *world, b *run.Batch) error {
		delete(b.Moves, part)
		_, err := b.TakeBack(domain.JobEnabled)
		return err
	}},
	"CancelParts": {run.Ends, domain.Cancelling, func(w *world, b *run.Batch) error {
		b.Moves[holder].E.Stage, b.Parents[holder], b.Source = domain.StageShards, true, endOfFamily{w}
		ended, err := b.CancelParts([]domain.ExecutionID{part})
		return onceWoken(b, err, func() bool { return len(ended.Woken) == 1 })
	}},
	"Offer": {run.Offers, domain.Due, func(w *world, b *run.Batch) error {
		w.exclude()
		_, err := b.Offer([]store.Offer{{Tenant: tenant, ID: holder, Node: 1, Instance: 1}})
		return err
	}},
	"Wait": {run.Waits, domain.Due, func(w *world, b *run.Batch) error {
		w.exclude()
		_, err := b.Wait([]store.Wait{{Tenant: tenant, ID: holder, Reason: domain.ReasonWaitInstance}})
		return err
	}},
	"Spread": {run.Spreads, domain.Due, func(w *world, b *run.Batch) error {
		w.exclude()
		w.jobs[1].Sharding = domain.Sharding{Mode: domain.ShardFixed, Shards: 1}
		_, err := b.Spread([]store.Spread{{Tenant: tenant, ID: holder}})
		return err
	}},
}

// touching are the methods of a batch that neither take nor free a slot.
var touching = []string{"Admit", "AsMoved", "Conclude", "Find", "Freed", "GiveBack", "Grant", "LivingPart", "Settle", "Start", "Stored"}

// onceWoken is err, or a failure if a result does not have the waiter once the batch is stored.
func onceWoken(b *run.Batch, err error, has func() bool) error {
	if err == nil {
		err = b.Conclude()
	}
	b.Stored()
	if err == nil && !has() {
		err = domain.Errorf(domain.CodeNotFound, "the result does not have the woken run")
	}
	return err
}

// exclude begins maintenance that skips what is due now.
func (w *world) exclude() {
	w.maintenance = domain.Maintenances{{}: {{Mode: domain.MaintenanceSkip, Since: w.now.Add(-time.Minute), EndsAt: w.now.Add(time.Minute)}}}
}

// Each transition that frees a slot wakes the successor, or names the job for a second
// transaction. A new method of a batch has to be in one of the lists.
func TestTransitionsWakeTheSuccessor(t *testing.T) {
	known := slices.Clone(touching)
	for name, c := range transitions {
		known = append(known, name)
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(int) int { return 0 })
			run1 := domain.Execution{
				ID: holder, TenantID: tenant, JobID: 1, Executor: executor, Revision: 1, State: c.state, Cause: domain.CauseSchedule, HoldsSlot: true,
				FireAt: w.now, NotBefore: w.now, WakeAt: w.now, MaxAttempts: 1, PlannedAt: w.now.Add(-time.Second),
			}
			if c.state != domain.Due {
				run1.Fence, run1.Attempt, run1.Instance, run1.OfferedAt = 1, 1, 2, w.now.Add(-time.Minute) // the lease of 2 is over
			}
			if name == "TakeBack" { // it was offered ahead of its time
				run1.FireAt, run1.NotBefore = w.now.Add(time.Second), w.now.Add(time.Second)
			}
			w.rows[holder] = run1
			w.rows[waiter] = domain.Execution{
				ID: waiter, TenantID: tenant, JobID: 1, Executor: executor, Revision: 1, State: domain.Due, Reason: domain.ReasonWaitSlot, Cause: domain.CauseManual,
				FireAt: w.now.Add(time.Millisecond), NotBefore: w.now, WakeAt: w.now.Add(run.SlotCheck), MaxAttempts: 1,
			}
			w.rows[part] = domain.Execution{ID: part, TenantID: tenant, JobID: 1, Executor: executor, Revision: 1, State: domain.Due, Parent: holder, Part: domain.PartShard}
			row := w.rows[waiter]
			w.holders[1], w.queues[1] = 1, []run.Waiter{run.WaiterOf(&row)}
			b := w.batch()
			b.Kind = c.kind
			require.NoError(t, c.move(w, b))
			require.NoError(t, b.Conclude())
			require.Zero(t, b.Slots[1].Holders)
			if c.kind.Wakes() {
				require.Empty(t, b.Moves[waiter].E.Reason, "it is woken")
				require.Empty(t, b.Freed(), "nothing is left to do")
				return
			}
			require.Equal(t, domain.ReasonWaitSlot, b.Moves[waiter].E.Reason)
			require.Equal(t, []domain.JobID{1}, b.Freed())
			w.save(b)
			after := w.batch()
			after.Kind = run.Successors
			require.NoError(t, after.Conclude())
			require.Empty(t, after.Moves[waiter].E.Reason, "it is woken by the transaction that follows")
		})
	}
	methods := reflect.TypeFor[*run.Batch]()
	for i := range methods.NumMethod() {
		require.Contains(t, known, methods.Method(i).Name, "does it free a slot?")
	}
}

// A transaction that has not loaded a slot cannot free it.
func TestASlotThatIsNotLoadedIsNotFreed(t *testing.T) {
	w := newWorld(t, func(int) int { return 0 })
	w.rows[holder] = domain.Execution{ID: holder, TenantID: tenant, JobID: 1, State: domain.Due, HoldsSlot: true}
	b := w.batch()
	delete(b.Slots, 1)
	_, err := b.RequestCancel(tenant, holder, domain.ReasonKilled, "")
	require.NoError(t, err)
	require.ErrorContains(t, b.Conclude(), "slot")
}
