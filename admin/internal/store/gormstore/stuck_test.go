package gormstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestASweepLeavesAJobWhoseNextWaiterIsLocked: had it ended the run that holds
// the slot, nobody would have woken the one behind it.
func TestASweepLeavesAJobWhoseNextWaiterIsLocked(t *testing.T) {
	s := openStore(t, mysqlOptions(t)) // SQLite has no row locks
	ctx := t.Context()
	w := newWorld(t, s, 1, domain.BlockSerial)
	first, second := w.plan(1)[0], w.plan(1)[0]
	offered, err := s.OfferExecutions(ctx, w.offers([]domain.Execution{first}))
	require.NoError(t, err)
	granted, err := s.GrantOffers(ctx, w.grants(offered))
	require.NoError(t, err)
	require.True(t, granted[0].Granted)
	blocked, err := s.OfferExecutions(ctx, w.offers([]domain.Execution{second}))
	require.NoError(t, err)
	require.Equal(t, store.OfferBlocked, blocked[0].Status)

	_, err = s.Write.ExecContext(ctx, "UPDATE instances SET lease_until = 1 WHERE id = ?", int64(w.instance))
	require.NoError(t, err)
	require.NoError(t, newAging(s).Age(ctx, first.ID, time.Hour))
	other, err := s.Write.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = other.ExecContext(ctx, fmt.Sprintf("SELECT id FROM executions WHERE id = %d FOR UPDATE", second.ID))
	require.NoError(t, err)
	sweep := func() store.Swept {
		swept, err := s.SweepExecutions(ctx, store.SweepParams{Partitions: everyPartition(), Limit: 10, Hold: time.Second})
		require.NoError(t, err)
		return swept
	}
	require.Empty(t, sweep().Ended)
	require.NoError(t, other.Rollback())
	swept := sweep()
	require.Len(t, swept.Ended, 1)
	require.Equal(t, domain.Lost, swept.Ended[0].State)
	require.Len(t, swept.Dispatch, 1)
	require.Equal(t, second.ID, swept.Dispatch[0].ID)
}
