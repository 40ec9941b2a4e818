package run

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Offer decides offers, and returns a result for each, in the order in which
// they were asked.
func (b *Batch) Offer(offers []store.Offer) ([]store.OfferResult, error) {
	results := make([]store.OfferResult, len(offers))
	if err := b.findStopped(); err != nil {
		return nil, err
	}
	ids := domain.Collect(offers, func(o *store.Offer) domain.ExecutionID { return o.ID })
	for _, i := range b.order(ids) {
		if err := b.offer(offers[i], &results[i]); err != nil {
			return nil, err
		}
	}
	b.onceStored(func() {
		for i := range results {
			b.refresh(&results[i])
		}
	})
	return results, nil
}

// refresh replaces the executions of a result by the stored ones.
func (b *Batch) refresh(r *store.OfferResult) {
	if m := b.Moves[r.Execution.ID]; m != nil {
		r.Execution = m.E
	}
	b.asStored(r.Covered)
}

func (b *Batch) offer(o store.Offer, r *store.OfferResult) error {
	m := b.Find(o.Tenant, o.ID)
	if m == nil {
		return nil
	}
	*r = store.OfferResult{Status: store.OfferGone, Execution: m.E, Spec: m.Spec}
	if m.E.State != domain.Due && m.E.State != domain.RetryWait || m.Spec.Sharding.On() && !m.E.IsPart() {
		return nil // one with shards is spread
	}
	if b.Now.Before(m.E.NotBefore) {
		if early, err := b.mayBeEarly(m, o); err != nil || !early {
			return err
		}
	}
	if m.E.Bound != 0 && m.E.Bound != o.Instance {
		return nil
	}
	if in, err := b.enter(m, o.Since, r); err != nil || !in {
		return err
	}
	if full := b.full(&m.E); full != nil {
		return b.waitForLimit(m, full, r)
	}
	if s := b.slotToTake(m); s != nil {
		s.take(&m.E)
	}
	b.takeCapacity(&m.E)
	granted := o.Granted && o.Idempotent
	m.E.Fence = max(m.E.Fence, b.FenceFloor)
	if err := m.E.Offer(b.Now, o.Node, o.Instance, o.Idempotent, granted, domain.PolicyOf(m.Spec, o.Idempotent)); err != nil {
		return err // all that is expected was checked above
	}
	m.E.Passed = o.Passed
	r.Status = store.OfferMade
	return nil
}

// slotToTake is the slot that an execution has to take before it starts; nil:
// none, or it has it.
func (b *Batch) slotToTake(m *Move) *Slot {
	if m.E.HoldsSlot || m.Spec.SlotLimit() == 0 {
		return nil
	}
	return b.Slots[m.E.JobID]
}

// mayBeEarly reports whether an execution may be offered before its time: it only
// takes what is there for it, so that nothing is decided now that would be
// decided otherwise then.
func (b *Batch) mayBeEarly(m *Move, o store.Offer) (bool, error) {
	if !m.E.Ahead(b.Now) || !m.Spec.MaybeAhead() || o.Granted && o.Idempotent || len(b.limitsOf(&m.E)) > 0 {
		return false, nil
	}
	if b.stopped.reason(&m.E, m.E.Attempt) != "" || m.E.SendsSpent(m.Spec.SendRetry) {
		return false, nil
	}
	if s := b.slotToTake(m); s != nil && !s.Admits(&m.E, m.Spec.SlotLimit()) {
		return false, nil
	}
	return b.mayStart(m)
}

// Wait notes why executions wait. Those that are not due any more are passed
// over. One that needs its job's slot enters the queue for it: a later run of
// the job that finds an instance first, on this node or another, must not
// overtake it. ended are those that end by it, and the earlier ones that a run covers.
func (b *Batch) Wait(waits []store.Wait) (ended []domain.Execution, err error) {
	for _, w := range waits {
		m := b.Find(w.Tenant, w.ID)
		if m == nil {
			continue
		}
		some, err := b.wait(m, w)
		if err != nil {
			return nil, err
		}
		ended = append(ended, some...)
	}
	b.onceStored(func() { b.asStored(ended) })
	return ended, nil
}

