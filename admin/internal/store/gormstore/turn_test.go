package gormstore

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// Who waits for the embedded database's only writer gets it when all have had it
// that came before.
func TestWritersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, sqliteOptions(t))
		held, err := s.Write.Conn(t.Context())
		require.NoError(t, err)
		var wg sync.WaitGroup
		var came, went []int
		for i := range 30 {
			came = append(came, i)
			wg.Go(func() {
				err := s.Run(t.Context(), "turn", func(*db.Tx) error {
					went = append(went, i)
					return nil
				})
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			})
			synctest.Wait() // it waits
		}
		require.NoError(t, held.Close())
		wg.Wait()
		require.Equal(t, came, went)
	})
}

// A writer's turn is over with its transaction: who is told of the commit may
// write himself, or stand still, and nobody waits for him.
func TestATurnEndsWithItsCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, sqliteOptions(t))
		nothing := func(*db.Tx) error { return nil }
		wrote := errors.New("not called")
		s.OnRearm = func() { wrote = s.Run(t.Context(), "another", nothing) }
		require.NoError(t, s.Run(t.Context(), "turn", func(t *db.Tx) error {
			t.Rearmed = true
			return nil
		}))
		require.NoError(t, wrote)
	})
}

// A claim on the embedded database lets other writers in between its parts. When
// one part fails, those before it are claimed all the same, and handed over.
func TestAClaimInParts(t *testing.T) {
	s := openStore(t, sqliteOptions(t))
	at := s.Dialect.ClaimAtOnce()
	w := newWorld(t, s, 3*at+8, domain.BlockSerial)
	claims := 0
	s.Observe = func(tx db.Transaction) {
		if tx.Step == "claim due triggers" {
			claims++
		}
	}
	claim := func() (store.ClaimedTriggers, error) {
		return s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: len(w.jobs), Plan: w.planOne})
	}
	got, err := claim()
	require.NoError(t, err)
	require.Equal(t, len(w.jobs), got.Triggers)
	jobs := map[domain.JobID]bool{}
	for _, e := range got.Executions {
		jobs[e.JobID] = true
	}
	require.Len(t, jobs, len(w.jobs), "each once")
	require.Equal(t, 4, claims)

	full := errors.New("the disk is full")
	commits := 0
	s.Commit = func(tx *sql.Tx) error {
		if commits++; commits > 2 {
			return errors.Join(full, tx.Rollback())
		}
		return tx.Commit()
	}
	got, err = claim()
	require.NoError(t, err)
	require.Equal(t, 2*at, got.Triggers)
	require.Len(t, got.Executions, 2*at)
	require.False(t, got.NextFireAt.After(got.Now), "there is more to claim")
	got, err = claim()
	require.ErrorIs(t, err, full)
	require.Empty(t, got.Executions)
	s.Commit = (*sql.Tx).Commit
	rows := 0
	require.NoError(t, s.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM executions").Scan(&rows))
	require.Equal(t, len(w.jobs)+2*at, rows, "what was handed over is what is stored")
}
