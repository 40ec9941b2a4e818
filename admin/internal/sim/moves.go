package sim

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/executor-sdk/simulate"
)

// must is for errors that no transaction has here: the rules found something
// that cannot be, and a run of the simulator is to end with it.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// offer is OfferExecutions.
func (d *database) offer(known *limitsKnown, offers []store.Offer) []store.OfferResult {
	ids := domain.Collect(offers, func(o *store.Offer) domain.ExecutionID { return o.ID })
	b := d.load(ids, loads{slots: true, known: known})
	results, err := b.Offer(offers)
	must(err)
	b.save()
	for i := range results {
		b.Refresh(&results[i])
	}
	return results
}

// grant is GrantOffers.
func (d *database) grant(requests []store.GrantRequest) []store.GrantResult {
	out := make([]store.GrantResult, len(requests))
	for i, g := range requests { // one by one: a broken rule moves the clock of one of them
		b := d.load([]domain.ExecutionID{g.ID}, loads{})
		if m := b.Moves[g.ID]; m != nil {
			b.breakGrant(m, g)
		}
		results, err := b.Grant([]store.GrantRequest{g})
		must(err)
		b.save()
		out[i] = results[0]
		if m := b.Find(g.Tenant, g.ID); m != nil {
			out[i].Execution = m.E
		}
	}
	return out
}

// breakGrant breaks the rules of a grant, where they are to be broken.
func (b *transaction) breakGrant(m *run.Move, g store.GrantRequest) {
	e := &m.E
	if b.d.rules.skipOfferEnd && e.State == domain.Due && e.Fence == g.Fence { // it was given back
		e.State, e.Instance = domain.Offered, g.Instance
	}
	if b.d.rules.skipOfferEnd && e.State == domain.Offered && !b.Now.Before(e.OfferedAt.Add(domain.OfferTTL)) {
		b.Now = e.OfferedAt.Add(domain.OfferTTL - 1)
	}
	if b.d.rules.grantEarly && e.Ahead(b.Now) && e.State == domain.Offered {
		b.Now = e.NotBefore
	}
}

// giveBack is GiveBackOffers.
func (d *database) giveBack(items []store.GiveBack) []store.OfferResult {
	ids := domain.Collect(items, func(g *store.GiveBack) domain.ExecutionID { return g.ID })
	b := d.load(ids, loads{})
	results, err := b.GiveBack(items)
	must(err)
	b.save()
	for i, g := range items {
		if m := b.Find(g.Tenant, g.ID); m != nil {
			results[i].Execution, results[i].Spec = m.E, m.Spec
		}
	}
	return results
}

// wait is RecordWaits.
func (d *database) wait(known *limitsKnown, waits []store.Wait) []domain.Execution {
	ids := domain.Collect(waits, func(w *store.Wait) domain.ExecutionID { return w.ID })
	b := d.load(ids, loads{slots: true, known: known})
	ended, err := b.Wait(waits)
	must(err)
	b.save()
	b.AsStored(ended)
	return ended
}

// start is RecordStarts.
func (d *database) start(starts []store.Start) {
	ids := domain.Collect(starts, func(s *store.Start) domain.ExecutionID { return s.ID })
	b := d.load(ids, loads{})
	b.Start(starts)
	b.save()
}

// finish is FinishAttempts.
func (d *database) finish(known *limitsKnown, reports []store.AttemptReport) []store.FinishResult {
	ids := make([]domain.ExecutionID, len(reports))
	o := loads{slots: true, queue: true}
	for i, r := range reports {
		ids[i] = r.Report.ExecutionID
		if r.Report.StillRunning {
			o.known, o.linger = known, append(o.linger, r.Report.ExecutionID)
		}
	}
	b := d.load(ids, o)
	reports = slices.Clone(reports)
	for i := range reports {
		r := &reports[i].Report
		m := b.Moves[r.ExecutionID]
		if d.rules.skipFence && m != nil && r.Fence < m.E.Fence {
			r.Fence = m.E.Fence
		}
		if d.rules.stopFree && m != nil && r.ErrorKind == simulate.KindStopping {
			m.Spec = retried(m.Spec)
		}
	}
	results, err := b.Finish(reports)
	must(err)
	woken, err := b.Wake()
	must(err)
	b.save()
	if len(results) > 0 {
		b.FinishResults(reports, results, woken)
	}
	return results
}

// cancel is RequestCancel.
func (d *database) cancel(of domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	b := d.load([]domain.ExecutionID{id}, loads{slots: true, queue: true})
	m, err := b.RequestCancel(of, id, domain.ReasonKilled, "")
	if err == nil && m == nil {
		err = domain.Errorf(domain.CodeNotFound, "no such run")
	}
	if err != nil {
		return domain.Execution{}, err
	}
	_, err = b.Wake()
	must(err)
	b.save()
	return m.E, nil
}

