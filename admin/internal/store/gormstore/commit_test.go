package gormstore

import (
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// The connection breaks during COMMIT, after the database has committed or before: every move gives the answer that is true either way.
func TestLostCommitAnswers(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			for cut, commit := range map[string]func(*sql.Tx) error{"after commit": (*sql.Tx).Commit, "before commit": (*sql.Tx).Rollback} {
				t.Run(cut, func(t *testing.T) { testLostAnswers(t, s, commit) })
			}
		})
	}
}

// testLostAnswers has commit happen in truth when an answer is lost.
func testLostAnswers(t *testing.T, s *Store, commit func(*sql.Tx) error) {
	ctx := t.Context()
	cuts := 0
	whole := func() { s.Commit = (*sql.Tx).Commit }
	lose := func() { // the next commit's answer
		s.Commit = func(tx *sql.Tx) error {
			whole()
			cuts++
			if err := commit(tx); err != nil {
				return err
			}
			return driver.ErrBadConn
		}
	}
	whole()
	if tenant, err := s.FindTenantByName(ctx, "world"); err == nil {
		_, err := s.Write.ExecContext(ctx, "UPDATE tenants SET name = 'former' WHERE id = ?", int64(tenant.ID))
		require.NoError(t, err)
		_, err = s.Write.ExecContext(ctx, "UPDATE triggers SET next_fire_at = ?", db.Millis(domain.Never))
		require.NoError(t, err)
	}
	w := newWorld(t, s, 3, domain.BlockSerial)

	lose()
	claimed := w.plan(1)
	lose()
	offered, err := s.OfferExecutions(ctx, w.offers(claimed))
	require.NoError(t, err)
	for _, r := range offered {
		require.Equal(t, store.OfferMade, r.Status)
		require.EqualValues(t, 1, r.Execution.Fence)
	}
	lose()
	granted, err := s.GrantOffers(ctx, w.grants(offered))
	require.NoError(t, err)
	for _, r := range granted {
		require.True(t, r.Granted)
	}
	lose()
	finished, err := s.FinishAttempts(ctx, w.reports(granted))
	require.NoError(t, err)
	for _, r := range finished {
		require.Equal(t, store.FinishStored, r.Code)
	}

	// The slot is free again, once.
	var holders int
	require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT SUM(holders) FROM job_slots WHERE tenant_id = ?", int64(w.tenant)).Scan(&holders))
	require.Zero(t, holders)

	next := w.plan(1)
	lose()
	one, err := s.OfferExecutions(ctx, []store.Offer{{Tenant: w.tenant, ID: next[0].ID, Node: 1, Instance: w.instance, Idempotent: true, Granted: true}})
	require.NoError(t, err)
	require.Equal(t, store.OfferMade, one[0].Status, "or it would run nowhere and never end")
	require.EqualValues(t, 1, one[0].Execution.Fence, "what is sent is what is stored")
	require.Equal(t, domain.Running, one[0].Execution.State)
	lose()
	cancelled, err := s.RequestCancel(ctx, w.tenant, next[1].ID, domain.ReasonKilled, "")
	require.NoError(t, err)
	require.Equal(t, domain.Cancelled, cancelled.State)

	e := w.planOne(time.Now(), domain.Trigger{JobID: w.jobs[0], TenantID: w.tenant, Executor: w.executor, Revision: 1, NextFireAt: time.Now()}, nil).Executions[0]
	e.Cause, e.OccurrenceKey = domain.CauseAPI, "once"
	lose()
	run, created, err := s.CreateExecution(ctx, e)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, e.ID, run.ID)

	hash := sha256.Sum256([]byte(e.ID.String()))
	require.NoError(t, s.CreateRefreshToken(ctx, domain.RefreshToken{Hash: hash, TenantID: w.tenant, ExpiresAt: time.Now().Add(time.Hour)}))
	lose()
	_, err = s.UseRefreshToken(ctx, hash, 0)
	require.NoError(t, err, "a repeated commit is no stolen token")

	// An edit is not repeated: the caller is told that nobody knows.
	lose()
	_, err = s.SetJobState(ctx, store.SetJobStateParams{Tenant: w.tenant, ID: w.jobs[0], State: domain.JobPaused})
	require.Equal(t, domain.CodeUnavailable, domain.CodeOf(err), "%v", err)
	require.Equal(t, 9, cuts)
}

// A database that is away for longer than a transaction is repeated costs what
// executors have accepted no more than that: their offers are not left to expire.
func TestGrantsWaitForTheDatabase(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockSerial)
			offered, err := s.OfferExecutions(t.Context(), w.offers(w.plan(1)))
			require.NoError(t, err)
			refused := 0
			away := func() bool { refused++; return refused <= 2*db.TxTries }
			s.Commit = func(tx *sql.Tx) error {
				if !away() {
					return tx.Commit()
				}
				if err := tx.Rollback(); err != nil {
					return err
				}
				return driver.ErrBadConn
			}
			granted, err := s.GrantOffers(t.Context(), w.grants(offered))
			require.NoError(t, err)
			require.Len(t, granted, 3)
			for _, r := range granted {
				require.True(t, r.Granted)
			}
			require.Greater(t, refused, 2*db.TxTries)
		})
	}
}
