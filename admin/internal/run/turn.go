package run

import "github.com/carillon-sched/carillon/admin/internal/domain"

// turn is one execution of a batch while the batch decides about it: whether it may
// start now, waits, or ends.
type turn struct {
	b    *Batch
	m    *Move
	e    *domain.Execution // of the move
	spec *domain.JobSpec
}

func (b *Batch) turn(m *Move) turn { return turn{b, m, &m.E, m.Spec} }

// apply carries out a move of the execution, unless the move was illegal.
func (t turn) apply(fx domain.Effects, err error) error {
	if err == nil {
		t.b.apply(t.m, fx)
	}
	return err
}

// slotToTake is the slot that an execution has to take before it starts; nil:
// none, or it has it.
func (t turn) slotToTake() *Slot {
	if t.e.HoldsSlot || t.spec.SlotLimit() == 0 {
		return nil
	}
	return t.b.Slots[t.e.JobID]
}
