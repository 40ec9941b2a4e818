package main

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"time"
)

// replay sends recorded steps again, to a database in the state the recorded
// one was in: each stage's steps in order, from as many connections as the
// product uses for that stage, all stages at once.
type replay struct {
	steps   []step
	workers map[string]int
	pools   []driver.Connector
	// writers of a pool take turns when there is a lock for it: SQLite has one
	// writing connection, for which the product's goroutines queue too.
	shared map[int]*sharedConn
}

type sharedConn struct {
	mu   sync.Mutex
	conn driver.Conn // guarded by mu
}

// replayed is when each step was done, counted from the beginning, and how
// long its requests took.
type replayed struct {
	took time.Duration
	done []time.Duration
	busy []time.Duration
}

func (r *replay) run(ctx context.Context) (*replayed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &replayed{done: make([]time.Duration, len(r.steps)), busy: make([]time.Duration, len(r.steps))}
	finished := make([]chan struct{}, len(r.steps)) // each closed by the worker that did the step
	queues := map[string]chan int{}
	for i, s := range r.steps {
		finished[i] = make(chan struct{})
		if queues[s.stage] == nil {
			queues[s.stage] = make(chan int, len(r.steps))
		}
		queues[s.stage] <- i
	}
	var workers []*replayWorker
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	for stage, queue := range queues {
		close(queue)
		for range max(1, r.workers[stage]) {
			w := &replayWorker{r: r, queue: queue, conns: map[int]driver.Conn{}, stmts: map[int]driver.Stmt{}}
			workers = append(workers, w)
			if err := w.connect(ctx); err != nil {
				return nil, err
			}
		}
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for i := range w.queue {
				for _, before := range r.steps[i].after {
					select {
					case <-finished[before]:
					case <-ctx.Done():
						return
					}
				}
				start := time.Now()
				if err := w.do(ctx, &r.steps[i]); err != nil {
					cancel(fmt.Errorf("repeat recorded statements, %s: %w", r.steps[i].stage, err))
					return
				}
				out.done[i], out.busy[i] = time.Since(began), time.Since(start)
				close(finished[i])
			}
		})
	}
	all.Wait()
	out.took = time.Since(began)
	return out, context.Cause(ctx)
}

// replayWorker is one goroutine with connections of its own.
type replayWorker struct {
	r     *replay
	queue chan int
	conns map[int]driver.Conn // by pool; not for shared ones
	tx    driver.Tx           // of the transaction under way
	stmts map[int]driver.Stmt
	held  *sharedConn // by the transaction under way
}

func (w *replayWorker) connect(ctx context.Context) error {
	for i, c := range w.r.pools {
		if w.r.shared[i] != nil {
			continue
		}
		conn, err := c.Connect(ctx)
		if err != nil {
			return err
		}
		w.conns[i] = conn
	}
	return nil
}

func (w *replayWorker) close() {
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// do sends the requests of a step. A shared connection is held for as long as
// a transaction lasts.
func (w *replayWorker) do(ctx context.Context, s *step) (err error) {
	defer func() {
		if err != nil && w.tx != nil {
			err = errors.Join(err, w.tx.Rollback())
		}
		w.release()
	}()
	for i := range s.ops {
		o := &s.ops[i]
		conn := w.conns[o.pool]
		if shared := w.r.shared[o.pool]; shared != nil {
			if w.held == nil {
				shared.mu.Lock()
				w.held = shared
			}
			conn = shared.conn
		}
		if err := w.one(ctx, conn, o); err != nil {
			return err
		}
		if w.tx == nil {
			w.release()
		}
	}
	return nil
}

func (w *replayWorker) release() {
	if w.held != nil {
		w.held.mu.Unlock()
		w.held = nil
	}
}

func (w *replayWorker) one(ctx context.Context, conn driver.Conn, o *op) (err error) {
	full, ok := conn.(fullConn)
	if !ok {
		return errors.New("the driver lacks an optional interface")
	}
	switch o.kind {
	case opBegin:
		w.tx, err = full.BeginTx(ctx, o.opts)
	case opCommit:
		err = w.tx.Commit()
		w.tx = nil
	case opRollback:
		err = w.tx.Rollback()
		w.tx = nil
	case opExec:
		return same(o)(full.ExecContext(ctx, timeless(o.text), slices.Clone(o.args)))
	case opQuery:
		return drainRows(full.QueryContext(ctx, o.text, slices.Clone(o.args)))
	case opPrepare:
		w.stmts[o.stmt], err = full.PrepareContext(ctx, o.text)
	case opExecStmt:
		stmt, ok := w.stmts[o.stmt].(fullStmt)
		if !ok {
			return errors.New("a statement that was not prepared")
		}
		return same(o)(stmt.ExecContext(ctx, slices.Clone(o.args)))
	case opCloseStmt:
		if stmt := w.stmts[o.stmt]; stmt != nil {
			err = stmt.Close()
			delete(w.stmts, o.stmt)
		}
	}
	return err
}

// same checks that a statement did the work that was recorded: else the floor
// would be that of doing nothing.
func same(o *op) func(driver.Result, error) error {
	return func(result driver.Result, err error) error {
		if err != nil {
			return err
		}
		// SQLite answers with an old number to what changes no rows.
		if changes := o.kind == opExecStmt || changing.MatchString(o.text); !changes {
			return nil
		}
		if n, err := result.RowsAffected(); err != nil || n != o.rows {
			return errors.Join(err, fmt.Errorf("%d rows instead of %d: %.300s", n, o.rows, o.text))
		}
		return nil
	}
}

// timeless takes the end out of the condition that the clock which decided a
// move was read not long ago: it was, when the statement was recorded.
func timeless(text string) string {
	return fresh.ReplaceAllString(text, "BETWEEN $1 AND 9007199254740991")
}

var fresh = regexp.MustCompile(`BETWEEN (\d{13}) AND \d{13}`)

var changing = regexp.MustCompile(`^\s*(INSERT|UPDATE|DELETE|REPLACE)\b`)

func drainRows(rows driver.Rows, err error) error {
	if err != nil {
		return err
	}
	values := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		err = rows.Next(values)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}
