package gormstore

import (
	"context"
	"database/sql"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// TestAFrozenClaimIsFreedAndFenced: a node stands still in the middle of a
// claim, with row locks. Its partition is taken over, the server ends its
// transaction, the new holder plans, and the old one plans nothing when it
// wakes.
func TestAFrozenClaimIsFreedAndFenced(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	one, two := openStore(t, o), openStore(t, o)
	w := newWorld(t, one, 1, domain.BlockParallel)
	job := w.jobs[0]
	ctx := t.Context()
	seen := w.held[domain.PartitionOf(job)]
	take := func(s *Store, boot string, ttl time.Duration, seen domain.PartitionTerm) []domain.PartitionLease {
		t.Helper()
		got, err := s.AcquirePartitions(ctx, store.AcquirePartitionsParams{Node: 1, BootID: boot, Want: []domain.PartitionTerm{seen}, TTL: ttl})
		require.NoError(t, err)
		return got
	}
	first := take(one, "one", 500*time.Millisecond, seen) // its old lease lasts longer than any may
	require.Len(t, first, 1)

	frozen, wake := make(chan struct{}), make(chan struct{})
	stand := sync.OnceFunc(func() { close(frozen) }) // the store tries again after it woke
	done := make(chan error, 1)
	go func() {
		_, err := one.ClaimDueTriggers(context.WithoutCancel(ctx), store.ClaimDueTriggersParams{
			Partitions: []domain.PartitionTerm{first[0].PartitionTerm}, Limit: 10,
			Plan: func(now time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
				stand()
				<-wake
				return w.planOne(now, tr, spec)
			},
		})
		done <- err
	}()
	<-frozen
	var second []domain.PartitionLease
	for len(second) == 0 { // until the lease has run out: the frozen claim keeps nobody out
		second = take(two, "two", time.Hour, first[0].PartitionTerm)
	}
	claimed := 0
	for claimed == 0 { // until the server has ended the frozen transaction
		got, err := two.ClaimDueTriggers(ctx, store.ClaimDueTriggersParams{
			Partitions: []domain.PartitionTerm{second[0].PartitionTerm}, Limit: 10, Plan: w.planOne,
		})
		require.NoError(t, err)
		claimed = len(got.Executions)
	}
	require.Equal(t, 1, claimed)
	close(wake)
	err := <-done
	require.True(t, domain.Is(err, domain.CodeStaleTerm), "%v", err)
	runs, err := two.ListExecutions(ctx, store.ListExecutionsParams{Tenant: w.tenant, Limit: 10})
	require.NoError(t, err)
	require.Len(t, runs, 1)
}

// onMariaDB says which of the two the tests run on.
func onMariaDB(t *testing.T, s *Store) bool {
	t.Helper()
	var version string
	require.NoError(t, s.Write.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version))
	return strings.Contains(version, "MariaDB")
}

// TestTheServerEndsOnlyTransactionsThatAreSilent: on MariaDB by its timeout for
// transactions, on MySQL by the one for connections, which is short only where
// a transaction may be.
func TestTheServerEndsOnlyTransactionsThatAreSilent(t *testing.T) {
	s := openStore(t, mysqlOptions(t))
	ctx := t.Context()
	limits := func(q db.Querier) string {
		t.Helper()
		var set []string
		require.NoError(t, db.Query(ctx, q, func(rows *sql.Rows) error {
			var name, value string
			err := rows.Scan(&name, &value)
			set = append(set, name+"="+value)
			return err
		}, "SHOW SESSION VARIABLES WHERE Variable_name IN ('idle_transaction_timeout', 'wait_timeout')"))
		return strings.Join(set, " ")
	}
	var server string
	require.NoError(t, s.Write.QueryRowContext(ctx, "SELECT @@GLOBAL.wait_timeout").Scan(&server))
	usual, bounded := "wait_timeout="+server, "wait_timeout=5"
	if onMariaDB(t, s) {
		usual = "idle_transaction_timeout=3 " + usual
		bounded = usual
	}
	s.Write.SetMaxOpenConns(1)
	require.Equal(t, usual, limits(s.Write))
	require.NoError(t, s.Snapshot(ctx, func(q db.Querier) error {
		require.Equal(t, bounded, limits(q))
		return nil
	}))
	require.Equal(t, usual, limits(s.Write), "after a transaction for reading")
	require.Equal(t, 1, s.Write.Stats().OpenConnections)
	require.NoError(t, s.LeaseTx(ctx, "test", func(x *db.Tx) error { require.Equal(t, bounded, limits(x.Conn)); return nil }))
	require.NoError(t, s.Run(ctx, "test", func(x *db.Tx) error { require.Equal(t, bounded, limits(x.Conn)); return nil }))
}

