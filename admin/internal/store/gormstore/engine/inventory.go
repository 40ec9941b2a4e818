package engine

import (
	"context"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// inventoryBatch bounds the rows of one transaction.
const inventoryBatch = 500

// SettleInventories needs no slot: an execution that was offered has it already
// and keeps it when it is given back. Inventories go into one transaction as
// long as they fit; what one transaction has settled is answered, whatever
// becomes of the next.
func (s *Inventory) SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []store.SettledInventory {
	out := make([]store.SettledInventory, 0, len(list))
	for len(list) > 0 {
		n, rows := 1, len(list[0].Items)
		for n < len(list) && rows+len(list[n].Items) <= inventoryBatch {
			rows += len(list[n].Items)
			n++
		}
		out = append(out, together(ctx, list[:n], func(list []store.SettleInventoryParams) ([]store.SettledInventory, error) {
			return s.settleSome(ctx, list)
		}, func(err error) store.SettledInventory { return store.SettledInventory{Err: err} })...)
		list = list[n:]
	}
	return out
}

func (s *Inventory) settleSome(ctx context.Context, list []store.SettleInventoryParams) ([]store.SettledInventory, error) {
	var items []run.Asked
	for i := range list {
		for _, h := range list[i].Items {
			items = append(items, run.Asked{Held: h, Of: &list[i]})
		}
	}
	settled := make([]store.SettledItem, 0, len(items))
	for part := range slices.Chunk(items, inventoryBatch) {
		some, err := s.settle(ctx, part)
		if err != nil {
			return nil, err
		}
		settled = append(settled, some...)
	}
	out := make([]store.SettledInventory, len(list))
	for i := range list {
		n := len(list[i].Items)
		out[i].Items, settled = settled[:n:n], settled[n:]
	}
	return out, nil
}

func (s *Inventory) settle(ctx context.Context, items []run.Asked) ([]store.SettledItem, error) {
	ids := domain.Collect(items, func(h *run.Asked) domain.ExecutionID { return h.ID })
	return batchValue(ctx, s.core, "settle inventory", run.Request{IDs: ids}, func(b *Batch) ([]store.SettledItem, error) { return b.Settle(items) })
}

// together does a list at once. When the database refuses it without saying for
// whom, each of the list is done by itself: nobody fails for another one.
func together[P, R any](ctx context.Context, list []P, do func([]P) ([]R, error), failed func(error) R) []R {
	out, err := do(list)
	if err == nil {
		return out
	}
	out = make([]R, 0, len(list))
	each := len(list) > 1 && !domain.Is(err, domain.CodeUnavailable) && !domain.Is(err, domain.CodeRolledBack)
	for i := range list {
		if each && ctx.Err() == nil {
			out = append(out, together(ctx, list[i:i+1], do, failed)...)
		} else {
			out = append(out, failed(err))
		}
	}
	return out
}
