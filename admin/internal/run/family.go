package run

import (
	"fmt"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// noInstanceCheck is how long a broadcast without an instance is left alone.
const noInstanceCheck = time.Second

// advanceParents moves the parents on by what their parts say, those in
// this batch as it leaves them. Whoever may be offered then goes into woken.
func (b *Batch) advanceParents(woken Woken) error {
	for _, p := range b.Moves.byID(func(m *Move) bool { return m.E.OnlyPartsMove() && (b.Parents[m.E.ID] || b.Kind == Sweeps) }) {
		b.Deciding = p.E.ID
		family, err := b.Source.Family(p)
		if err != nil {
			return fmt.Errorf("parts of %s: %w", p.E.ID, err)
		}
		if err := b.advance(p, family, woken); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) advance(p *Move, family domain.Family, woken Woken) error {
	step, fx := p.E.AsParent().Advance(b.Now, family, p.Spec)
	switch step {
	case domain.StepNone:
		return nil
	case domain.StepReady:
		woken[p.E.JobID] = append(woken[p.E.JobID], p)
	case domain.StepAfter:
		results, err := b.Source.Results(p, family)
		if err != nil {
			return fmt.Errorf("results of %s: %w", p.E.ID, err)
		}
		hook, err := p.E.AsParent().BearAfter(b.Now, p.Spec, results, b.Source.NewID)
		if err != nil {
			return err
		}
		woken[p.E.JobID] = append(woken[p.E.JobID], b.bear(hook, p.Spec))
	case domain.StepEnded:
		b.Ended = append(b.Ended, p)
	}
	b.apply(p, fx)
	return nil
}

// bear lets a part be inserted.
func (b *Batch) bear(part domain.Execution, spec *domain.JobSpec) *Move {
	b.Born = append(b.Born, part)
	m := NewMove(part, spec.For(part.Part))
	return &m
}

// executions are the rows of moves.
func executions(moves []*Move) (out []domain.Execution) {
	for _, m := range moves {
		out = append(out, m.E)
	}
	return out
}

// LivingPart reports whether a part of p that moves in this batch lives, and
// which of them move.
func (all Moves) LivingPart(p *Move) (moved []domain.ExecutionID, living bool) {
	for id, m := range all {
		if m.E.Parent == p.E.ID {
			moved = append(moved, id)
			living = living || !m.E.State.Terminal()
		}
	}
	return moved, living
}

// AsMoved is a part as this batch leaves it, where it moves here.
func (all Moves) AsMoved(e domain.Execution) domain.Execution {
	if m := all[e.ID]; m != nil {
		return m.E
	}
	return e
}

// Spread makes the parts of runs with shards; the order of results is that of
// what was asked.
func (b *Batch) Spread(spreads []store.Spread) ([]store.SpreadResult, error) {
	results := make([]store.SpreadResult, len(spreads))
	if err := b.findStopped(); err != nil {
		return nil, err
	}
	ids := domain.Collect(spreads, func(o *store.Spread) domain.ExecutionID { return o.ID })
	for _, i := range b.order(ids) {
		if err := b.spread(spreads[i], &results[i]); err != nil {
			return nil, err
		}
	}
	b.onceStored(func() {
		for i := range results {
			b.refresh(&results[i].OfferResult)
		}
	})
	return results, nil
}

func (b *Batch) spread(o store.Spread, r *store.SpreadResult) error {
	m := b.Find(o.Tenant, o.ID)
	if m == nil {
		return nil
	}
	t := b.turn(m)
	r.OfferResult = store.OfferResult{Status: store.OfferGone, Execution: m.E, Spec: m.Spec}
	if m.E.State != domain.Due || b.Now.Before(m.E.NotBefore) || !m.Spec.Sharding.On() || m.E.IsPart() {
		return nil
	}
	in, err := t.enter(o.Since, &r.OfferResult)
	if err != nil || !in {
		return err
	}
	var instances []domain.InstanceID
	if m.Spec.Sharding.Mode == domain.ShardBroadcast && m.E.AsParent().NextPart(m.Spec.Sharding) == domain.PartShard {
		if instances, err = b.Source.Serving(m); err != nil {
			return err
		}
		switch {
		case len(instances) == 0 && len(m.E.Picks) == 0:
			return t.waitForInstance(r)
		case len(instances) > domain.MaxShards:
			r.Status = store.OfferDiscarded
			return t.apply(m.E.Miss(b.Now, domain.ReasonManyInstances, fmt.Sprintf("%d instances serve the handler, and a fire has at most %d shards", len(instances), domain.MaxShards)))
		}
	}
	if s := t.slotToTake(); s != nil {
		s.take(&m.E)
	}
	parts, err := m.E.AsParent().Spread(b.Now, m.Spec, instances, b.Source.NewID)
	if err != nil {
		return err // all that is expected was checked above
	}
	r.Status = store.OfferMade
	for _, part := range parts {
		r.Parts = append(r.Parts, b.bear(part, m.Spec).E)
	}
	return nil
}

// waitForInstance leaves a broadcast due. It keeps its place before later runs.
func (t turn) waitForInstance(r *store.SpreadResult) error {
	if s := t.slotToTake(); s != nil && !s.FromCache {
		if full, err := t.queueFull(s); err != nil || full {
			r.Status = store.OfferDiscarded
			return err
		}
		s.enqueue(t.e)
	}
	r.Status = store.OfferBlocked
	return t.e.Wait(t.b.Now, domain.ReasonWaitInstance, "no instance that could take a shard is online", t.b.Now.Add(noInstanceCheck))
}

// CancelParts cancels those of the parts that live and whose parents are being
// cancelled.
func (b *Batch) CancelParts(parts []domain.ExecutionID) (*store.CancelledParts, error) {
	out := &store.CancelledParts{}
	var moved []*Move
	b.onceStored(func() {
		for _, m := range moved {
			if m.E.State.Terminal() {
				out.Ended = append(out.Ended, m.E)
			} else {
				out.Cancel = append(out.Cancel, m.E)
			}
		}
		out.Ended, out.Woken = append(out.Ended, executions(b.Ended)...), b.Woken.all()
	})
	for _, id := range parts {
		m := b.Moves[id]
		if m == nil || m.E.State.Terminal() {
			continue
		}
		p := b.Moves[m.E.Parent]
		if p == nil || p.E.TenantID != m.E.TenantID || p.E.State != domain.Cancelling || !p.E.OnlyPartsMove() {
			continue
		}
		b.Deciding = id
		fx, err := m.E.RequestCancel(b.Now, p.E.Reason, p.E.Message)
		if err != nil {
			return nil, err
		}
		b.apply(m, fx)
		moved = append(moved, m)
	}
	return out, nil
}
