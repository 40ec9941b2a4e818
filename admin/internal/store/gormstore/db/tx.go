package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/proto/failpoint"
)

// MustFind executes a statement that has to find its row.
func (t *Tx) MustFind(what string, id interface{ String() string }, statement string, args ...any) error {
	found, err := t.Exec(t.Ctx, statement, args...)
	if err == nil && found == 0 {
		err = NotFound(what, id)
	}
	return err
}

// Locking is gorm's FOR UPDATE; SQLite's dialect leaves it out by itself.
func (t *Tx) Locking() []clause.Expression {
	return []clause.Expression{clause.Locking{Strength: "UPDATE"}}
}

// SkipLocked is gorm's FOR UPDATE SKIP LOCKED.
func (t *Tx) SkipLocked() []clause.Expression {
	return []clause.Expression{clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}}
}

// RenewTx is LeaseTx for what prolongs leases, that of the database's writer first.
func (s *DB) RenewTx(ctx context.Context, step string, fn func(*Tx) error) error {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	if err := s.renewWriter(ctx); err != nil {
		return Translate(step, err)
	}
	return s.LeaseTx(ctx, step, fn)
}

// LeaseTx runs fn once on the connection of the leases.
func (s *DB) LeaseTx(ctx context.Context, step string, fn func(*Tx) error) error {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	tx, err := s.Leases.BeginTx(ctx, nil)
	if err != nil {
		return Translate(step, fmt.Errorf("begin: %w", err))
	}
	defer func() { _ = tx.Rollback() }() // of no effect after a commit
	if err := fn(&Tx{Ctx: ctx, DB: s, Dialect: s.Dialect, Conn: tx, SQL: tx}); err != nil {
		return Translate(step, err)
	}
	if err := s.Commit(tx); err != nil {
		return Translate(step, commitError(err))
	}
	return nil
}

const (
	// txTimeout bounds a transaction whose caller set no deadline.
	txTimeout = 10 * time.Second
	// TxTries is how often a transaction is tried, the first time included.
	TxTries = 6
	// TxBackoff is the mean wait before the first repetition; it doubles.
	TxBackoff = 5 * time.Millisecond
)

// Tx is one running transaction.
type Tx struct {
	Ctx     context.Context
	DB      *DB
	Dialect Dialect
	Conn    Statements // SQL, but for tests
	SQL     *sql.Tx
	Gorm    *gorm.DB // gorm on SQL
	writer  string   // the server of a cluster that was the writer before it began
	// Rearmed: the next fire time of a fixed delay was set.
	Rearmed bool
	audited []domain.AuditEntry // without ids
}

