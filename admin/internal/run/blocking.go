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
func (t turn) enter(since time.Time, r *store.OfferResult) (in bool, err error) {
	r.Status = store.OfferDiscarded
	if ended, err := t.endStopped(); err != nil || ended {
		return false, err
	}
	if stays, ended, err := t.maintained(); err != nil || stays {
		if !ended {
			r.Status = store.OfferBlocked
		}
		return false, err
	}
	if ended, err := t.lapse(since); err != nil || ended {
		return false, err
	}
	if t.e.Sends().Spent(t.spec.SendRetry) {
		return false, t.apply(t.e.SendFailed(t.b.Now))
	}
	if ended, err := t.endUnattended(); err != nil || ended {
		return false, err
	}
	if t.e.Expired(t.b.Now) {
		return false, t.apply(t.e.Expire(t.b.Now))
	}
	r.Status = store.OfferGone
	s := t.slotToTake()
	if s == nil {
		return true, nil
	}
	if t.spec.Blocking == domain.BlockCover {
		var later bool
		if r.Covered, later, err = t.cover(s); err != nil || later {
			r.Status = store.OfferDiscarded
			return false, err
		}
	}
	if !s.Admits(t.e, t.spec.SlotLimit()) {
		return false, t.block(s, r)
	}
	return true, nil
}

// block lets an execution wait for its job's slot, or drops it. A retry is not
// dropped: its run has begun, and only the try waits.
func (t turn) block(s *Slot, r *store.OfferResult) error {
	t.b.Contended = append(t.b.Contended, s.Job)
	// A run of a backfill waits instead: it was asked for, and it is not late.
	if t.spec.Blocking == domain.BlockDiscard && t.e.State == domain.Due && t.e.Attempt == 0 && t.e.Cause != domain.CauseBackfill {
		r.Status = store.OfferDiscarded
		return t.apply(t.e.Discard(t.b.Now, domain.ReasonOverlap, "an earlier run of the job had not ended"))
	}
	if full, err := t.queueFull(s); err != nil || full {
		r.Status = store.OfferDiscarded
		return err
	}
	s.enqueue(t.e)
	t.b.Limits.leave(t.e, nil)
	r.Status = store.OfferBlocked
	return t.e.Wait(t.b.Now, domain.ReasonWaitSlot, "", t.b.Now.Add(SlotCheck))
}

// queueFull discards a fire of the schedule if as many runs wait for the job's slot as
// may, and writes an alert. There is no bound for runs that somebody asked for, or that
// wait for the end of maintenance. A run keeps its place in the queue. Runs of a job that covers end
// each other. The slot's row has the number of waiters.
func (t turn) queueFull(s *Slot) (full bool, err error) {
	if t.spec.Blocking == domain.BlockCover {
		return false, nil
	}
	if t.e.Cause != domain.CauseSchedule || t.e.State != domain.Due || t.e.Attempt > 0 || s.Waiting[t.e.ID] || s.Waiters < t.spec.QueueLimit() {
		return false, nil
	}
	t.tellPile(s, true)
	return true, t.apply(t.e.Discard(t.b.Now, domain.ReasonQueueFull, fmt.Sprintf("%d runs of the job waited for its slot", s.Waiters)))
}

// pilesUp writes an alert if a run of the schedule has taken longer than the time between
// its fire and the fire of the next run that waits. It costs no query: the head of the
// queue is loaded with the end of a run.
func (t turn) pilesUp() {
	s := t.b.Slots[t.e.JobID]
	if s == nil || len(s.Queue) == 0 || t.e.Cause != domain.CauseSchedule {
		return
	}
	next := t.b.Moves[s.Queue[0].ID]
	took, ended := t.e.Duration()
	slots := t.spec.SlotLimit()
	if !ended || slots == 0 || next == nil || next.E.Cause != domain.CauseSchedule {
		return
	}
	if domain.PilesUp(s.Waiters, slots, took, next.E.FireAt.Sub(t.e.FireAt)/time.Duration(slots)) {
		t.tellPile(s, false)
	}
}

// headWaits writes the alert for a run that does not end: the head of the queue is swept
// while it waits, every SlotCheck. All holders have to be longer at work than the interval,
// because a queue also gets shorter after an outage.
func (t turn) headWaits() error {
	s := t.b.Slots[t.e.JobID]
	slots := t.spec.SlotLimit()
	if s.Waiters < domain.PileAt || len(s.Queue) < 2 || s.Queue[0].ID != t.e.ID || slots == 0 || t.e.Cause != domain.CauseSchedule {
		return nil
	}
	since, err := t.b.Source.HeldSince(t.e.JobID, t.e.FireAt)
	if err != nil || since.IsZero() {
		return err
	}
	if domain.PilesUp(s.Waiters, slots, t.b.Now.Sub(since), time.Duration(s.Queue[1].FireAt-s.Queue[0].FireAt)*time.Millisecond) {
		t.tellPile(s, false)
	}
	return nil
}

// tellPile adds one event for each job of the batch.
func (t turn) tellPile(s *Slot, full bool) {
	e := domain.AlertEvent{
		TenantID: t.e.TenantID, Kind: domain.AlertRunsPileUp, JobID: t.e.JobID, Revision: t.e.Revision, CreatedAt: t.b.Now,
		Detail: domain.PileMessage(s.Waiters, full), DedupeKey: domain.PileKey(t.e.JobID, t.b.Now),
	}
	if !slices.ContainsFunc(t.b.Alerts, func(o domain.AlertEvent) bool { return o.DedupeKey == e.DedupeKey }) {
		t.b.Alerts = append(t.b.Alerts, e)
	}
}

// cover ends the earlier runs of m's job, or tells them to stop, so that m can
// take their place. When a later run has done so before, m itself is ended:
// later.
func (t turn) cover(s *Slot) (covered []domain.Execution, later bool, err error) {
	if s.FromCache {
		return nil, false, nil // it is free, or this transaction is repeated
	}
	me := WaiterOf(t.e)
	others := t.b.Moves.byID(func(o *Move) bool { return o != t.m && o.E.JobID == t.e.JobID && (o.E.HoldsSlot || s.Waiting[o.E.ID]) })
	for _, o := range others {
		if me.before(WaiterOf(&o.E)) {
			fx, err := t.e.Cover(t.b.Now, "a later run of the job was due before this one started")
			if err != nil {
				return nil, false, err
			}
			t.b.apply(t.m, fx)
			return nil, true, nil
		}
	}
	for _, o := range others {
		if o.E.State == domain.Cancelling || o.E.Lingers {
			continue // those have been told
		}
		fx, err := o.E.Cover(t.b.Now, "the run of "+t.e.FireAt.UTC().Format("2006-01-02T15:04:05.000Z")+" took its place")
		if err != nil {
			return nil, false, err
		}
		t.b.apply(o, fx)
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
