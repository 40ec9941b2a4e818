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
	return move(d, run.Request{Kind: run.Offers, IDs: ids}, known, func(b *transaction) ([]store.OfferResult, error) { return b.Offer(offers) })
}

// grant is GrantOffers.
func (d *database) grant(requests []store.GrantRequest) (out []store.GrantResult) {
	for _, g := range requests { // one by one: a broken rule moves the clock of one of them
		out = append(out, move(d, run.Request{IDs: []domain.ExecutionID{g.ID}}, nil, func(b *transaction) ([]store.GrantResult, error) {
			if m := b.Moves[g.ID]; m != nil {
				b.breakGrant(m, g)
			}
			return b.Grant([]store.GrantRequest{g})
		})...)
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
	return move(d, run.Request{IDs: ids}, nil, func(b *transaction) ([]store.OfferResult, error) { return b.GiveBack(items) })
}

// wait is RecordWaits.
func (d *database) wait(known *limitsKnown, waits []store.Wait) []domain.Execution {
	ids := domain.Collect(waits, func(w *store.Wait) domain.ExecutionID { return w.ID })
	return move(d, run.Request{Kind: run.Waits, IDs: ids}, known, func(b *transaction) ([]domain.Execution, error) { return b.Wait(waits) })
}

// start is RecordStarts.
func (d *database) start(starts []store.Start) {
	ids := domain.Collect(starts, func(s *store.Start) domain.ExecutionID { return s.ID })
	move(d, run.Request{IDs: ids}, nil, func(b *transaction) (any, error) { b.Start(starts); return nil, nil })
}

// finish is FinishAttempts.
func (d *database) finish(known *limitsKnown, reports []store.AttemptReport) []store.FinishResult {
	return move(d, run.FinishRequest(reports), known, func(b *transaction) ([]store.FinishResult, error) {
		reports := slices.Clone(reports)
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
		return b.Finish(reports)
	})
}

// cancel is RequestCancel.
func (d *database) cancel(of domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	b := d.load(run.Request{Kind: run.Ends, IDs: []domain.ExecutionID{id}}, nil)
	m, err := b.RequestCancel(of, id, domain.ReasonKilled, "")
	if err == nil && m == nil {
		err = domain.Errorf(domain.CodeNotFound, "no such run")
	}
	if err != nil {
		return domain.Execution{}, err
	}
	b.save()
	return m.E, nil
}

// settle is SettleInventories of one.
func (d *database) settle(p store.SettleInventoryParams) []store.SettledItem {
	ids := domain.Collect(p.Items, func(h *domain.Held) domain.ExecutionID { return h.ID })
	items := domain.Collect(p.Items, func(h *domain.Held) run.Asked { return run.Asked{Held: *h, Of: &p} })
	return move(d, run.Request{IDs: ids}, nil, func(b *transaction) ([]store.SettledItem, error) { return b.Settle(items) })
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
	q := run.Request{Kind: run.Sweeps, IDs: ids}
	if d.rules.forgetParent {
		q.Kind = run.Ends
	}
	return *move(d, q, nil, func(b *transaction) (*store.Swept, error) { return b.Sweep(ids, p.Hold) }), nil
}

// spread is SpreadExecutions.
func (d *database) spread(spreads []store.Spread) []store.SpreadResult {
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	results := move(d, run.Request{Kind: run.Spreads, IDs: ids}, nil, func(b *transaction) ([]store.SpreadResult, error) { return b.Spread(spreads) })
	for i := range results {
		if d.rules.dropShard {
			results[i].Parts = slices.DeleteFunc(results[i].Parts, func(e domain.Execution) bool { return d.find(e.ID) == nil })
		}
	}
	return results
}

// cancelParts is CancelParts.
func (d *database) cancelParts(parents []domain.Execution) store.CancelledParts {
	var parts []domain.ExecutionID
	for _, p := range parents {
		for _, e := range d.partsOf(p.ID) {
			if !e.State.Terminal() {
				parts = append(parts, e.ID)
			}
		}
	}
	return *move(d, run.CancelRequest(parents, parts), nil, func(b *transaction) (*store.CancelledParts, error) { return b.CancelParts(parts) })
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
	b := d.load(run.Request{Kind: run.Ends, IDs: ids}, nil)
	gone, err := b.TakeBack(to)
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