func (b *Batch) wait(m *Move, w store.Wait) (ended []domain.Execution, err error) {
	if stays, ended, err := b.maintained(m); err != nil || stays && !ended {
		return nil, err
	} else if ended {
		return []domain.Execution{m.E}, nil
	}
	if ended, err := b.lapse(m, w.Since); err != nil {
		return nil, err
	} else if ended {
		return []domain.Execution{m.E}, nil
	}
	if m.E.SendsSpent(m.Spec.SendRetry) {
		fx, err := m.E.SendFailed(b.Now)
		if err != nil {
			return nil, err
		}
		b.apply(m, fx)
		return []domain.Execution{m.E}, nil
	}
	s := b.slotToTake(m)
	if s != nil {
		if full, err := b.queueFull(m, s); err != nil {
			return nil, err
		} else if full {
			return []domain.Execution{m.E}, nil
		}
	}
	// An illegal move means that somebody else was quicker.
	if m.E.Wait(b.Now, w.Reason, w.Message, w.Until(b.Now, &m.E)) != nil {
		return nil, nil
	}
	if b.Waits == nil {
		b.Waits = map[domain.ExecutionID]store.Wait{}
	}
	b.Waits[m.E.ID] = w
	if w.Full {
		m.E.ExtendWait(b.Now, m.Policy())
	}
	b.leaveQueues(&m.E, nil)
	if s == nil {
		return nil, nil
	}
	if m.Spec.Blocking == domain.BlockCover {
		// The earlier run may be what the instance is busy with.
		var later bool
		if ended, later, err = b.cover(m, s); err != nil {
			return nil, err
		} else if later {
			return []domain.Execution{m.E}, nil
		}
	}
	s.enqueue(&m.E)
	return ended, nil
}

// lapse ends a due execution that has misfired, as its job's policy says. since
// is from when its node knows that it waits for an instance.
func (b *Batch) lapse(m *Move, since time.Time) (ended bool, err error) {
	if m.E.State != domain.Due {
		return false, nil
	}
	m.E.WaitedSince(since, b.Now, m.Spec)
	asked, reason, message, err := b.misfired(m)
	if err != nil || !asked {
		return false, err
	}
	fx, ended, err := m.E.Lapse(b.Now, reason, message)
	if err != nil {
		return false, err
	}
	b.apply(m, fx)
	return ended, nil
}

// endUnattended looks at a due execution after the end of its wait for an instance. If no
// node has looked for one, the nodes were behind. Then the misfire policy decides about an
// execution of a schedule. It has a new wait if it is to run. All others are missed.
func (b *Batch) endUnattended(m *Move) (ended bool, err error) {
	if !m.E.Expired(b.Now) || !m.E.Unattended() {
		return false, nil
	}
	if m.E.Cause != domain.CauseSchedule {
		fx, err := m.E.Miss(b.Now, domain.ReasonMisfire, "no admin node looked for an instance before the deadline for dispatch")
		b.apply(m, fx)
		return true, err
	}
	if ended, err := b.lapse(m, time.Time{}); err != nil || ended {
		return ended, err
	}
	m.E.ExpireAt = b.Now.Add(Patience(m.Spec))
	return false, nil
}

// lapseOffered takes the offer of an execution back that has misfired before its
// grant. The next offer ends it: that has its slot.
func (b *Batch) lapseOffered(m *Move) error {
	if m.E.State != domain.Offered {
		return nil
	}
	asked, reason, message, err := b.misfired(m)
	if err != nil || !asked {
		return err
	}
	return m.E.LapseOffered(b.Now, reason, message)
}

// misfired asks the misfire policy about an execution that is to start now, once
// its fire time has passed by more than the threshold. A fire time that waited for
// the end of maintenance has not passed unnoticed.
func (b *Batch) misfired(m *Move) (asked bool, reason domain.Reason, message string, err error) {
	if b.Misfire == nil || !m.E.Misfired(b.Now, m.Spec) {
		return false, "", "", nil
	}
	known, err := b.Source.Maintenances()
	if err != nil || known.Covers(domain.MaintenanceWait, m.E.TenantID, m.E.Executor, m.E.FireAt) != nil {
		return false, "", "", err
	}
	reason, message = b.Misfire(b.Now, &m.E, m.Spec)
	if reason == domain.ReasonCoalesced {
		// A later run stands for it only if the schedule is still the same.
		revision, err := b.Source.TriggerRevision(m.E.JobID)
		if err != nil {
			return false, "", "", err
		}
		if revision != m.E.Revision {
			reason, message = "", ""
		}
	}
	return true, reason, message, nil
}
