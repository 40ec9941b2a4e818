package gateway

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// judge is a Settler that answers by execution id: 1 grant, 2 drop, else keep.
type judge struct {
	mu    sync.Mutex
	err   error
	asked []store.SettleInventoryParams
	// hold, unless nil, lets an answer go on with each token; fixed before anybody joins.
	hold     chan struct{}
	together []int // guarded by mu: how many were asked about at once

	orphans chan store.EndOrphansParams
	fails   chan error // answers to the next ones
}

func (j *judge) EndOrphans(_ context.Context, p store.EndOrphansParams) error {
	j.orphans <- p
	select {
	case err := <-j.fails:
		return err
	default:
		return nil
	}
}

func (j *judge) SettleInventories(_ context.Context, list []store.SettleInventoryParams) []domain.SettledInventory {
	if j.hold != nil {
		<-j.hold
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, list...)
	j.together = append(j.together, len(list))
	out := make([]domain.SettledInventory, len(list))
	for n, p := range list {
		out[n].Err = j.err
		for _, h := range p.Items {
			out[n].Verdicts = append(out[n].Verdicts, map[domain.ExecutionID]domain.Verdict{1: domain.VerdictGrant, 2: domain.VerdictDrop}[h.ID])
		}
	}
	return out
}

func item(id int64, phase proto.AttemptPhase, boot string) *proto.InventoryItem {
	return &proto.InventoryItem{ExecutionId: id, Fence: id + 10, Phase: phase, BootId: boot}
}

func inventoryOfA() []*proto.InventoryItem {
	return []*proto.InventoryItem{
		item(1, proto.AttemptPhase_ATTEMPT_PHASE_ACCEPTED, bootA), item(2, proto.AttemptPhase_ATTEMPT_PHASE_GRANTED, bootA),
		item(3, proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, bootA), item(4, proto.AttemptPhase_ATTEMPT_PHASE_DONE, bootA),
		item(5, proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, bootB), item(6, proto.AttemptPhase(99), bootA),
	}
}

func requireVerdicts(t *testing.T, got []*proto.InventoryVerdict) {
	t.Helper()
	require.Len(t, got, 3)
	for i, want := range []proto.Verdict{proto.Verdict_VERDICT_GRANT, proto.Verdict_VERDICT_DROP, proto.Verdict_VERDICT_KEEP} {
		require.EqualValues(t, i+1, got[i].ExecutionId)
		require.EqualValues(t, i+11, got[i].Fence)
		require.Equal(t, want, got[i].Verdict)
	}
}

func TestInventoryIsJudgedUnderTheSessionsIdentity(t *testing.T) {
	b := start(t)
	p := b.joinWith(bootA, &proto.Register{Slots: 9, Inventory: inventoryOfA()})
	requireVerdicts(t, p.registered.Verdicts)
	s := get(t, b.rec.joined)
	want := store.SettleInventoryParams{Tenant: 1, Executor: 2, Instance: s.Instance, Items: []domain.Held{
		{ID: 1, Fence: 11, Phase: domain.HeldAccepted}, {ID: 2, Fence: 12, Phase: domain.HeldRunning}, {ID: 3, Fence: 13, Phase: domain.HeldRunning},
	}}
	require.Equal(t, []store.SettleInventoryParams{want}, b.judge.asked)

	// Asked again in the middle of the session, because another node is gone.
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Inventory{Inventory: &proto.Inventory{Items: inventoryOfA()}}})
	for {
		if m := p.nextControl(); m.GetVerdicts() != nil {
			requireVerdicts(t, m.GetVerdicts().Verdicts)
			break
		}
	}
	require.Equal(t, []store.SettleInventoryParams{want, want}, b.judge.asked)
}

func TestWithoutTheDatabaseAttemptsGoOn(t *testing.T) {
	b := start(t)
	b.judge.err = errors.New("no database")
	p := b.joinWith(bootA, &proto.Register{Slots: 9, Inventory: inventoryOfA()})
	require.Empty(t, p.registered.Verdicts)
	require.NotZero(t, p.registered.InstanceId, "it is registered all the same")
}

func TestAnEmptyInventoryCostsNothing(t *testing.T) {
	b := start(t)
	require.Empty(t, b.join(bootA, 1).registered.Verdicts)
	require.Empty(t, b.judge.asked)
}

func TestAnInventoryIsBounded(t *testing.T) {
	b := start(t)
	var items []*proto.InventoryItem
	for i := range int64(maxInventory + 10) {
		items = append(items, item(i+100, proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, bootA))
	}
	require.Len(t, b.joinWith(bootA, &proto.Register{Slots: 9, Inventory: items}).registered.Verdicts, maxInventory)
}

