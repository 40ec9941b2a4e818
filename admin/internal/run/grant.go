package run

import (
	"time"

	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Grant says which offered executions may start.
func (b *Batch) Grant(grants []store.GrantRequest) ([]store.GrantResult, error) {
	results := make([]store.GrantResult, len(grants))
	for i, g := range grants {
		m := b.Find(g.Tenant, g.ID)
		if m == nil {
			continue
		}
		if !m.E.Has(g.Fence, g.Instance) {
			if err := b.turn(m).withdrawOffer(); err != nil {
				return nil, err
			}
			results[i].Granted = m.E.Grant(b.Now, g.Fence, g.Instance, m.Policy()) == nil
			continue
		}
		var err error
		if results[i].Granted, err = b.turn(m).grantAgain(); err != nil {
			return nil, err
		}
	}
	b.onceStored(func() {
		for i, g := range grants {
			if m := b.Find(g.Tenant, g.ID); m != nil {
				results[i].Execution = m.E
			}
		}
	})
	return results, nil
}

// GiveBack takes offers back. The slot stays with the execution, so that order is
// kept. One whose sends are spent is ended by the sweep, or by the next offer.
func (b *Batch) GiveBack(items []store.GiveBack) ([]store.OfferResult, error) {
	results := make([]store.OfferResult, len(items))
	for i, g := range items {
		m := b.Find(g.Tenant, g.ID)
		if m == nil || m.E.Instance != g.Instance {
			continue
		}
		if g.Unheard {
			moved, err := b.turn(m).unheard(g)
			if err != nil {
				return nil, err
			}
			if moved {
				results[i].Status = store.OfferMade
			}
			continue
		}
		giveBack := m.E.GiveBack
		if g.Refused {
			giveBack = m.E.Refuse
		}
		if giveBack(b.Now, g.Fence, g.Reason, g.Message, m.E.Sends().Wait(m.Spec.SendRetry, g.Wait)) == nil {
			if g.Busy {
				m.E.Sends().ToFull()
			}
			results[i].Status = store.OfferMade
		}
	}
	b.onceStored(func() {
		for i, g := range items {
			if m := b.Find(g.Tenant, g.ID); m != nil {
				results[i].Execution, results[i].Spec = m.E, m.Spec
			}
		}
	})
	return results, nil
}

// Start notes when attempts began: at, cut to what is stored.
func (b *Batch) Start(starts []store.Start) {
	for _, st := range starts {
		if m := b.Find(st.Tenant, st.ID); m != nil && !st.StartedAt.IsZero() {
			// An illegal move means that the attempt has ended meanwhile.
			_ = m.E.Started(b.Now, st.Fence, st.Instance, time.UnixMilli(st.StartedAt.UnixMilli()).UTC())
		}
	}
}