// Unwatched is for statements of batches: the driver hands every statement that
// could be called off to a goroutine that watches its context, and takes it
// back, which for a statement this small was a tenth of its cost. The
// connection's own time limits bound them.
func Unwatched(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// Statements is what a transaction's own statements are sent through.
type Statements interface {
	Querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// errCommitUnknown marks a COMMIT whose answer was lost.
var errCommitUnknown = errors.New("the connection broke during commit, its outcome is unknown")

// Run executes fn in a write transaction and repeats it when the database
// broke it off. A commit of unknown outcome is not repeated: the caller hears
// CodeUnavailable and has to look.
func (s *DB) Run(ctx context.Context, step string, fn func(*Tx) error) error {
	return s.RunChecked(ctx, step, nil, fn)
}

// RunRepeatable is run for transactions whose repetition changes nothing more.
func (s *DB) RunRepeatable(ctx context.Context, step string, fn func(*Tx) error) error {
	return s.RunChecked(ctx, step, func(context.Context) (bool, error) { return false, nil }, fn)
}

// RunAt is Run for what has to know the database's time at its begin.
func (s *DB) RunAt(ctx context.Context, step string, fn func(t *Tx, now time.Time) error) error {
	return s.Run(ctx, step, timed(fn))
}

// RunRepeatableAt is RunAt for transactions whose repetition changes nothing more.
func (s *DB) RunRepeatableAt(ctx context.Context, step string, fn func(t *Tx, now time.Time) error) error {
	return s.RunRepeatable(ctx, step, timed(fn))
}

// Value runs fn in a transaction of run, which is Run, RunRepeatable or another method of
// DB with this shape. It returns the value of fn after the commit. With an error it
// returns the zero value. fn writes to no variable outside of it, because that would hold
// what was never stored. A test finds such writes.
func Value[T any](ctx context.Context, run func(ctx context.Context, step string, fn func(*Tx) error) error, step string, fn func(*Tx) (T, error)) (T, error) {
	var value T
	if err := run(ctx, step, func(t *Tx) (err error) {
		value, err = fn(t)
		return err
	}); err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// ValueChecked is RunChecked with a value. landed is asked for the value of the last try.
func ValueChecked[T any](ctx context.Context, s *DB, step string, landed func(ctx context.Context, last T) (bool, error), fn func(*Tx) (T, error)) (T, error) {
	var last T
	if err := s.RunChecked(ctx, step, func(ctx context.Context) (bool, error) { return landed(ctx, last) }, func(t *Tx) (err error) {
		last, err = fn(t)
		return err
	}); err != nil {
		var zero T
		return zero, err
	}
	return last, nil
}

func timed(fn func(*Tx, time.Time) error) func(*Tx) error {
	return func(t *Tx) error {
		now, err := t.Clock()
		if err != nil {
			return err
		}
		return fn(t, now)
	}
}

// RunChecked is run with an answer to a commit of unknown outcome: landed
// looks whether what the last try of fn wrote is there. If so the transaction
// is done, else it is repeated.
func (s *DB) RunChecked(ctx context.Context, step string, landed func(context.Context) (bool, error), fn func(*Tx) error) error {
	return s.Repeat(ctx, step, landed, func(ctx context.Context) error { return s.TryOnce(ctx, step, fn) })
}

// Repeat calls once, which is one try of a transaction, as RunChecked says, and
// lets the observer know.
func (s *DB) Repeat(ctx context.Context, step string, landed func(context.Context) (bool, error), once func(context.Context) error) error {
	if s.Observe == nil {
		return s.try(ctx, step, landed, once)
	}
	began, tries := time.Now(), 0
	err := s.try(ctx, step, landed, func(ctx context.Context) error {
		tries++
		return once(ctx)
	})
	s.Observe(Transaction{Step: step, Took: time.Since(began), Repeats: max(0, tries-1), Err: err})
	return err
}

// try is repeat.
func (s *DB) try(ctx context.Context, step string, landed func(context.Context) (bool, error), once func(context.Context) error) error {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	backoff := TxBackoff
	for try := 1; ; try++ {
		err := panics.Catch(func() error { return once(ctx) }) // whoever asked has an answer to errors
		if err == nil {
			return nil
		}
		if errors.Is(err, errCommitUnknown) {
			if landed == nil {
				return domain.Errorf(domain.CodeUnavailable, "%s: %w", step, err)
			}
			if done, landErr := s.ask(ctx, landed); landErr != nil {
				return domain.Errorf(domain.CodeUnavailable, "%s: %w: %w", step, err, landErr)
			} else if done {
				return nil
			}
		} else if errors.Is(err, ErrStale) {
			try-- // fn does not rely on the same cached rows again
			continue
		} else if !IsTransient(err) {
			return Translate(step, err)
		}
		if try >= TxTries || ctx.Err() != nil {
			return Translate(step, err)
		}
		s.Logger.Debug("transaction repeated", "step", step, "try", try, "err", err)
		if !Sleep(ctx, rand.N(2*backoff)) {
			return Translate(step, err)
		}
		backoff *= 2
	}
}

// ask calls landed until the database answers.
func (s *DB) ask(ctx context.Context, landed func(context.Context) (bool, error)) (bool, error) {
	for backoff := TxBackoff; ; backoff = min(2*backoff, awayPause) {
		done, err := landed(ctx)
		if err == nil || !IsTransient(err) || !Sleep(ctx, rand.N(2*backoff)) {
			return done, err
		}
	}
}

// awayPause is the mean wait before a database that was away is asked again.
const awayPause = 50 * time.Millisecond

// Patiently repeats a step while the database is away, but not longer than
// that. The step has to be one that may be repeated after an unknown outcome.
func Patiently(ctx context.Context, patience time.Duration, step func() error) error {
	until := time.Now().Add(patience)
	for {
		err := step()
		if !domain.Is(err, domain.CodeUnavailable) || !time.Now().Before(until) || !Sleep(ctx, rand.N(2*awayPause)) {
			return err
		}
	}
}

// Sleep waits unless ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// WithDeadline gives a context without a deadline that of a transaction.
func WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, txTimeout)
}

func (s *DB) TryOnce(ctx context.Context, step string, fn func(*Tx) error) error {
	rearmed, err := s.transact(ctx, step, fn)
	if err != nil {
		return err
	}
	hit(step, "after") // not while it is this writer's turn
	if rearmed && s.OnRearm != nil {
		s.OnRearm()
	}
	return nil
}

// transact runs fn in one transaction and tells whether fn armed a trigger anew.
func (s *DB) transact(ctx context.Context, step string, fn func(*Tx) error) (rearmed bool, err error) {
	if s.turn != nil { // database/sql gives its only connection to any of those that wait
		if err := s.turn.Acquire(ctx, 1); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		began := time.Now()
		defer func() {
			s.bulk.wrote(ctx, time.Since(began))
			s.turn.Release(1)
		}()
	}
	writer := s.writers.current()
	g := s.Gorm.WithContext(ctx).Begin()
	if g.Error != nil {
		return false, fmt.Errorf("begin: %w", g.Error)
	}
	tx, ok := g.Statement.ConnPool.(*sql.Tx)
	if !ok {
		return false, errors.Join(fmt.Errorf("gorm began a transaction of type %T", g.Statement.ConnPool), g.Rollback().Error)
	}
	committed := false
	defer func() {
		if !committed { // also when fn panics: the connection must not keep its locks
			_ = tx.Rollback() // the error of fn tells more
		}
	}()
	t := &Tx{Ctx: ctx, DB: s, Dialect: s.Dialect, Conn: tx, SQL: tx, Gorm: g, writer: writer}
	if err := fn(t); err != nil {
		// The end of ctx has ended it, and a statement that does not know ctx says so in
		// words of its own: that the transaction is done, or its rows are closed.
		if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) && domain.CodeOf(err) == domain.CodeInternal {
			err = fmt.Errorf("%w: %w", ended, err)
		}
		return false, err
	}
	audited, err := t.writeAudit()
	if err != nil {
		return false, err
	}
	committed = true
	hit(step, "before")
	if err = s.Commit(tx); err != nil {
		err = commitError(err)
	}
	if audited != nil {
		audited(err)
	}
	return t.Rearmed && err == nil, err
}

