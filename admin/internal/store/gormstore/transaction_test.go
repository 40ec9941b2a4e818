package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
)

// Transactions are of one isolation and leave nothing open.
func TestSessionsOfTransactions(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	s.Transactions.SetMaxOpenConns(1)
	var first, second int64
	look := func(id *int64, end error) {
		err := s.Run(t.Context(), "look", func(x *db.Tx) error {
			var variable, isolation string
			if err := x.SQL.QueryRowContext(x.Ctx, "SELECT CONNECTION_ID()").Scan(id); err != nil {
				return err
			}
			if err := x.SQL.QueryRowContext(x.Ctx, "SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')").
				Scan(&variable, &isolation); err != nil {
				return err
			}
			require.Equal(t, "READ-COMMITTED", isolation)
			_, err := x.Exec(x.Ctx, "INSERT INTO cluster_values (name, value) VALUES ('look', '1')")
			return errors.Join(err, end)
		})
		require.ErrorIs(t, err, end)
	}
	written := func() (n int) {
		require.NoError(t, s.Write.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM cluster_values WHERE name = 'look'").Scan(&n))
		return n
	}
	look(&first, errors.New("no"))
	require.Zero(t, written())
	look(&second, nil)
	require.Equal(t, first, second, "the connection is used again")
	require.Equal(t, 1, written())
}

// The server ends a batch's connection after its statements and before its COMMIT: nothing of it stays, and the
// repetition writes all of it once.
func TestABatchLosesItsConnectionBeforeItsCommit(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	w := newWorld(t, s, 3, domain.BlockSerial)
	ctx := t.Context()
	holders := func() (n int) {
		require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT SUM(holders) FROM job_slots WHERE tenant_id = ?", int64(w.tenant)).Scan(&n))
		return n
	}
	kills, left := 0, -1
	kill := func() {
		var once sync.Once
		s.Commit = func(tx *sql.Tx) (err error) {
			once.Do(func() {
				kills++
				var id int64
				require.NoError(t, tx.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
				_, err := s.Write.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
				require.NoError(t, err)
				for there := 1; there > 0; { // the server undoes it on its own time
					require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id).Scan(&there))
				}
				left = holders()
			})
			return tx.Commit()
		}
	}
	claimed := w.plan(1)
	kill()
	offered, err := s.OfferExecutions(ctx, w.offers(claimed))
	require.NoError(t, err)
	require.Zero(t, left, "nothing was taken by what was broken off")
	require.Equal(t, 3, holders())
	for _, r := range offered {
		require.Equal(t, store.OfferMade, r.Status)
		require.EqualValues(t, 1, r.Execution.Fence, "offered once")
	}
	kill()
	granted, err := s.GrantOffers(ctx, w.grants(offered))
	require.NoError(t, err)
	for _, r := range granted {
		require.True(t, r.Granted)
	}
	kill()
	finished, err := s.FinishAttempts(ctx, w.reports(granted))
	require.NoError(t, err)
	require.Equal(t, 3, left, "nothing was given back by what was broken off")
	require.Zero(t, holders())
	for _, r := range finished {
		require.Equal(t, store.FinishStored, r.Code)
	}
	require.Equal(t, 3, kills)
}

// A connection that the server has ended while it waited in the pool is found out before it is used: nobody hears of it.
func TestADeadConnectionOfThePoolIsNotUsed(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	ctx := t.Context()
	var ids []int64
	var held []*sql.Conn
	for range 3 {
		conn, err := s.Write.Conn(ctx)
		require.NoError(t, err)
		var id int64
		require.NoError(t, conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id))
		ids, held = append(ids, id), append(held, conn)
	}
	killer, err := s.Write.Conn(ctx)
	require.NoError(t, err)
	for _, conn := range held {
		require.NoError(t, conn.Close()) // back to the pool
	}
	for _, id := range ids {
		_, err := killer.ExecContext(ctx, fmt.Sprintf("KILL %d", id))
		require.NoError(t, err)
		for there := 1; there > 0; {
			require.NoError(t, killer.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist WHERE id = ?", id).Scan(&there))
		}
	}
	var after int64
	require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&after))
	require.NotContains(t, ids, after)
	_, err = s.Write.ExecContext(ctx, "DELETE FROM cluster_values WHERE name = 'none'")
	require.NoError(t, err)
	require.NoError(t, killer.Close())
}

// A batch whose caller gives up while it runs says so, and writes nothing: its statements are not called off.
func TestABatchWhoseCallerGaveUp(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockSerial)
			claimed := w.plan(1)
			ids := []domain.ExecutionID{claimed[0].ID, claimed[1].ID, claimed[2].ID}
			ctx, giveUp := context.WithCancel(t.Context())
			err := s.RunBatch(ctx, "test", run.Request{Kind: run.Offers, IDs: ids}, func(b *engine.Batch) error {
				if _, err := b.Tx.Exec(b.Tx.Ctx, fmt.Sprintf("UPDATE executions SET state = %d WHERE id IN (%s)", domain.Failed, db.IDList(slices.Clone(ids)))); err != nil {
					return err
				}
				giveUp()
				for { // until the transaction has ended: the statements themselves do not know
					if _, err := b.Tx.Clock(); err != nil {
						return err
					}
				}
			})
			require.ErrorIs(t, err, context.Canceled)
			for _, id := range ids {
				view, err := s.FindExecution(t.Context(), w.tenant, id)
				require.NoError(t, err)
				require.Equal(t, domain.Due, view.State)
			}
		})
	}
}
