package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// Of many transactions that follow one another only one waits for the writer. Others that have
// come meanwhile have their turn before the next one.
func TestOthersWriteBetweenBulkTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, sqliteOptions(t))
		held, err := s.Write.Conn(t.Context())
		require.NoError(t, err)
		var wg sync.WaitGroup
		var went []string
		write := func(name string, run func(context.Context, string, func(*db.Tx) error) error) {
			wg.Go(func() {
				err := run(t.Context(), "turn", func(*db.Tx) error {
					went = append(went, name)
					return nil
				})
				if err != nil {
					t.Errorf("writer %s: %v", name, err)
				}
			})
			synctest.Wait() // it waits
		}
		write("batch 1", s.RunBulk)
		write("batch 2", s.RunBulk)
		write("batch 3", s.RunBulk)
		write("start", s.Run)
		write("finish", s.Run)
		require.NoError(t, held.Close())
		wg.Wait()
		require.Equal(t, []string{"batch 1", "start", "finish", "batch 2", "batch 3"}, went)
	})
}

// A run takes several transactions, one after the other. While others write, a bulk
// transaction does not stand before each of them.
func TestOthersHaveTimeBetweenBulkTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t, sqliteOptions(t))
		var wg sync.WaitGroup
		var went []string
		write := func(name string, took time.Duration, run func(context.Context, string, func(*db.Tx) error) error) {
			err := run(t.Context(), "turn", func(*db.Tx) error {
				time.Sleep(took)
				went = append(went, name)
				return nil
			})
			if err != nil {
				t.Errorf("writer %s: %v", name, err)
			}
		}
		write("claim", 100*time.Millisecond, s.Run)
		for range 2 {
			wg.Go(func() { write("batch", 20*time.Millisecond, s.RunBulk) })
			synctest.Wait()
		}
		wg.Go(func() {
			for _, step := range []string{"offer", "start", "finish"} {
				write(step, 5*time.Millisecond, s.Run)
				time.Sleep(time.Millisecond) // the handler runs
			}
		})
		wg.Wait()
		require.Equal(t, []string{"claim", "batch", "offer", "start", "finish", "batch"}, went)
	})
}

// A batch of timers is written in parts on the embedded database, and so is its cancel.
func TestABatchInParts(t *testing.T) {
	s := openStore(t, sqliteOptions(t))
	w := newWorld(t, s, 1, domain.BlockSerial)
	job := w.timers(1, time.Now().Add(time.Hour))
	const many = 300
	parts := map[string]int{}
	s.Observe = func(tx db.Transaction) { parts[tx.Step]++ }
	list, keys := make([]store.SetTimer, many), make([]string, many)
	for i := range list {
		keys[i] = fmt.Sprint("of a batch ", i)
		list[i].Timer = domain.Timer{ID: domain.TimerID(w.ids.Next()), TenantID: w.tenant, JobID: job, FireAt: time.Now().Add(time.Hour), Key: keys[i]}
	}
	for _, r := range s.SetTimers(t.Context(), store.SetTimersParams{Timers: list}) {
		require.NoError(t, r.Err)
	}
	for _, r := range s.CancelTimers(t.Context(), store.CancelTimersParams{Tenant: w.tenant, Job: job, Keys: keys, By: "anna"}) {
		require.NoError(t, r.Err)
	}
	want := (many + s.Dialect.BulkAtOnce() - 1) / s.Dialect.BulkAtOnce()
	require.Equal(t, []int{want, want}, []int{parts["set timers"], parts["cancel timers"]})
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
