package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// member is a node whose connections lead to a server of its choice, as it seems:
// all are the same.
func member(t *testing.T, dsn, server string) (*DB, *atomic.Pointer[string]) {
	t.Helper()
	s, err := Open(Options{Driver: "mysql", DSN: dsn, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	leads := &atomic.Pointer[string]{}
	leads.Store(&server)
	s.writers.ask = func(context.Context, driver.Conn) (string, error) { return *leads.Load(), nil }
	return s, leads
}

func useCluster(t *testing.T) (dsn string, age func(server string, by time.Duration)) {
	t.Helper()
	dsn = testenv.Database(t)
	require.NoError(t, Migrate(t.Context(), Options{Driver: "mysql", DSN: dsn, Logger: slog.New(slog.DiscardHandler)}))
	root, err := Open(Options{Driver: "mysql", DSN: dsn, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return dsn, func(server string, by time.Duration) {
		now, err := root.Now(t.Context())
		require.NoError(t, err)
		_, err = root.Write.ExecContext(t.Context(), "UPDATE cluster_values SET value = ? WHERE name = ?", fmt.Sprintf("%s %d", server, now.Add(-by).UnixMilli()), DatabaseWriter)
		require.NoError(t, err)
	}
}

func guard(ctx context.Context, s *DB) error {
	return s.Run(ctx, "start something", func(t *Tx) error { return t.Guard() })
}

func TestASecondServerIsNotWrittenThrough(t *testing.T) {
	dsn, age := useCluster(t)
	ctx := t.Context()
	one, leads := member(t, dsn, "w1")
	two, _ := member(t, dsn, "w2")
	require.NoError(t, guard(ctx, one))

	err := guard(ctx, two)
	require.ErrorIs(t, err, errOtherWriter)
	require.True(t, domain.Is(err, domain.CodeUnavailable))
	require.NotEmpty(t, Unreachable(err))

	// All nodes have gone on to the other server, or nobody has renewed.
	age("w1", writerTTL+time.Second)
	require.NoError(t, guard(ctx, two))
	err = one.RenewTx(ctx, "renew", func(*Tx) error { return nil })
	require.ErrorIs(t, err, errOtherWriter)
	require.ErrorIs(t, guard(ctx, one), errOtherWriter, "its open connections lead to the server that it was")

	to := "w2"
	leads.Store(&to)
	require.NoError(t, guard(ctx, one))
	require.NoError(t, one.RenewTx(ctx, "renew", func(*Tx) error { return nil }))
}

// A clock far ahead holds nobody up for ever.
func TestAWriterOfTheFutureIsNone(t *testing.T) {
	dsn, age := useCluster(t)
	one, _ := member(t, dsn, "w1")
	two, _ := member(t, dsn, "w2")
	require.NoError(t, guard(t.Context(), one))
	age("w1", -writerAhead/2)
	require.ErrorIs(t, guard(t.Context(), two), errOtherWriter)
	age("w1", -2*writerAhead)
	require.NoError(t, guard(t.Context(), two))
}

// Without renewals nothing starts; a transaction renews by itself, if no other server
// is the writer by then.
func TestAWriterIsTrustedNoLongerThanItsLease(t *testing.T) {
	dsn, age := useCluster(t)
	one, _ := member(t, dsn, "w1")
	require.NoError(t, guard(t.Context(), one))
	lapse := func() { one.writers.until = time.Now().Add(-time.Millisecond) }
	lapse()
	require.NoError(t, guard(t.Context(), one))
	lapse()
	age("w2", 0)
	require.ErrorIs(t, guard(t.Context(), one), errOtherWriter)
}

// A transaction that was open while the writer changed is of the old one.
func TestATransactionDoesNotOutliveItsWriter(t *testing.T) {
	dsn, age := useCluster(t)
	one, leads := member(t, dsn, "w1")
	require.NoError(t, guard(t.Context(), one))
	err := one.Run(t.Context(), "start something", func(tx *Tx) error {
		age("w1", 2*writerTTL)
		to := "w2"
		leads.Store(&to)
		one.writers.refused = time.Now().Add(-writerPatience)
		if err := one.renewWriter(t.Context()); err != nil {
			return err
		}
		return tx.Guard()
	})
	require.True(t, domain.Is(err, domain.CodeUnavailable), "%v", err)
	require.Equal(t, "w2", one.writers.current())
}

// The connection that renews would hold on to a server that new ones do not reach.
func TestANodeLetsGoOfAServerThatTheEndpointHasLeft(t *testing.T) {
	dsn, _ := useCluster(t)
	one, leads := member(t, dsn, "w1")
	renew := func() error { return one.RenewTx(t.Context(), "renew", func(*Tx) error { return nil }) }
	require.NoError(t, renew())
	to := "w2"
	leads.Store(&to)
	_, err := one.Transactions.Conn(t.Context())
	require.ErrorIs(t, err, errOtherWriter)
	require.NoError(t, renew(), "for a moment it may be the endpoint's mistake")
	one.writers.refused = time.Now().Add(-writerPatience)
	require.ErrorIs(t, renew(), errOtherWriter)
}

func TestSeveralWritersMayBeAllowed(t *testing.T) {
	dsn, _ := useCluster(t)
	one, _ := member(t, dsn, "w1")
	require.NoError(t, guard(t.Context(), one))
	s, err := Open(Options{Driver: "mysql", DSN: dsn, AllowMultiWriter: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, guard(t.Context(), s))
}

// What a cluster answers to a COMMIT when it loses its majority does not say whether
// the others have it.
func TestCommitsThatAClusterMayHave(t *testing.T) {
	for number, unknown := range map[uint16]bool{myErrorDuringCommit: true, myHookFailed: true, myRolledBack: true, myUnknownCommand: true, myDeadlock: true, myReadOnlyOption: false} {
		err := commitError(&mysql.MySQLError{Number: number})
		require.Equal(t, unknown, errors.Is(err, errCommitUnknown), "%d", number)
		require.True(t, IsTransient(err), "%d", number)
	}
}

// Who only looks takes no lease for the server that the endpoint leads to.
func TestAReaderIsNoWriter(t *testing.T) {
	for readOnly, gated := range map[bool]bool{false: true, true: false} {
		s, err := Open(Options{Driver: "mysql", DSN: "a@tcp(127.0.0.1:1)/b", ReadOnly: readOnly})
		require.NoError(t, err)
		require.Equal(t, gated, s.writers != nil)
		require.NoError(t, s.Close())
	}
}
