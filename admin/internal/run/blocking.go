package run

import (
	"fmt"
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
	if ended, err := b.endUnattended(m); err != nil || ended {
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
		r.Status = store.OfferDiscarded
		return b.discard(m, domain.ReasonOverlap, "an earlier run of the job had not ended")
	}
	if full, err := b.queueFull(m, s); err != nil || full {
		r.Status = store.OfferDiscarded
		return err
	}
	s.enqueue(&m.E)
	b.leaveQueues(&m.E, nil)
	r.Status = store.OfferBlocked
	return m.E.Wait(b.Now, domain.ReasonWaitSlot, "", b.Now.Add(SlotCheck))
}

func (b *Batch) discard(m *Move, reason domain.Reason, message string) error {
	fx, err := m.E.Discard(b.Now, reason, message)
	if err == nil {
		b.apply(m, fx)
	}
	return err
}

// queueFull discards a fire of the schedule if as many runs wait for the job's slot as
// may, and writes an alert. There is no bound for runs that somebody asked for, or that
// wait for the end of maintenance. A run keeps its place in the queue. Runs of a job that covers end
// each other. The slot's row has the number of waiters.
func (b *Batch) queueFull(m *Move, s *Slot) (full bool, err error) {
	if m.Spec.Blocking == domain.BlockCover {
		return false, nil
	}
	if m.E.Cause != domain.CauseSchedule || m.E.State != domain.Due || m.E.Attempt > 0 || s.Waiting[m.E.ID] || s.Waiters < m.Spec.QueueLimit() {
		return false, nil
	}
	b.tellPile(m, s, true)
	return true, b.discard(m, domain.ReasonQueueFull, fmt.Sprintf("%d runs of the job waited for its slot", s.Waiters))
}

// pilesUp writes an alert if a run of the schedule has taken longer than the time between
// its fire and the fire of the next run that waits. It costs no query: the head of the
// queue is loaded with the end of a run.
func (b *Batch) pilesUp(m *Move) {
	s := b.Slots[m.E.JobID]
	if s == nil || len(s.Queue) == 0 || m.E.Cause != domain.CauseSchedule {
		return
	}
	next := b.Moves[s.Queue[0].ID]
	took, ended := m.E.Duration()
	slots := m.Spec.SlotLimit()
	if !ended || slots == 0 || next == nil || next.E.Cause != domain.CauseSchedule {
		return
	}
	if domain.PilesUp(s.Waiters, slots, took, next.E.FireAt.Sub(m.E.FireAt)/time.Duration(slots)) {
		b.tellPile(m, s, false)
	}
}

// headWaits writes the alert for a run that does not end: the head of the queue is swept
// while it waits, every SlotCheck. All holders have to be longer at work than the interval,
// because a queue also gets shorter after an outage.
func (b *Batch) headWaits(m *Move) error {
	s := b.Slots[m.E.JobID]
	slots := m.Spec.SlotLimit()
	if s.Waiters < domain.PileAt || len(s.Queue) < 2 || s.Queue[0].ID != m.E.ID || slots == 0 || m.E.Cause != domain.CauseSchedule {
		return nil
	}
	since, err := b.Source.HeldSince(m.E.JobID, m.E.FireAt)
	if err != nil || since.IsZero() {
		return err
	}
	if domain.PilesUp(s.Waiters, slots, b.Now.Sub(since), time.Duration(s.Queue[1].FireAt-s.Queue[0].FireAt)*time.Millisecond) {
		b.tellPile(m, s, false)
	}
	return nil
}

// tellPile adds one event for each job of the batch.
func (b *Batch) tellPile(m *Move, s *Slot, full bool) {
	e := domain.AlertEvent{
		TenantID: m.E.TenantID, Kind: domain.AlertRunsPileUp, JobID: m.E.JobID, Revision: m.E.Revision, CreatedAt: b.Now,
		Detail: domain.PileMessage(s.Waiters, full), DedupeKey: domain.PileKey(m.E.JobID, b.Now),
	}
	if !slices.ContainsFunc(b.Alerts, func(o domain.AlertEvent) bool { return o.DedupeKey == e.DedupeKey }) {
		b.Alerts = append(b.Alerts, e)
	}
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
