package gateway

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/proto"
)

// judge is a Settler that answers by execution id: 1 grant, 2 drop, else keep.
type judge struct {
	mu    sync.Mutex
	err   error
	asked []store.SettleInventoryParams
}

func (j *judge) SettleInventory(_ context.Context, p store.SettleInventoryParams) ([]domain.Verdict, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.asked = append(j.asked, p)
	out := make([]domain.Verdict, len(p.Items))
	for i, h := range p.Items {
		out[i] = map[domain.ExecutionID]domain.Verdict{1: domain.VerdictGrant, 2: domain.VerdictDrop}[h.ID]
	}
	return out, j.err
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
