package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A node that is frozen inside a transaction must not keep its row locks.
// MariaDB has a timeout for transactions only. MySQL has one
// for every silent connection, wait_timeout, which is therefore short only
// where a transaction may be: on the pool of transactions and on the lease
// connection for good, on the main pool from the beginning of an explicit
// transaction to its end (docs/adr/0007).

const (
	limitIdleTransactions = "SET SESSION idle_transaction_timeout = 3" // seconds; MariaDB
	limitSilence          = "SET SESSION wait_timeout = 5"             // seconds; MySQL
	limitSilenceUntilEnd  = "SET @carillon_wait_timeout = @@SESSION.wait_timeout, SESSION wait_timeout = 5"
	limitSilenceNoMore    = "SET SESSION wait_timeout = @carillon_wait_timeout"

	// restLimit is how long a connection may lie unused in the pool of
	// transactions and still be used. What is left of wait_timeout is the time
	// that its next statement has to reach the server.
	restLimit = 3 * time.Second
)

// limitIdle returns the connection as its pool may have it.
func limitIdle(ctx context.Context, conn mysqlConn, pool mysqlPool) (mysqlConn, error) {
	_, err := conn.ExecContext(ctx, limitIdleTransactions, nil)
	var my *mysql.MySQLError
	switch {
	case err == nil:
		return conn, nil
	case !errors.As(err, &my) || my.Number != myUnknownVariable:
		return nil, fmt.Errorf("limit idle transactions: %w", err)
	}
	if err := readAfterFailover(ctx, conn); err != nil {
		return nil, err
	}
	if pool == mainPool {
		return &explicitConn{mysqlConn: conn}, nil
	}
	if _, err := conn.ExecContext(ctx, limitSilence, nil); err != nil {
		return nil, fmt.Errorf("limit silence: %w", err)
	}
	if pool == leasePool {
		return conn, nil // used several times a second
	}
	return &restingConn{mysqlConn: conn, usedAt: time.Now()}, nil
}

// mysqlConn is all that database/sql uses of the driver's connections.
type mysqlConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
	driver.Validator
}

// restingConn is a connection for transactions on MySQL, which the server ends
// when it is silent.
type restingConn struct {
	mysqlConn
	usedAt time.Time // end of the last statement that is no question: of a COMMIT or ROLLBACK
}

func (c *restingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.mysqlConn.ExecContext(ctx, query, args)
	c.usedAt = time.Now()
	return result, err
}

// ResetSession is called when somebody takes the connection from the pool:
// nothing was sent yet, and another one will do.
func (c *restingConn) ResetSession(ctx context.Context) error {
	if time.Since(c.usedAt) > restLimit {
		return driver.ErrBadConn
	}
	return c.mysqlConn.ResetSession(ctx)
}

// explicitConn is a connection of the main pool on MySQL. Its transactions,
// which read only, cost two round trips more; they are not part of the hot path.
type explicitConn struct {
	mysqlConn
	// limited: the server ends this connection if it is silent. It stays so when
	// the limit could not be lifted; then the pool closes the connection.
	limited bool
}

// BeginTx limits the silence first.
func (c *explicitConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if _, err := c.ExecContext(ctx, limitSilenceUntilEnd, nil); err != nil {
		return nil, err
	}
	c.limited = true
	tx, err := c.mysqlConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	return explicitTx{tx, c}, nil
}

// Begin is what database/sql uses of connections without BeginTx.
func (c *explicitConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// IsValid lets no connection back into the pool that would end there.
func (c *explicitConn) IsValid() bool { return !c.limited && c.mysqlConn.IsValid() }

type explicitTx struct {
	driver.Tx
	c *explicitConn
}

func (t explicitTx) Commit() error { return t.end(t.Tx.Commit()) }

func (t explicitTx) Rollback() error { return t.end(t.Tx.Rollback()) }

// end lifts the limit of a transaction that has ended. What becomes of that is
// the connection's fate, not the transaction's.
func (t explicitTx) end(err error) error {
	if err != nil {
		return err
	}
	if _, lift := t.c.ExecContext(context.Background(), limitSilenceNoMore, nil); lift == nil {
		t.c.limited = false
	}
	return nil
}