// settle is SettleInventories of one.
func (d *database) settle(p store.SettleInventoryParams) []store.SettledItem {
	ids := domain.Collect(p.Items, func(h *domain.Held) domain.ExecutionID { return h.ID })
	b := d.load(ids, loads{})
	out := make([]store.SettledItem, len(p.Items))
	for i, h := range p.Items {
		var err error
		out[i], err = b.Settle(&p, h)
		must(err)
	}
	b.save()
	for i, h := range p.Items {
		if m := b.Theirs(&p, h); m != nil {
			out[i].Execution = m.E
		}
	}
	return out
}

// sweep is SweepExecutions.
func (d *database) sweep(p store.SweepParams) (store.Swept, error) {
	now := d.clock()
	out := store.Swept{Now: now}
	if err := checkClock(now, p.Latest); err != nil {
		return out, err
	}
	var in [domain.Partitions]bool
	for _, part := range p.Partitions {
		in[part] = true
	}
	var found []*domain.Execution
	for _, id := range d.living() {
		e := d.find(id)
		if in[e.Partition] && !e.WakeAt.IsZero() && !e.WakeAt.After(now) &&
			!e.WakeAt.After(now.Add(-p.Overdue)) &&
			(p.Unattended == nil || len(p.Unattended([]domain.ExecutionID{e.ID})) > 0) &&
			(p.Reported == nil || !slices.Contains(p.Reported([]domain.ExecutionID{e.ID}), store.ReportedRun{Tenant: e.TenantID, Executor: e.Executor, ID: e.ID})) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b *domain.Execution) int { return a.WakeAt.Compare(b.WakeAt) })
	var ids []domain.ExecutionID
	for _, e := range found[:min(len(found), p.Limit)] {
		ids = append(ids, e.ID)
	}
	out.Seen = len(ids)
	b := d.load(ids, loads{slots: true, queue: true, all: !d.rules.forgetParent})
	swept, err := b.Sweep(ids, p.Hold)
	must(err)
	woken, err := b.Wake()
	must(err)
	b.save()
	swept.Ended = append(swept.Ended, b.Ended...)
	swept.Collect(&out, woken)
	return out, nil
}

// spread is SpreadExecutions.
func (d *database) spread(spreads []store.Spread) []store.SpreadResult {
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	b := d.load(ids, loads{slots: true, spreads: true})
	results, err := b.Spread(spreads)
	must(err)
	b.save()
	for i := range results {
		b.Refresh(&results[i].OfferResult)
		if d.rules.dropShard {
			results[i].Parts = slices.DeleteFunc(results[i].Parts, func(e domain.Execution) bool { return d.find(e.ID) == nil })
		}
	}
	return results
}

// cancelParts is CancelParts.
func (d *database) cancelParts(parents []domain.Execution) (out store.CancelledParts) {
	var o loads
	var parts []domain.ExecutionID
	for _, p := range parents {
		o.parents = append(o.parents, p.ID)
		for _, e := range d.partsOf(p.ID) {
			if !e.State.Terminal() {
				parts = append(parts, e.ID)
			}
		}
	}
	o.slots, o.queue = true, true
	b := d.load(append(slices.Clone(o.parents), parts...), o)
	moved, err := b.CancelParts(parts)
	must(err)
	woken, err := b.Wake()
	must(err)
	b.save()
	for _, m := range moved {
		if m.E.State.Terminal() {
			out.Ended = append(out.Ended, m.E)
		} else {
			out.Cancel = append(out.Cancel, m.E)
		}
	}
	out.Ended, out.Woken = append(out.Ended, b.ParentsEnded()...), woken.All()
	return out
}

// takeBack ends what must not start any more; JobEnabled stands for an edit.
func (d *database) takeBack(j *jobRow, to domain.JobState) {
	if d.rules.keepPlanned {
		return
	}
	var ids []domain.ExecutionID
	for _, id := range d.living() {
		if e := d.find(id); e.JobID == j.id && !e.WakeAt.IsZero() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	b := d.load(ids, loads{slots: true, queue: true})
	gone, err := b.TakeBack(to)
	must(err)
	_, err = b.Wake()
	must(err)
	for _, id := range gone { // before the checks see the others
		d.remove(d.find(id))
	}
	b.save()
}

// remove takes a row away that was planned ahead.
func (d *database) remove(e *domain.Execution) {
	delete(d.byFire, occurrence{e.JobID, e.FireAt.UnixMilli(), e.OccurrenceKey})
	delete(d.executions, e.ID)
	d.order = slices.DeleteFunc(d.order, func(id domain.ExecutionID) bool { return id == e.ID })
	d.alive = slices.DeleteFunc(d.alive, func(id domain.ExecutionID) bool { return id == e.ID })
}
