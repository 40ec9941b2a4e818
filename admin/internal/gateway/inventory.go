package gateway

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Settler compares what instances hold with the database. It answers in the
// order of the list, and of the items.
type Settler interface {
	SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []domain.SettledInventory
	// EndUnheld ends what the database has and a complete inventory has not.
	EndUnheld(ctx context.Context, p store.EndUnheldParams) error
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
	settled, err := g.ask(ctx, s.account, store.SettleInventoryParams{
		Tenant: s.Tenant, Executor: s.Executor, Instance: s.Instance, Items: held,
	})
	if err == nil {
		err = settled.Err
	}
	if err != nil {
		g.log.Warn("an inventory could not be settled", "instance_id", s.Instance, "count", len(held), "err", err)
		g.tellFault(err)
		return nil
	}
	out := make([]*proto.InventoryVerdict, len(settled.Verdicts))
	for i, v := range settled.Verdicts {
		out[i] = &proto.InventoryVerdict{ExecutionId: int64(held[i].ID), Fence: held[i].Fence, Verdict: verdictOf(v)}
	}
	return out
}

// settleAlone is how many attempts of one instance are judged by themselves, so
// that small inventories do not wait for large ones.
const settleAlone = 50

// ask goes together with others who ask now, unless it is about much.
func (g *Gateway) ask(ctx context.Context, a *account, p store.SettleInventoryParams) (domain.SettledInventory, error) {
	if len(p.Items) < settleAlone {
		return g.settles.Do(ctx, p)
	}
	for _, places := range []*semaphore.Weighted{a.lookup, g.lookups} {
		if err := places.Acquire(ctx, 1); err != nil {
			return domain.SettledInventory{}, err
		}
		defer places.Release(1)
	}
	return g.opt.Inventory.SettleInventories(ctx, []store.SettleInventoryParams{p})[0], nil
}

// unheldEvery is the pause before it is looked again for what an instance does
// not have, while the database does not answer.
const unheldEvery = time.Second

// unheldOf is what a registration says about attempts that the instance does
// not have; nil when it does not say that it leaves nothing out.
func unheldOf(s *Session, p *peer, reg *proto.Register, i domain.Instance) *store.EndUnheldParams {
	if !reg.InventoryComplete {
		return nil
	}
	out := &store.EndUnheldParams{
		Tenant: s.Tenant, Executor: s.Executor, Instance: s.Instance, Since: i.ConnectedAt,
		Taken: i.LastSeenAt.Add(-time.Since(p.greeted)),
	}
	for _, item := range reg.Inventory {
		if item.BootId == s.BootID {
			out.Has = append(out.Has, domain.Held{ID: domain.ExecutionID(item.ExecutionId), Fence: item.Fence})
		}
	}
	return out
}

// endUnheld tries until the database has answered: nobody else would end these
// attempts while their instance lives. While the database is under suspicion of a rollback there
// is nothing to do: the session is ended when an operator has accepted it.
func (g *Gateway) endUnheld(ctx context.Context, s *Session, p store.EndUnheldParams) {
	for told := false; ; told = true {
		err := g.tryUnheld(ctx, s, p)
		if err == nil || domain.Is(err, domain.CodeRolledBack) {
			return
		}
		if !told {
			g.log.Warn("what an instance does not have could not be looked for; it is tried again", "instance_id", s.Instance, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		case <-time.After(unheldEvery):
		}
	}
}

// tryUnheld waits for its turn first: nobody waits for its answer.
func (g *Gateway) tryUnheld(ctx context.Context, s *Session, p store.EndUnheldParams) error {
	if err := g.unheldLookups.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.unheldLookups.Release(1)
	if s.Closed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return g.opt.Inventory.EndUnheld(ctx, p)
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
