package gormstore

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// countAlone counts the statements that commit by themselves.
func countAlone(s *Store) *int {
	var n int
	s.ExecSingle = func(ctx context.Context, query string, args ...any) (sql.Result, error) {
		n++
		return s.Write.ExecContext(ctx, query, args...)
	}
	return &n
}

// One run goes from plan to end in three statements, where round trips cost.
func TestALoneRunNeedsNoTransaction(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		all := n.plan(1)
		n.offer(n.here, all[2]) // reads the limits, which are known for a second then
		n.belief()
		statements := countAlone(n.here)
		planned := all[:1]
		offered := n.offer(n.here, planned...)
		require.Equal(t, store.OfferMade, offered[0].Status)
		require.Equal(t, 2, n.holders())
		granted := n.grant(n.here, offered...)
		require.True(t, granted[0].Granted)
		finished := n.finish(n.here, granted...)
		require.Equal(t, store.FinishStored, finished[0].Code)
		require.Equal(t, 1, n.holders())

		view, err := n.there.FindExecution(t.Context(), n.tenant, planned[0].ID)
		require.NoError(t, err)
		require.Equal(t, view.Execution, finished[0].Execution, "what was believed is what is stored")
		require.Equal(t, domain.Succeeded, view.State)
		believed, stale := n.belief()
		require.EqualValues(t, 3, believed)
		require.Zero(t, stale)
		if n.here.Dialect.Singly() > 0 {
			require.Equal(t, 3, *statements)
		} else {
			require.Zero(t, *statements)
		}
	})
}

// A slot that another node has filled lets the one statement find nothing: run
// and slot stay as they are, and the run waits for its turn.
func TestALoneRunMeetsATakenSlot(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		earlier, later := n.plan(1)[:1], n.plan(1)[:1]
		require.Equal(t, earlier[0].JobID, later[0].JobID)
		require.Equal(t, store.OfferMade, n.offer(n.there, earlier...)[0].Status)
		require.Equal(t, store.OfferBlocked, n.offer(n.here, later...)[0].Status)
		require.Equal(t, 1, n.holders())
		require.Equal(t, domain.Due, n.state(later[0].ID))
		_, stale := n.belief()
		require.EqualValues(t, 1, stale)
	})
}

// A run that another node moved on is not moved again, and no slot with it.
func TestALoneRunWasMovedOn(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		planned := n.plan(1)[:1]
		_, err := n.there.RequestCancel(t.Context(), n.tenant, planned[0].ID, domain.ReasonKilled, "")
		require.NoError(t, err)
		require.Equal(t, store.OfferGone, n.offer(n.here, planned...)[0].Status)
		require.Zero(t, n.holders())
	})
}

// An end that has an alert to write, or somebody to wake, takes a transaction.
func TestALoneFailureWritesItsAlert(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		granted := n.grant(n.here, n.offer(n.here, n.plan(1)[:1]...)...)
		reports := n.reports(granted)
		reports[0].Report.Outcome, reports[0].Report.Error = domain.OutcomeFailed, "no money"
		statements := countAlone(n.here)
		out, err := n.here.FinishAttempts(t.Context(), reports)
		require.NoError(t, err)
		require.Equal(t, domain.Failed, out[0].Execution.State)
		require.Zero(t, *statements)
		require.Zero(t, n.holders())
		var alerts int
		require.NoError(t, n.there.Write.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM alert_events WHERE execution_id = ?",
			int64(granted[0].Execution.ID)).Scan(&alerts))
		require.Equal(t, 1, alerts)
	})
}

// What a batch writes beside its run and slot, by whichever way, is never left
// out: it takes the transaction.
func TestNothingIsWrittenBesideALoneStatement(t *testing.T) {
	onTwoNodes(t, domain.BlockSerial, func(t *testing.T, n *twoNodes) {
		err := n.here.TrySingle(t.Context(), "test", func(x *db.Tx) error {
			_, err := x.Exec(x.Ctx, "DELETE FROM cluster_values WHERE name = 'ping'")
			return err
		})
		require.ErrorIs(t, err, db.ErrNeedsTransaction)
		err = n.here.TrySingle(t.Context(), "test", func(x *db.Tx) error { return x.Gorm.Create(&record.RequestKeyRow{TenantID: 1}).Error })
		require.ErrorIs(t, err, db.ErrNeedsTransaction)
		err = n.here.TrySingle(t.Context(), "test", func(x *db.Tx) error {
			_, err := x.Clock()
			return err
		})
		require.ErrorIs(t, err, db.ErrNeedsTransaction)
	})
}
