package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

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

func openScripted(t *testing.T, fails map[string]error) (*scripted, *sql.DB) {
	t.Helper()
	c := &scripted{fails: fails}
	db := sql.OpenDB(autocommitOffConnector{c})
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return c, db
}

const setAutocommitOff = "SET SESSION autocommit = 0"

// A transaction is its statements and its end; one without statements is nothing.
func TestATransactionBeginsWithItsFirstStatement(t *testing.T) {
	c, db := openScripted(t, nil)
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, end(tx), "nothing to end")
		tx, err = db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		for _, statement := range []string{"one", "two"} {
			_, err = tx.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		require.NoError(t, end(tx))
	}
	require.Equal(t, []string{setAutocommitOff, "one", "two", "COMMIT", "one", "two", "ROLLBACK"}, c.sent, "on one connection")
}

// Whatever happens to an end, nobody gets a connection that may be inside of a transaction.
func TestNoConnectionReturnsInsideATransaction(t *testing.T) {
	broken := errors.New("it broke")
	for _, c := range []struct {
		end  func(*sql.Tx) error
		sent string
	}{{(*sql.Tx).Commit, "COMMIT"}, {(*sql.Tx).Rollback, "ROLLBACK"}} {
		conn, db := openScripted(t, map[string]error{c.sent: broken})
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "one")
		require.NoError(t, err)
		require.ErrorIs(t, c.end(tx), broken)
		require.True(t, conn.ended)
		require.Zero(t, db.Stats().OpenConnections)

		delete(conn.fails, c.sent)
		tx, err = db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		require.Equal(t, []string{setAutocommitOff, "one", c.sent, setAutocommitOff}, conn.sent)
	}
}

// A statement outside of a transaction would never be committed, and a read would hold its view.
func TestNothingIsSentOutsideOfATransaction(t *testing.T) {
	c, db := openScripted(t, nil)
	_, err := db.ExecContext(t.Context(), "one")
	require.ErrorIs(t, err, errNoTransaction)
	_, err = db.QueryContext(t.Context(), "one")
	require.ErrorIs(t, err, errNoTransaction)
	_, err = db.PrepareContext(t.Context(), "one")
	require.ErrorIs(t, err, errNoTransaction)
	_, err = db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSerializable})
	require.Error(t, err)
	_, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	require.Error(t, err)
	require.Equal(t, []string{setAutocommitOff}, c.sent)
}
