package gormstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
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

// settings is a connection that knows some variables.
type settings struct {
	unknown string
	sent    []string
}

func (s *settings) ExecContext(_ context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	s.sent = append(s.sent, statement)
	if statement == s.unknown {
		return nil, &mysql.MySQLError{Number: myUnknownVariable}
	}
	return driver.ResultNoRows, nil
}

func TestEachDatabaseLimitsIdleTransactionsItsWay(t *testing.T) {
	maria := &settings{}
	require.NoError(t, limitIdle(t.Context(), maria))
	require.Equal(t, []string{"SET SESSION idle_transaction_timeout = 3"}, maria.sent)
	mysql8 := &settings{unknown: "SET SESSION idle_transaction_timeout = 3"}
	require.NoError(t, limitIdle(t.Context(), mysql8))
	require.Equal(t, "SET SESSION wait_timeout = 5", mysql8.sent[1])

	s := openStore(t, mysqlOptions(t))
	for name, pool := range map[string]interface {
		Conn(context.Context) (*sql.Conn, error)
	}{"write": s.write, "leases": s.leases} {
		conn, err := pool.Conn(t.Context())
		require.NoError(t, err)
		var seconds int
		require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT @@SESSION.idle_transaction_timeout").Scan(&seconds))
		require.Equal(t, 3, seconds, name)
		require.NoError(t, conn.Close())
	}
}