// TestNothingOfAnIdleNodeEnds: no pool hears of the server's timeouts, however
// long it has not been used, nor does whoever has taken a connection from it.
func TestNothingOfAnIdleNodeEnds(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	var repeats atomic.Int64
	o.Observe = func(x db.Transaction) { repeats.Add(int64(x.Repeats)) }
	s, clock := openStore(t, o), openStore(t, o)
	ctx := t.Context()
	taken, err := s.Write.Conn(ctx)
	require.NoError(t, err)
	defer taken.Close()
	use := func() {
		t.Helper()
		together := make(chan struct{}) // as many connections as transactions
		var errs errgroup.Group
		var began sync.WaitGroup
		began.Add(3)
		for range 3 {
			errs.Go(func() error {
				var once sync.Once
				return s.Run(ctx, "test", func(x *db.Tx) error {
					once.Do(began.Done)
					<-together
					_, err := x.Clock()
					return err
				})
			})
		}
		began.Wait()
		close(together)
		require.NoError(t, errs.Wait())
		_, err := s.Now(ctx)
		require.NoError(t, err)
		require.NoError(t, s.Snapshot(ctx, func(q db.Querier) error { return db.Query(ctx, q, func(*sql.Rows) error { return nil }, "SELECT 1") }))
		_, err = s.ReadPartitions(ctx)
		require.NoError(t, err)
	}
	use()
	// The server lets more time pass than any of its timeouts for what is silent.
	for range 3 {
		require.NoError(t, db.Query(ctx, clock.Read, func(*sql.Rows) error { return nil }, "SELECT SLEEP(2)"))
	}
	require.NoError(t, db.Query(ctx, taken, func(*sql.Rows) error { return nil }, "SELECT 1"))
	use()
	require.Zero(t, repeats.Load())
}

// TestASlowMigrationIsNotEnded: neither by the limits of transactions, nor by
// how long an answer may take otherwise.
func TestASlowMigrationIsNotEnded(t *testing.T) {
	t.Parallel()
	o := mysqlOptions(t)
	ctx := t.Context()
	s := openStore(t, o)
	// As if it had been broken off: it runs again, and fills this table.
	_, err := s.Write.ExecContext(ctx, "DELETE FROM goose_db_version WHERE version_id > 0")
	require.NoError(t, err)
	var tables []string
	require.NoError(t, db.Query(ctx, s.Write, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		tables = append(tables, name)
		return err
	}, "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT IN ('goose_db_version', 'partition_leases')"))
	_, err = s.Write.ExecContext(ctx, "DROP TABLE "+strings.Join(tables, ", "))
	require.NoError(t, err)
	_, err = s.Write.ExecContext(ctx, "DELETE FROM partition_leases")
	require.NoError(t, err)
	blocker, err := s.Write.Conn(ctx)
	require.NoError(t, err)
	defer blocker.Close()
	_, err = blocker.ExecContext(ctx, "LOCK TABLES partition_leases READ")
	require.NoError(t, err)
	slow := o
	slow.DSN += "&readTimeout=1s&wait_timeout=1"
	done := make(chan error, 1)
	go func() { done <- Migrate(context.WithoutCancel(ctx), slow) }()
	// Longer than any limit: of a silent connection, of a transaction, of an answer.
	for range 3 {
		_, err = blocker.ExecContext(ctx, "SELECT SLEEP(2)")
		require.NoError(t, err)
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	_, err = blocker.ExecContext(ctx, "UNLOCK TABLES")
	require.NoError(t, err)
	require.NoError(t, <-done)
	pending, err := PendingSQL(ctx, o)
	require.NoError(t, err)
	require.Empty(t, pending)
}
