package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"regexp"
	"slices"
	"sync"
)

// opKind is what is asked of a connection.
type opKind uint8

const (
	opBegin opKind = iota
	opCommit
	opRollback
	opExec
	opQuery
	opPrepare  // stmt is the number the statement gets
	opExecStmt // of stmt
	opCloseStmt
)

// op is one request as the driver got it, and how many rows it touched.
type op struct {
	kind opKind
	pool int // which of the store's pools: connections differ in what they may do
	text string
	args []driver.NamedValue
	opts driver.TxOptions
	stmt int
	rows int64
}

// step is the requests of one call of the store, in order.
type step struct {
	stage string
	lives int
	after []int // steps that have to be done before
	ops   []op
}

// recorder writes down what a store asks of its connections. Calls of the
// store are to be made one after the other.
type recorder struct {
	mu      sync.Mutex
	pools   []driver.Connector // guarded by mu: the store's own connectors
	ops     []op               // guarded by mu: since the last take
	stmts   int                // guarded by mu
	running bool               // guarded by mu
}

// clockGuard is the upper bound that a statement sets to the database's clock,
// so that it changes nothing when it comes late. It is raised: the repetition
// comes later, and the statement costs what it did.
var clockGuard = regexp.MustCompile(`(AS SIGNED\) BETWEEN \d+ AND )\d+`)

// wrap is gormstore.Options.Connector.
func (r *recorder) wrap(c driver.Connector) driver.Connector {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pools = append(r.pools, c)
	return recordingConnector{c, r, len(r.pools) - 1}
}

// take returns what was asked since start, and stops.
func (r *recorder) take() []op {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.ops
	r.ops, r.running = nil, false
	return out
}

func (r *recorder) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops, r.running = nil, true
}

func (r *recorder) add(o op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		o.args = slices.Clone(o.args) // the caller may use the slice again
		o.text = clockGuard.ReplaceAllString(o.text, "${1}9999999999999")
		r.ops = append(r.ops, o)
	}
}

func (r *recorder) newStmt() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stmts++
	return r.stmts
}

type recordingConnector struct {
	driver.Connector
	r    *recorder
	pool int
}

func (c recordingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	full, ok := inner.(fullConn)
	if !ok {
		return nil, errors.Join(errors.New("the driver's connections cannot be recorded: they lack an optional interface"), inner.Close())
	}
	return &recordingConn{full, c.r, c.pool}, nil
}

// fullConn is what both drivers' connections can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// recordingConn passes everything on.
type recordingConn struct {
	fullConn
	r    *recorder
	pool int
}

// The rest of what database/sql asks for, if the driver's own connection has it.

func (c *recordingConn) ResetSession(ctx context.Context) error {
	if in, ok := c.fullConn.(driver.SessionResetter); ok {
		return in.ResetSession(ctx)
	}
	return nil
}

func (c *recordingConn) IsValid() bool {
	if in, ok := c.fullConn.(driver.Validator); ok {
		return in.IsValid()
	}
	return true
}

func (c *recordingConn) CheckNamedValue(v *driver.NamedValue) (err error) {
	if in, ok := c.fullConn.(driver.NamedValueChecker); ok {
		return in.CheckNamedValue(v)
	}
	v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value)
	return err
}

func (c *recordingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.r.add(op{kind: opBegin, pool: c.pool, opts: opts})
	return recordingTx{tx, c}, nil
}

func (c *recordingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.fullConn.ExecContext(ctx, text, args)
	if err == nil {
		n, _ := result.RowsAffected()
		c.r.add(op{kind: opExec, pool: c.pool, text: text, args: args, rows: n})
	}
	return result, err
}

func (c *recordingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.fullConn.QueryContext(ctx, text, args)
	if err == nil {
		c.r.add(op{kind: opQuery, pool: c.pool, text: text, args: args})
	}
	return rows, err
}

func (c *recordingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.fullConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	full, ok := stmt.(fullStmt)
	if !ok {
		return nil, errors.Join(errors.New("the driver's statements cannot be recorded"), stmt.Close())
	}
	n := c.r.newStmt()
	c.r.add(op{kind: opPrepare, pool: c.pool, text: text, stmt: n})
	return &recordingStmt{full, c, n}, nil
}

type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
}

type recordingTx struct {
	driver.Tx
	c *recordingConn
}

func (t recordingTx) Commit() error {
	err := t.Tx.Commit()
	if err == nil {
		t.c.r.add(op{kind: opCommit, pool: t.c.pool})
	}
	return err
}

func (t recordingTx) Rollback() error {
	err := t.Tx.Rollback()
	if err == nil {
		t.c.r.add(op{kind: opRollback, pool: t.c.pool})
	}
	return err
}

type recordingStmt struct {
	fullStmt
	c *recordingConn
	n int
}

func (s *recordingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	result, err := s.fullStmt.ExecContext(ctx, args)
	if err == nil {
		n, _ := result.RowsAffected()
		s.c.r.add(op{kind: opExecStmt, pool: s.c.pool, stmt: s.n, args: args, rows: n})
	}
	return result, err
}

func (s *recordingStmt) Close() error {
	s.c.r.add(op{kind: opCloseStmt, pool: s.c.pool, stmt: s.n})
	return s.fullStmt.Close()
}
