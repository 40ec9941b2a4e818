package run

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Settle compares an item of an inventory with what is stored.
func (b *Batch) Settle(of *store.SettleInventoryParams, h domain.Held) (out store.SettledItem, err error) {
	out.Verdict = domain.VerdictDrop
	m := b.Theirs(of, h)
	if m == nil {
		return out, nil
	}
	was := m.E.State
	if err := b.withdrawOffer(m); err != nil {
		return out, err
	}
	out.Verdict = m.E.Reconcile(b.Now, h, of.Instance, m.Policy())
	out.GivenBack = was == domain.Offered && m.E.State == domain.Due
	if was == domain.Running && out.Verdict == domain.VerdictGrant {
		again, err := b.grantAgain(m)
		if err != nil {
			return out, err
		}
		if !again {
			out.Verdict = domain.VerdictKeep // its cancel is on the way
		}
	}
	return out, nil
}

// Theirs is the execution that an inventory names; nil: there is none of the executor's.
func (b *Batch) Theirs(of *store.SettleInventoryParams, h domain.Held) *Move {
	if m := b.Find(of.Tenant, h.ID); m != nil && m.E.Executor == of.Executor {
		return m
	}
	return nil
}

// EndOrphans ends the attempts that an instance does not have, though it was there
// before accepted, by an inventory that it gave since: see store.EndOrphansParams.
// has says what the instance has.
func (b *Batch) EndOrphans(p *store.EndOrphansParams, accepted time.Time, has func(*domain.Execution) bool) (ended []*Move) {
	for _, m := range b.byID(func(m *Move) bool { // others have moved on since they were found, or are queued for a slot
		e := &m.E
		return e.TenantID == p.Tenant && e.Executor == p.Executor && e.Instance == p.Instance && e.OccupiesInstance() && e.OfferedAt.Before(accepted) && !has(e)
	}) {
		b.Deciding = m.E.ID
		if fx, over := m.E.EndOrphaned(b.Now, m.Policy()); over {
			b.apply(m, fx)
			ended = append(ended, m)
		}
	}
	return ended
}
