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
	b.Moves.asStored(r.Covered)
}

func (b *Batch) offer(o store.Offer, r *store.OfferResult) error {
	m := b.Find(o.Tenant, o.ID)
	if m == nil {
		return nil
	}
	t := b.turn(m)
	*r = store.OfferResult{Status: store.OfferGone, Execution: m.E, Spec: m.Spec}
	if m.E.State != domain.Due && m.E.State != domain.RetryWait || m.Spec.Sharding.On() && !m.E.IsPart() {
		return nil // one with shards is spread
	}
	if b.Now.Before(m.E.NotBefore) {
		if early, err := t.mayBeEarly(o); err != nil || !early {
			return err
		}
	}
	if m.E.Bound != 0 && m.E.Bound != o.Instance {
		return nil
	}
	if in, err := t.enter(o.Since, r); err != nil || !in {
		return err
	}
	if full := b.Limits.full(&m.E); full != nil {
		return t.waitForLimit(full, r)
	}
	if s := t.slotToTake(); s != nil {
		s.take(&m.E)
	}
	b.Limits.take(&m.E)
	granted := o.Granted && o.Idempotent
	m.E.Fence = max(m.E.Fence, b.FenceFloor)
	if err := m.E.Offer(b.Now, o.Node, o.Instance, o.Idempotent, granted, domain.PolicyOf(m.Spec, o.Idempotent)); err != nil {
		return err // all that is expected was checked above
	}
	m.E.Passed = o.Passed
	r.Status = store.OfferMade
	return nil
}

// mayBeEarly reports whether an execution may be offered before its time: it only
// takes what is there for it, so that nothing is decided now that would be
// decided otherwise then.
func (t turn) mayBeEarly(o store.Offer) (bool, error) {
	if !t.e.Ahead(t.b.Now) || !t.spec.MaybeAhead() || o.Granted && o.Idempotent || len(t.b.Limits.of(t.e)) > 0 {
		return false, nil
	}
	if t.b.stopped.reason(t.e, t.e.Attempt) != "" || t.e.Sends().Spent(t.spec.SendRetry) {
		return false, nil
	}
	if s := t.slotToTake(); s != nil && !s.Admits(t.e, t.spec.SlotLimit()) {
		return false, nil
	}
	return t.mayStart()
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
		some, err := b.turn(m).wait(w)
		if err != nil {
			return nil, err
		}
		ended = append(ended, some...)
	}
	b.onceStored(func() { b.Moves.asStored(ended) })
	return ended, nil
}

func (t turn) wait(w store.Wait) (ended []domain.Execution, err error) {
	if stays, ended, err := t.maintained(); err != nil || stays && !ended {
		return nil, err
	} else if ended {
		return []domain.Execution{*t.e}, nil
	}
	if ended, err := t.lapse(w.Since); err != nil {
		return nil, err
	} else if ended {
		return []domain.Execution{*t.e}, nil
	}
	if t.e.Sends().Spent(t.spec.SendRetry) {
		if err := t.apply(t.e.SendFailed(t.b.Now)); err != nil {
			return nil, err
		}
		return []domain.Execution{*t.e}, nil
	}
	s := t.slotToTake()
	if s != nil {
		if full, err := t.queueFull(s); err != nil {
			return nil, err
		} else if full {
			return []domain.Execution{*t.e}, nil
		}
	}
	// An illegal move means that somebody else was quicker.
	if t.e.Wait(t.b.Now, w.Reason, w.Message, w.Until(t.b.Now, t.e)) != nil {
		return nil, nil
	}
	if t.b.Waits == nil {
		t.b.Waits = map[domain.ExecutionID]store.Wait{}
	}
	t.b.Waits[t.e.ID] = w
	if w.Full {
		t.m.Policy().ExtendWait(t.e, t.b.Now)
	}
	t.b.Limits.leave(t.e, nil)
	if s == nil {
		return nil, nil
	}
	if t.spec.Blocking == domain.BlockCover {
		// The earlier run may be what the instance is busy with.
		var later bool
		if ended, later, err = t.cover(s); err != nil {
			return nil, err
		} else if later {
			return []domain.Execution{*t.e}, nil
		}
	}
	s.enqueue(t.e)
	return ended, nil
}

// lapse ends a due execution that has misfired, as its job's policy says. since
// is from when its node knows that it waits for an instance.
func (t turn) lapse(since time.Time) (ended bool, err error) {
	if t.e.State != domain.Due {
		return false, nil
	}
	domain.WaitedSince(t.e, since, t.b.Now, t.spec)
	asked, reason, message, err := t.misfired()
	if err != nil || !asked {
		return false, err
	}
	fx, ended, err := domain.Lapse(t.e, t.b.Now, reason, message)
	if err != nil {
		return false, err
	}
	t.b.apply(t.m, fx)
	return ended, nil
}

// endUnattended looks at a due execution after the end of its wait for an instance. If no
// node has looked for one, the nodes were behind. Then the misfire policy decides about an
// execution of a schedule. It has a new wait if it is to run. All others are missed.
func (t turn) endUnattended() (ended bool, err error) {
	if !t.e.Expired(t.b.Now) || !t.e.Unattended() {
		return false, nil
	}
	if t.e.Cause != domain.CauseSchedule {
		return true, t.apply(t.e.Miss(t.b.Now, domain.ReasonMisfire, "no admin node looked for an instance before the deadline for dispatch"))
	}
	if ended, err := t.lapse(time.Time{}); err != nil || ended {
		return ended, err
	}
	t.e.ExpireAt = t.b.Now.Add(Patience(t.spec))
	return false, nil
}

// lapseOffered takes the offer of an execution back that has misfired before its
// grant. The next offer ends it: that has its slot.
func (t turn) lapseOffered() error {
	if t.e.State != domain.Offered {
		return nil
	}
	asked, reason, message, err := t.misfired()
	if err != nil || !asked {
		return err
	}
	return domain.LapseOffered(t.e, t.b.Now, reason, message)
}

// misfired asks the misfire policy about an execution that is to start now, once
// its fire time has passed by more than the threshold. A fire time that waited for
// the end of maintenance has not passed unnoticed.
func (t turn) misfired() (asked bool, reason domain.Reason, message string, err error) {
	if t.b.Misfire == nil || !domain.Misfired(t.e, t.b.Now, t.spec) {
		return false, "", "", nil
	}
	known, err := t.b.Source.Maintenances()
	if err != nil || known.Covers(domain.MaintenanceWait, t.e.TenantID, t.e.Executor, t.e.FireAt) != nil {
		return false, "", "", err
	}
	reason, message = t.b.Misfire(t.b.Now, t.e, t.spec)
	if reason == domain.ReasonCoalesced {
		// A later run stands for it only if the schedule is still the same.
		revision, err := t.b.Source.TriggerRevision(t.e.JobID)
		if err != nil {
			return false, "", "", err
		}
		if revision != t.e.Revision {
			reason, message = "", ""
		}
	}
	return true, reason, message, nil
}
