package gormstore

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/engine"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// A claim holds its triggers from the moment it read them: another one passes
// over them, whatever it believes to hold.
func TestAClaimLocksItsTriggers(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	one, two := openStore(t, o), openStore(t, o)
	w := newWorld(t, one, 1, domain.BlockParallel)
	claim := func(s *Store, plan store.PlanFunc) store.ClaimedTriggers {
		got, err := s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: 1, Plan: plan})
		require.NoError(t, err)
		return got
	}
	meanwhile := -1
	got := claim(one, func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
		meanwhile = claim(two, w.planOne).Triggers
		return w.planOne(now, tr, spec)
	})
	require.Zero(t, meanwhile)
	require.Len(t, got.Executions, 1)
	require.Equal(t, 1, claim(two, w.planOne).Triggers, "let go with the commit")
}

// As of triggers: each timer becomes one run.
func TestAClaimLocksItsTimers(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	one, two := openStore(t, o), openStore(t, o)
	w := newWorld(t, one, 1, domain.BlockParallel)
	w.timers(1, time.Now())
	claim := func(s *Store, begin func(*domain.Execution)) int {
		got, err := s.ClaimDueTimers(t.Context(), store.ClaimDueTimersParams{Partitions: w.held, Limit: 10, NewID: w.ids.Next, Begin: begin})
		require.NoError(t, err)
		return len(got.Executions)
	}
	meanwhile := -1
	require.Equal(t, 1, claim(one, func(*domain.Execution) { meanwhile = claim(two, nil) }))
	require.Zero(t, meanwhile)
	require.Zero(t, claim(two, nil))
}

// The fence of a claim holds up to its commit: whoever takes its partition over
// sees what it planned, though the lease has run out.
func TestNobodyTakesOverBetweenTheFenceAndTheCommit(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	one, two := openStore(t, o), openStore(t, o)
	w := newWorld(t, one, 1, domain.BlockParallel)
	seen := w.held[domain.PartitionOf(w.jobs[0])]
	take := func(s *Store, boot string, ttl time.Duration, seen domain.PartitionTerm) []domain.PartitionLease {
		t.Helper()
		got, err := s.AcquirePartitions(t.Context(), store.AcquirePartitionsParams{Node: 1, BootID: boot, Want: []domain.PartitionTerm{seen}, TTL: ttl})
		require.NoError(t, err)
		return got
	}
	first := take(one, "one", 2*time.Second, seen) // its old lease lasts longer than any may
	require.Len(t, first, 1)
	require.NoError(t, one.Run(t.Context(), "test", func(x *db.Tx) error {
		if err := engine.VerifyTerms(x, storetest.TermsOf(first)); err != nil {
			return err
		}
		for {
			now, err := x.Clock()
			if err != nil {
				return err
			}
			if now.After(first[0].Until) {
				break
			}
		}
		require.Empty(t, take(two, "two", time.Hour, first[0].PartitionTerm))
		return nil
	}))
	require.Len(t, take(two, "two", time.Hour, first[0].PartitionTerm), 1)
}

// A claim that is committed is told, also if the search for the next fire time after it
// fails. Its runs are in no other memory.
func TestAClaimIsToldWhenTheSearchAfterItFails(t *testing.T) {
	s := openStore(t, sqliteOptions(t))
	w := newWorld(t, s, 3, domain.BlockSerial)
	s.Commit = func(tx *sql.Tx) error {
		return errors.Join(tx.Commit(), s.Read.Close()) // nothing is read after it
	}
	plan := func(now time.Time, of domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
		p := w.planOne(now, of, spec)
		p.NextFireAt = now.Add(time.Hour)
		return p
	}
	got, err := s.ClaimDueTriggers(t.Context(), store.ClaimDueTriggersParams{Partitions: w.held, Limit: 100, Plan: plan})
	require.NoError(t, err)
	require.Len(t, got.Executions, 3)
	require.Equal(t, got.Now, got.NextFireAt, "the next claim comes at once")
}
