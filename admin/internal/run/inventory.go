package run

import (
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Asked is an item of the inventory of an instance.
type Asked struct {
	domain.Held
	Of *store.SettleInventoryParams
}

// Settle compares items of inventories with the rows.
func (b *Batch) Settle(items []Asked) ([]store.SettledItem, error) {
	out := make([]store.SettledItem, len(items))
	for i, h := range items {
		var err error
		if out[i], err = b.settle(h.Of, h.Held); err != nil {
			return nil, err
		}
	}
	b.onceStored(func() {
		for i, h := range items {
			if m := b.theirs(h.Of, h.Held); m != nil {
				out[i].Execution = m.E
			}
		}
	})
	return out, nil
}

func (b *Batch) settle(of *store.SettleInventoryParams, h domain.Held) (out store.SettledItem, err error) {
	out.Verdict = domain.VerdictDrop
	m := b.theirs(of, h)
	if m == nil {
		return out, nil
	}
	was := m.E.State
	if err := b.turn(m).withdrawOffer(); err != nil {
		return out, err
	}
	out.Verdict = h.Reconcile(&m.E, b.Now, of.Instance, m.Policy())
	out.GivenBack = was == domain.Offered && m.E.State == domain.Due
	if was == domain.Running && out.Verdict == domain.VerdictGrant {
		again, err := b.turn(m).grantAgain()
		if err != nil {
			return out, err
		}
		if !again {
			out.Verdict = domain.VerdictKeep // its cancel is on the way
		}
	}
	return out, nil
}

// theirs is the execution that an inventory names; nil: there is none of the executor's.
func (b *Batch) theirs(of *store.SettleInventoryParams, h domain.Held) *Move {
	if m := b.Find(of.Tenant, h.ID); m != nil && m.E.Executor == of.Executor {
		return m
	}
	return nil
}

// EndOrphans ends the attempts that an instance does not have, though it was there
// before accepted, by an inventory that it gave since: see store.EndOrphansParams.
func (b *Batch) EndOrphans(p *store.EndOrphansParams, accepted time.Time) *store.EndedOrphans {
	var ended []*Move
	for _, m := range b.Moves.byID(func(m *Move) bool { // others have moved on since they were found, or are queued for a slot
		e := &m.E
		return e.TenantID == p.Tenant && e.Executor == p.Executor && e.Instance == p.Instance && e.OccupiesInstance() && e.OfferedAt.Before(accepted) && !Has(p.Has, e)
	}) {
		b.Deciding = m.E.ID
		if fx, over := domain.EndOrphaned(&m.E, b.Now, m.Policy()); over {
			b.apply(m, fx)
			ended = append(ended, m)
		}
	}
	out := &store.EndedOrphans{}
	b.onceStored(func() { out.Ended, out.Woken = executions(ended), b.Woken.all() })
	return out
}

// Has reports whether an attempt is among those that an instance has.
func Has(held []domain.Held, e *domain.Execution) bool {
	return slices.ContainsFunc(held, func(h domain.Held) bool { return h.ID == e.ID && h.Fence == e.Fence })
}
