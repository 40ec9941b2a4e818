package gateway

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// Settler compares what instances hold with the database. It answers in the
// order of the list, and of the items.
type Settler interface {
	SettleInventories(ctx context.Context, list []store.SettleInventoryParams) []domain.SettledInventory
	// EndOrphans ends attempts that the database has and a complete inventory has not.
	EndOrphans(ctx context.Context, p store.EndOrphansParams) error
}

// maxInventory bounds the attempts that one frame may ask about; a bit more
// than an SDK's slots.
const maxInventory = 5000

// settleTimeout bounds the wait for the database. It stays below HelloTimeout,
// so that an executor hears at least that it is registered.
const settleTimeout = 3 * time.Second

// inventories compares what instances say they hold with the database.
type inventories struct {
	// fixed after construction
	settler       Settler // nil: no verdicts
	tasks         *tasks
	log           *slog.Logger
	settles       *batch.Calls[store.SettleInventoryParams, domain.SettledInventory]
	lookups       *semaphore.Weighted // one per executor, shared with verifier
	orphanLookups *semaphore.Weighted // one per look for what an instance does not have
}

// settle judges an inventory. Attempts without a verdict go on as they are:
// that is what an instance gets when the database does not answer, and its own
// rules (no grant in time, no lease) do the rest.
func (iv *inventories) settle(ctx context.Context, s *Session, items []*proto.InventoryItem) []*proto.InventoryVerdict {
	held := heldOf(s, items)
	if len(held) == 0 || iv.settler == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	settled, err := iv.ask(ctx, s.account, store.SettleInventoryParams{
		Tenant: s.Tenant, Executor: s.Executor, Instance: s.Instance, Items: held,
	})
	if err == nil {
		err = settled.Err
	}
	if err != nil {
		iv.log.Warn("an inventory could not be settled", "instance_id", s.Instance, "count", len(held), "err", err)
		iv.tasks.tellFault(err)
		return nil
	}
	out := make([]*proto.InventoryVerdict, len(settled.Verdicts))
	for i, v := range settled.Verdicts {
		out[i] = &proto.InventoryVerdict{ExecutionId: int64(held[i].ID), Fence: held[i].Fence, Verdict: verdictOf(v)}
	}
	return out
}

// maxBatchedInventory: an inventory of so many attempts is judged by itself, so that
// small ones do not wait for large ones.
const maxBatchedInventory = 50

// ask goes together with others who ask now, unless it is about much.
func (iv *inventories) ask(ctx context.Context, a *account, p store.SettleInventoryParams) (domain.SettledInventory, error) {
	if len(p.Items) < maxBatchedInventory {
		return iv.settles.Do(ctx, p)
	}
	for _, places := range []*semaphore.Weighted{a.lookup, iv.lookups} {
		if err := places.Acquire(ctx, 1); err != nil {
			return domain.SettledInventory{}, err
		}
		defer places.Release(1)
	}
	return iv.settler.SettleInventories(ctx, []store.SettleInventoryParams{p})[0], nil
}

// orphanRetryInterval is the pause before orphans of an instance are looked for
// again, while the database does not answer.
const orphanRetryInterval = time.Second

// orphanCheckOf asks for the orphans of an instance by the inventory of its
// registration; nil when that does not say that it leaves nothing out.
func orphanCheckOf(s *Session, p *peer, reg *proto.Register, i domain.Instance) *store.EndOrphansParams {
	if !reg.InventoryComplete {
		return nil
	}
	out := &store.EndOrphansParams{
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

// endOrphans tries until the database has answered: nobody else would end these
// attempts while their instance lives. While the database is under suspicion of a rollback there
// is nothing to do: the session is ended when an operator has accepted it.
func (iv *inventories) endOrphans(ctx context.Context, s *Session, p store.EndOrphansParams) {
	for told := false; ; told = true {
		err := iv.tryEndOrphans(ctx, s, p)
		if err == nil || domain.Is(err, domain.CodeRolledBack) {
			return
		}
		if !told {
			iv.log.Warn("what an instance does not have could not be looked for; it is tried again", "instance_id", s.Instance, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.closed:
			return
		case <-time.After(orphanRetryInterval):
		}
	}
}

// tryEndOrphans waits for its turn first: nobody waits for its answer.
func (iv *inventories) tryEndOrphans(ctx context.Context, s *Session, p store.EndOrphansParams) error {
	if err := iv.orphanLookups.Acquire(ctx, 1); err != nil {
		return err
	}
	defer iv.orphanLookups.Release(1)
	if s.Closed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	return iv.settler.EndOrphans(ctx, p)
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

// answer answers an instance that lost its session to another node. The
// session's reader waits for the database meanwhile: whoever asks without end
// slows down nobody but itself.
func (iv *inventories) answer(ctx context.Context, s *Session, items []*proto.InventoryItem) {
	s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Verdicts{
		Verdicts: &proto.Verdicts{Verdicts: iv.settle(ctx, s, items)},
	}})
}