// hit is the point before or after the commit of a step, "offer executions" for
// example at offer-executions.before-commit.
func hit(step, when string) {
	if failpoint.Enabled {
		failpoint.Hit(strings.ReplaceAll(step, " ", "-") + "." + when + "-commit")
	}
}

// commitError tells a commit that was refused from one whose outcome is unknown:
// its answer is missing, or it is that of a cluster whose server cannot say. What the
// others have heard of it before this one left them may be there.
func commitError(err error) error {
	var my *mysql.MySQLError
	isMySQL := errors.As(err, &my)
	if isMySQL && !unclear[my.Number] || errors.Is(err, sql.ErrTxDone) || isBusy(err) ||
		!isMySQL && !isBroken(err) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("%w: %w", errCommitUnknown, err)
}

// Exec runs a statement and returns the number of rows it found.
func (t *Tx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.Conn.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Querier is a pool or a transaction.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Query calls scan for each row of a result.
func Query(ctx context.Context, q Querier, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := q.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Look runs a read outside of a transaction and repeats it once when the
// connection turned out to be dead.
func (s *DB) Look(ctx context.Context, step string, fn func(ctx context.Context, q Querier, g *gorm.DB) error) error {
	ctx, cancel := WithDeadline(ctx)
	defer cancel()
	err := fn(ctx, s.Lookup, s.Reader.WithContext(ctx))
	if err != nil && IsTransient(err) && ctx.Err() == nil {
		err = fn(ctx, s.Lookup, s.Reader.WithContext(ctx))
	}
	return Translate(step, err)
}

// LookRows is look for a single statement.
func (s *DB) LookRows(ctx context.Context, step string, scan func(*sql.Rows) error, statement string, args ...any) error {
	return s.Look(ctx, step, func(ctx context.Context, q Querier, _ *gorm.DB) error { return Query(ctx, q, scan, statement, args...) })
}

// Snapshot runs reads that all see the database as it was at the first of them.
func (s *DB) Snapshot(ctx context.Context, fn func(Querier) error) error {
	tx, err := s.Read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.Dialect.snapshot()})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	return fn(tx)
}

// Clock reads the database's clock on its own.
func (t *Tx) Clock() (time.Time, error) {
	var ms int64
	err := Query(t.Ctx, t.Conn, func(rows *sql.Rows) error { return rows.Scan(&ms) }, "SELECT "+t.Dialect.Clock())
	if err == nil {
		t.DB.Clock.Learn(ms)
	}
	return Instant(ms), err
}

// EstimatedClock is clock without a statement, when the clock was read not
// long ago. Whoever decides by it has to write under Dialect.Fresh, which
// allows it to go on to what is due last of that which is nearer than the estimate
// is good, as due tells: whoever asks has a timer that says that is now.
func (t *Tx) EstimatedClock(due func(until time.Time) time.Time) (time.Time, error) {
	if ms, ok := t.Dialect.localClock(); ok {
		return Instant(ms), nil
	}
	if ms, ok := t.DB.Clock.now(); ok {
		now := Instant(ms)
		if due := due(now.Add(estimateError)); due.After(now) {
			now = due
		}
		return now, nil
	}
	return t.Clock()
}
