package gormstore

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// inventoryBatch bounds the rows of one transaction.
const inventoryBatch = 500

// SettleInventory needs no slot: an execution that was offered has it already
// and keeps it when it is given back.
func (s *Store) SettleInventory(ctx context.Context, p store.SettleInventoryParams) ([]store.SettledItem, error) {
	out := make([]store.SettledItem, 0, len(p.Items))
	for items := range slices.Chunk(p.Items, inventoryBatch) {
		settled, err := s.settle(ctx, p, items)
		if err != nil {
			return nil, err
		}
		out = append(out, settled...)
	}
	return out, nil
}

func (s *Store) settle(ctx context.Context, p store.SettleInventoryParams, items []domain.Held) ([]store.SettledItem, error) {
	ids := make([]domain.ExecutionID, len(items))
	for i, h := range items {
		ids[i] = h.ID
	}
	out := make([]store.SettledItem, len(items))
	theirs := func(b *batch, h domain.Held) *move {
		m := b.find(p.Tenant, h.ID)
		if m == nil || m.e.Executor != p.Executor {
			return nil
		}
		return m
	}
	err := s.move(ctx, "settle inventory", ids, func(b *batch) error {
		for i, h := range items {
			out[i] = store.SettledItem{Verdict: domain.VerdictDrop}
			m := theirs(b, h)
			if m == nil {
				continue
			}
			was := m.e.State
			out[i].Verdict = m.e.Reconcile(b.now, h, p.Instance, m.policy())
			out[i].GivenBack = was == domain.Offered && m.e.State == domain.Due
			if was == domain.Running && out[i].Verdict == domain.VerdictGrant {
				again, err := b.grantAgain(m)
				if err != nil {
					return err
				}
				if !again {
					out[i].Verdict = domain.VerdictKeep // its cancel is on the way
				}
			}
		}
		return nil
	}, func(b *batch) {
		for i, h := range items {
			if m := theirs(b, h); m != nil {
				out[i].Execution = m.e
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
