package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAConnectionThatRestedTooLongIsNotUsed: nobody waits for the server to
// have ended it.
func TestAConnectionThatRestedTooLongIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := 0
		db := sql.OpenDB(connectorFunc(func() (driver.Conn, error) {
			made++
			return &restingConn{mysqlConn: &scripted{}, usedAt: time.Now()}, nil
		}))
		defer db.Close()
		use := func() {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "one")
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		}
		use()
		time.Sleep(restLimit)
		use()
		require.Equal(t, 1, made)
		time.Sleep(restLimit + time.Millisecond)
		use()
		require.Equal(t, 2, made)
	})
}

type connectorFunc func() (driver.Conn, error)

func (f connectorFunc) Connect(context.Context) (driver.Conn, error) { return f() }

func (f connectorFunc) Driver() driver.Driver { return nil }

// A limit that could not be lifted costs its connection, and not the transaction.
func TestAConnectionThatStaysLimitedIsNotUsed(t *testing.T) {
	fails := map[string]error{limitSilenceNoMore: errors.New("it broke")}
	db := sql.OpenDB(connectorFunc(func() (driver.Conn, error) { return &explicitConn{mysqlConn: &scripted{fails: fails}}, nil }))
	defer db.Close()
	for range 2 {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.Zero(t, db.Stats().OpenConnections)
	}
	delete(fails, limitSilenceNoMore)
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback())
	require.Equal(t, 1, db.Stats().OpenConnections)
}

// scripted is a connection of the driver's kind that fails where it is told to.
type scripted struct {
	mysqlConn
	fails map[string]error
	sent  []string
	ended bool
}

func (c *scripted) ExecContext(_ context.Context, query string, _ []driver.NamedValue) (driver.Result, error) {
	c.sent = append(c.sent, query)
	return driver.RowsAffected(1), c.fails[query]
}

func (c *scripted) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return scriptedTx{}, nil
}

func (c *scripted) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c *scripted) ResetSession(context.Context) error { return nil }

func (c *scripted) IsValid() bool { return !c.ended }

func (c *scripted) Close() error { c.ended = true; return nil }

func (c *scripted) Connect(context.Context) (driver.Conn, error) { c.ended = false; return c, nil }

func (c *scripted) Driver() driver.Driver { return nil }

// scriptedTx ends well.
type scriptedTx struct{}

func (scriptedTx) Commit() error { return nil }

func (scriptedTx) Rollback() error { return nil }
