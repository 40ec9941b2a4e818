package gormstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// TestWhatAFrozenTransactionHoldsIsNotTakenOn: the heir would wait for the end
// of its locks, with everything else that is in the same batch.
func TestWhatAFrozenTransactionHoldsIsNotTakenOn(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	w := newWorld(t, s, 3, domain.BlockParallel)
	planned := w.plan(1)
	list := func(dead ...domain.NodeID) (ids []domain.ExecutionID) {
		t.Helper()
		found, err := s.ListPlanned(t.Context(), store.ListPlannedParams{
			Partitions: everyPartition(), Horizon: 3 * time.Second, Limit: 100, OfferedBy: dead,
		})
		require.NoError(t, err)
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		return ids
	}
	require.Len(t, list(1), len(planned))

	frozen, err := s.Write.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	held := planned[1].ID
	var id int64
	require.NoError(t, frozen.QueryRowContext(t.Context(), "SELECT id FROM executions WHERE id = ? FOR UPDATE", int64(held)).Scan(&id))
	require.ElementsMatch(t, []domain.ExecutionID{planned[0].ID, planned[2].ID}, list(1))
	require.Len(t, list(), len(planned), "its holder stopped: it holds no locks")
	require.NoError(t, frozen.Rollback())
	require.Len(t, list(1), len(planned))
}
