package run

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// enter decides by the state of the job, maintenance, its misfire policy and its
// blocking strategy whether an execution may go on now. If not, r says what became of it.
// The slot is left for the caller to take.
func (b *Batch) enter(m *Move, since time.Time, r *store.OfferResult) (in bool, err error) {
	r.Status = store.OfferDiscarded
	if ended, err := b.endStopped(m); err != nil || ended {
		return false, err
	}
	if stays, ended, err := b.maintained(m); err != nil || stays {
		if !ended {
			r.Status = store.OfferBlocked
		}
		return false, err
	}
	if ended, err := b.lapse(m, since); err != nil || ended {
		return false, err
	}
	if m.E.SendsSpent(m.Spec.SendRetry) {
		fx, err := m.E.SendFailed(b.Now)
		b.apply(m, fx)
		return false, err
	}
	if m.E.Expired(b.Now) {
		fx, err := m.E.Expire(b.Now)
		b.apply(m, fx)
		return false, err
	}
	r.Status = store.OfferGone
	s := b.slotToTake(m)
	if s == nil {
		return true, nil
	}
	if m.Spec.Blocking == domain.BlockCover {
		var later bool
		if r.Covered, later, err = b.cover(m, s); err != nil || later {
			r.Status = store.OfferDiscarded
			return false, err
		}
	}
	if !s.Admits(&m.E, m.Spec.SlotLimit()) {
		return false, b.block(m, s, r)
	}
	return true, nil
}

// block lets an execution wait for its job's slot, or drops it. A retry is not
// dropped: its run has begun, and only the try waits.
func (b *Batch) block(m *Move, s *Slot, r *store.OfferResult) error {
	b.Contended = append(b.Contended, s.Job)
	// A run of a backfill waits instead: it was asked for, and it is not late.
	if m.Spec.Blocking == domain.BlockDiscard && m.E.State == domain.Due && m.E.Attempt == 0 && m.E.Cause != domain.CauseBackfill {
		fx, err := m.E.Discard(b.Now, "an earlier run of the job had not ended")
		if err != nil {
			return err
		}
		r.Status = store.OfferDiscarded
		b.apply(m, fx)
		return nil
	}
	s.enqueue(&m.E)
	b.leaveQueues(&m.E, nil)
	r.Status = store.OfferBlocked
	return m.E.Wait(b.Now, domain.ReasonWaitSlot, "", b.Now.Add(SlotCheck))
}

// cover ends the earlier runs of m's job, or tells them to stop, so that m can
// take their place. When a later run has done so before, m itself is ended:
// later.
func (b *Batch) cover(m *Move, s *Slot) (covered []domain.Execution, later bool, err error) {
	if s.FromCache {
		return nil, false, nil // it is free, or this transaction is repeated
	}
	me := WaiterOf(&m.E)
	others := b.byID(func(o *Move) bool { return o != m && o.E.JobID == m.E.JobID && (o.E.HoldsSlot || s.Waiting[o.E.ID]) })
	for _, o := range others {
		if me.before(WaiterOf(&o.E)) {
			fx, err := m.E.Cover(b.Now, "a later run of the job was due before this one started")
			if err != nil {
				return nil, false, err
			}
			b.apply(m, fx)
			return nil, true, nil
		}
	}
	for _, o := range others {
		if o.E.State == domain.Cancelling || o.E.Lingers {
			continue // those have been told
		}
		fx, err := o.E.Cover(b.Now, "the run of "+m.E.FireAt.UTC().Format("2006-01-02T15:04:05.000Z")+" took its place")
		if err != nil {
			return nil, false, err
		}
		b.apply(o, fx)
		covered = append(covered, o.E)
	}
	return covered, false, nil
}

// order is the order in which executions that want to start are decided: by
// precedence, so that the first ones get what room there is, but those of one
// job that has a slot by fire time; of a job that covers, the latest first.
func (b *Batch) order(ids []domain.ExecutionID) []int {
	order := make([]int, len(ids))
	ranks := make([]Place, len(ids))
	byJob := map[domain.JobID][]int{} // places in order
	for i, id := range ids {
		order[i], ranks[i].ID = i, id
		if m := b.Moves[id]; m != nil {
			ranks[i] = PlaceOf(&m.E)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int { return ComparePlaces(ranks[x], ranks[y]) })
	for at, i := range order {
		if m := b.Moves[ids[i]]; m != nil && b.Slots[m.E.JobID] != nil {
			byJob[m.E.JobID] = append(byJob[m.E.JobID], at)
		}
	}
	for _, places := range byJob {
		if len(places) < 2 {
			continue
		}
		own, sign := make([]int, len(places)), 1
		for n, at := range places {
			own[n] = order[at]
			if b.Moves[ids[own[n]]].Spec.Blocking == domain.BlockCover {
				sign = -1
			}
		}
		slices.SortStableFunc(own, func(x, y int) int {
			return sign * CompareWaiters(WaiterOf(&b.Moves[ids[x]].E), WaiterOf(&b.Moves[ids[y]].E))
		})
		for n, at := range places {
			order[at] = own[n]
		}
	}
	return order
}