// TestACompleteInventoryTellsWhatIsNotThere, and is told until it is heard.
func TestACompleteInventoryTellsWhatIsNotThere(t *testing.T) {
	b := start(t)
	b.judge.fails <- errors.New("no database")
	registered := time.Now()
	b.fleet.registered = registered
	p := b.joinWith(bootA, &proto.Register{Slots: 9, Inventory: inventoryOfA(), InventoryComplete: true})
	for range 2 {
		got := get(t, b.judge.orphans)
		require.True(t, got.Taken.Before(registered), "it was made after the greeting")
		got.Taken = time.Time{}
		require.Equal(t, store.EndOrphansParams{
			Tenant: 1, Executor: 2, Instance: domain.InstanceID(p.registered.InstanceId), Since: registered.Add(-time.Hour),
			Has: []domain.Held{{ID: 1, Fence: 11}, {ID: 2, Fence: 12}, {ID: 3, Fence: 13}, {ID: 4, Fence: 14}, {ID: 6, Fence: 16}},
		}, got)
	}
	b.judge.fails <- domain.Errorf(domain.CodeRolledBack, "held") // the next session tells again
	b.joinWith(bootA, &proto.Register{Slots: 9, InventoryComplete: true})
	require.Empty(t, get(t, b.judge.orphans).Has)
	b.joinWith(bootA, &proto.Register{Slots: 9})
	b.joinWith(bootA, &proto.Register{Slots: 9, Inventory: inventoryOfA(), InventoryComplete: true})
	require.Len(t, get(t, b.judge.orphans).Has, 5, "the one before said nothing")
}

// TestSessionsAreRenewed, also those that began before and stand after.
func TestSessionsAreRenewed(t *testing.T) {
	b := start(t)
	b.join(bootA, 1)
	first := get(t, b.rec.joined)
	conn, answer := b.dial(hello(goodToken, bootB))
	b.gate.RenewSessions()
	require.Same(t, first, get(t, b.rec.left))
	require.ErrorIs(t, first.err(), errRenewed)
	b.registerOver(conn, answer, &proto.Register{Slots: 1})
	late := get(t, b.rec.left)
	require.ErrorIs(t, late.err(), errRenewed)
	b.join(bootA, 1)
	for s := get(t, b.rec.joined); s.BootID != bootA; {
		s = get(t, b.rec.joined)
	}
	require.Equal(t, 1, b.gate.Count())
}

// TestInventoriesAreJudgedTogether: what piles up while an answer is on its way goes
// with the next question; who holds much asks for itself.
func TestInventoriesAreJudgedTogether(t *testing.T) {
	b := start(t)
	b.judge.hold = make(chan struct{})
	const crowd = 30
	peers := make([]*peerEnd, crowd)
	for n := range peers {
		peers[n] = b.join(bootOf(n), 9)
		get(t, b.rec.joined)
	}
	ask := func(p *peerEnd, items []*proto.InventoryItem) {
		p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Inventory{Inventory: &proto.Inventory{Items: items}}})
	}
	for n, p := range peers[1:] {
		boot := bootOf(n + 1)
		ask(p, []*proto.InventoryItem{item(int64(n+100), proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, boot), item(1, proto.AttemptPhase_ATTEMPT_PHASE_ACCEPTED, boot)})
	}
	var many []*proto.InventoryItem
	for i := range int64(maxBatchedInventory) {
		many = append(many, item(i+10, proto.AttemptPhase_ATTEMPT_PHASE_RUNNING, bootOf(0)))
	}
	require.Eventually(t, func() bool { return b.gate.inventories.settles.Waiting() == crowd-2 }, 20*time.Second, time.Millisecond)
	ask(peers[0], many)
	close(b.judge.hold)
	verdicts := func(p *peerEnd) []*proto.InventoryVerdict {
		for {
			if m := p.nextControl(); m.GetVerdicts() != nil {
				return m.GetVerdicts().Verdicts
			}
		}
	}
	require.Len(t, verdicts(peers[0]), maxBatchedInventory)
	for n, p := range peers[1:] {
		got := verdicts(p)
		require.Len(t, got, 2)
		require.EqualValues(t, n+100, got[0].ExecutionId, "each gets its own")
		require.Equal(t, proto.Verdict_VERDICT_KEEP, got[0].Verdict)
		require.Equal(t, proto.Verdict_VERDICT_GRANT, got[1].Verdict)
	}
	b.judge.mu.Lock()
	defer b.judge.mu.Unlock()
	require.ElementsMatch(t, []int{1, 1, crowd - 2}, b.judge.together)
}

// Large inventories of one tenant are judged one after the other: the places for
// them are for all tenants.
func TestLargeInventoriesTakeOnePlaceOfTheirTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		judge := &judge{hold: make(chan struct{})}
		g := New(Options{Logger: slog.New(slog.DiscardHandler), Inventory: judge})
		large := store.SettleInventoryParams{Items: make([]domain.Held, maxBatchedInventory)}
		many, one := newAccount(), newAccount()
		for range 2 * maxLookups {
			go func() { _, _ = g.inventories.ask(t.Context(), many, large) }()
		}
		synctest.Wait()
		require.Equal(t, 1, taken(g.inventories.lookups, maxLookups))
		go func() { _, _ = g.inventories.ask(t.Context(), one, large) }()
		synctest.Wait()
		require.Equal(t, 2, taken(g.inventories.lookups, maxLookups), "another tenant need not wait")
		close(judge.hold)
		synctest.Wait()
		require.Zero(t, taken(g.inventories.lookups, maxLookups))
		require.Zero(t, taken(many.lookup, 1))
		require.Len(t, judge.asked, 2*maxLookups+1)
	})
}

// taken counts what is held of a semaphore.
func taken(s *semaphore.Weighted, of int) (n int) {
	for n = of; n > 0 && s.TryAcquire(1); n-- {
	}
	s.Release(int64(of - n))
	return n
}
