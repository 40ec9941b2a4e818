package db

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
)

// autocommitOffConnector makes connections that never commit by themselves: a
// transaction begins with its first statement, and BEGIN costs no round trip.
// At 1,000 fires a second every fourth request was a BEGIN (docs/adr/0033).
type autocommitOffConnector struct{ driver.Connector }

// Connect leaves autocommit to the last: what is read before begins nothing.
func (c autocommitOffConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	my, ok := conn.(mysqlConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("the MySQL driver's connections (%T) lack what transactions need", conn)
	}
	if _, err := my.ExecContext(ctx, "SET SESSION autocommit = 0", nil); err != nil {
		conn.Close()
		return nil, fmt.Errorf("leave transactions open: %w", err)
	}
	return &autocommitOffConn{mysqlConn: my}, nil
}

// autocommitOffConn is used by one goroutine at a time, as every driver.Conn.
type autocommitOffConn struct {
	mysqlConn
	// begun: somebody has a transaction here. It stays so when the end was not
	// answered with success: then the pool closes the connection, and the server
	// undoes whatever was left.
	begun bool
	// used: the server may have begun it.
	used bool
}

var errNoTransaction = errors.New("a statement outside of a transaction, on a connection that commits nothing by itself")

// BeginTx sends nothing. Isolation and all else is the session's.
func (c *autocommitOffConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if o != (driver.TxOptions{}) {
		return nil, errors.New("transactions of another isolation or for reading only are not made here")
	}
	if c.begun || !c.mysqlConn.IsValid() {
		return nil, driver.ErrBadConn // nothing was sent: another connection will do
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.begun, c.used = true, false
	return autocommitOffTx{c}, nil
}

// Begin is what database/sql uses of connections without BeginTx.
func (c *autocommitOffConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *autocommitOffConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	return c.mysqlConn.ExecContext(ctx, query, args)
}

func (c *autocommitOffConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	return c.mysqlConn.QueryContext(ctx, query, args)
}

func (c *autocommitOffConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if err := c.use(); err != nil {
		return nil, err
	}
	return c.mysqlConn.PrepareContext(ctx, query)
}

// Prepare is what database/sql uses of connections without PrepareContext.
func (c *autocommitOffConn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *autocommitOffConn) use() error {
	if !c.begun {
		return errNoTransaction
	}
	c.used = true
	return nil
}

// IsValid lets nothing back into the pool that may be inside a transaction.
func (c *autocommitOffConn) IsValid() bool { return !c.begun && c.mysqlConn.IsValid() }

// autocommitOffTx is the transaction that a connection is in.
type autocommitOffTx struct{ c *autocommitOffConn }

func (t autocommitOffTx) Commit() error { return t.end("COMMIT") }

func (t autocommitOffTx) Rollback() error { return t.end("ROLLBACK") }

// end is not called off with a context: once it is sent, only its answer tells.
func (t autocommitOffTx) end(how string) error {
	if t.c.used {
		if _, err := t.c.mysqlConn.ExecContext(context.Background(), how, nil); err != nil {
			return err
		}
	}
	t.c.begun, t.c.used = false, false
	return nil
}
