package gateway

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Settler compares what an instance holds with the database. It answers in the
// order of the items.
type Settler interface {
	SettleInventory(ctx context.Context, p store.SettleInventoryParams) ([]domain.Verdict, error)
}

// maxInventory bounds the attempts that one frame may ask about; a bit more
// than an SDK's slots.
const maxInventory = 5000

// settleTimeout bounds the wait for the database. It stays below HelloTimeout,
// so that an executor hears at least that it is registered.
const settleTimeout = 3 * time.Second

// settle judges an inventory. Attempts without a verdict go on as they are:
// that is what an instance gets when the database does not answer, and its own
// rules (no grant in time, no lease) do the rest.
func (g *Gateway) settle(ctx context.Context, s *Session, items []*proto.InventoryItem) []*proto.InventoryVerdict {
	held := heldOf(s, items)
	if len(held) == 0 || g.opt.Inventory == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	verdicts, err := g.opt.Inventory.SettleInventory(ctx, store.SettleInventoryParams{
		Tenant: s.Tenant, Executor: s.Executor, Instance: s.Instance, Items: held,
	})
	if err != nil {
		g.log.Warn("an inventory could not be settled", "instance_id", s.Instance, "count", len(held), "err", err)
		return nil
	}
	out := make([]*proto.InventoryVerdict, len(verdicts))
	for i, v := range verdicts {
		out[i] = &proto.InventoryVerdict{ExecutionId: int64(held[i].ID), Fence: held[i].Fence, Verdict: verdictOf(v)}
	}
	return out
}

// heldOf leaves out what needs no verdict: results are sent like any other, and
// nobody but its own process can hold an attempt.
func heldOf(s *Session, items []*proto.InventoryItem) []domain.Held {
	out := make([]domain.Held, 0, min(len(items), maxInventory))
	for _, i := range items {
		if i.BootId != s.BootID || len(out) == maxInventory {
			continue
		}
		h := domain.Held{ID: domain.ExecutionID(i.ExecutionId), Fence: i.Fence}
		switch i.Phase {
		case proto.AttemptPhase_ATTEMPT_PHASE_ACCEPTED:
			h.Phase = domain.HeldAccepted
		case proto.AttemptPhase_ATTEMPT_PHASE_GRANTED, proto.AttemptPhase_ATTEMPT_PHASE_RUNNING:
			h.Phase = domain.HeldRunning
		default:
			continue
		}
		out = append(out, h)
	}
	return out
}

func verdictOf(v domain.Verdict) proto.Verdict {
	switch v {
	case domain.VerdictGrant:
		return proto.Verdict_VERDICT_GRANT
	case domain.VerdictDrop:
		return proto.Verdict_VERDICT_DROP
	default:
		return proto.Verdict_VERDICT_KEEP
	}
}

// inventory answers an instance that lost its session to another node. The
// session's reader waits for the database meanwhile: whoever asks without end
// slows down nobody but itself.
func (g *Gateway) inventory(ctx context.Context, s *Session, items []*proto.InventoryItem) {
	s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Verdicts{
		Verdicts: &proto.Verdicts{Verdicts: g.settle(ctx, s, items)},
	}})
}
