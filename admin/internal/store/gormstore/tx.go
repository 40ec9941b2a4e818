package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/rescue"
	"github.com/carillon-sched/carillon/proto/failpoint"
)

const (
	// txTimeout bounds a transaction whose caller set no deadline.
	txTimeout = 10 * time.Second
	// txTries is how often a transaction is tried, the first time included.
	txTries = 6
	// txBackoff is the mean wait before the first repetition; it doubles.
	txBackoff = 5 * time.Millisecond
)

// txn is one running transaction.
type txn struct {
	ctx context.Context
	s   *DB
	d   dialect
	q   statements // raw, or what refuses statements (alone.go)
	raw *sql.Tx
	db  *gorm.DB // gorm on raw
	// alone is set while one statement has to do (alone.go): then q and db refuse
	// all others, and there is no raw.
	alone *lone
	// rearmed: the next fire time of a fixed delay was set.
	rearmed bool
}

// statements is what a transaction's own statements are sent through.
type statements interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// errCommitUnknown marks a COMMIT whose answer was lost.
var errCommitUnknown = errors.New("the connection broke during commit, its outcome is unknown")

// run executes fn in a write transaction and repeats it when the database
// broke it off. A commit of unknown outcome is not repeated: the caller hears
// CodeUnavailable and has to look.
func (s *DB) run(ctx context.Context, step string, fn func(*txn) error) error {
	return s.runChecked(ctx, step, nil, fn)
}

// runRepeatable is run for transactions whose repetition changes nothing more.
func (s *DB) runRepeatable(ctx context.Context, step string, fn func(*txn) error) error {
	return s.runChecked(ctx, step, func(context.Context) (bool, error) { return false, nil }, fn)
}

// runChecked is run with an answer to a commit of unknown outcome: landed
// looks whether what the last try of fn wrote is there. If so the transaction
// is done, else it is repeated.
func (s *DB) runChecked(ctx context.Context, step string, landed func(context.Context) (bool, error), fn func(*txn) error) error {
	return s.repeat(ctx, step, landed, func(ctx context.Context) error { return s.tryOnce(ctx, step, fn) })
}

// repeat calls once, which is one try of a transaction, as runChecked says, and
// lets the observer know.
func (s *DB) repeat(ctx context.Context, step string, landed func(context.Context) (bool, error), once func(context.Context) error) error {
	if s.observe == nil {
		return s.try(ctx, step, landed, once)
	}
	began, tries := time.Now(), 0
	err := s.try(ctx, step, landed, func(ctx context.Context) error {
		tries++
		return once(ctx)
	})
	s.observe(Transaction{Step: step, Took: time.Since(began), Repeats: max(0, tries-1), Err: err})
	return err
}

// try is repeat.
func (s *DB) try(ctx context.Context, step string, landed func(context.Context) (bool, error), once func(context.Context) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	backoff := txBackoff
	for try := 1; ; try++ {
		err := rescue.Call(func() error { return once(ctx) }) // whoever asked has an answer to errors
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
		} else if errors.Is(err, errStale) {
			try-- // fn does not rely on the same belief again
			continue
		} else if !isTransient(err) {
			return translate(step, err)
		}
		if try >= txTries || ctx.Err() != nil {
			return translate(step, err)
		}
		s.log.Debug("transaction repeated", "step", step, "try", try, "err", err)
		if !sleep(ctx, rand.N(2*backoff)) {
			return translate(step, err)
		}
		backoff *= 2
	}
}

// ask calls landed until the database answers.
func (s *DB) ask(ctx context.Context, landed func(context.Context) (bool, error)) (bool, error) {
	for backoff := txBackoff; ; backoff = min(2*backoff, awayPause) {
		done, err := landed(ctx)
		if err == nil || !isTransient(err) || !sleep(ctx, rand.N(2*backoff)) {
			return done, err
		}
	}
}

// awayPause is the mean wait before a database that was away is asked again.
const awayPause = 50 * time.Millisecond

// patiently repeats a step while the database is away, but not longer than
// that. The step has to be one that may be repeated after an unknown outcome.
func patiently(ctx context.Context, patience time.Duration, step func() error) error {
	until := time.Now().Add(patience)
	for {
		err := step()
		if !domain.Is(err, domain.CodeUnavailable) || !time.Now().Before(until) || !sleep(ctx, rand.N(2*awayPause)) {
			return err
		}
	}
}

// sleep waits unless ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, txTimeout)
}

func (s *DB) tryOnce(ctx context.Context, step string, fn func(*txn) error) error {
	rearmed, err := s.transact(ctx, step, fn)
	if err != nil {
		return err
	}
	hit(step, "after") // not while it is this writer's turn
	if rearmed && s.onRearm != nil {
		s.onRearm()
	}
	return nil
}

// transact runs fn in one transaction and tells whether fn armed a trigger anew.
func (s *DB) transact(ctx context.Context, step string, fn func(*txn) error) (rearmed bool, err error) {
	if s.turn != nil { // database/sql gives its only connection to any of those that wait
		if err := s.turn.Acquire(ctx, 1); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		defer s.turn.Release(1)
	}
	g := s.db.WithContext(ctx).Begin()
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
	t := &txn{ctx: ctx, s: s, d: s.d, q: tx, raw: tx, db: g}
	if err := fn(t); err != nil {
		if errors.Is(err, sql.ErrTxDone) { // ctx ended it, and not every statement knows ctx
			err = cmp.Or(ctx.Err(), err)
		}
		return false, err
	}
	committed = true
	hit(step, "before")
	if err := s.commit(tx); err != nil {
		return false, commitError(err)
	}
	return t.rearmed, nil
}

// hit is the point before or after the commit of a step, "offer executions" for
// example at offer-executions.before-commit.
func hit(step, when string) {
	if failpoint.Enabled {
		failpoint.Hit(strings.ReplaceAll(step, " ", "-") + "." + when + "-commit")
	}
}

// commitError tells a commit that was refused from one whose answer is missing.
func commitError(err error) error {
	var my *mysql.MySQLError
	if errors.As(err, &my) || errors.Is(err, sql.ErrTxDone) || isBusy(err) || !isBroken(err) && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("commit: %w", err)
	}
	return fmt.Errorf("%w: %w", errCommitUnknown, err)
}

// exec runs a statement and returns the number of rows it found.
func (t *txn) exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.q.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// query calls scan for each row of a result.
func query(ctx context.Context, q querier, scan func(*sql.Rows) error, statement string, args ...any) error {
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

// look runs a read outside of a transaction and repeats it once when the
// connection turned out to be dead.
func (s *DB) look(ctx context.Context, step string, fn func(ctx context.Context, q querier, g *gorm.DB) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	err := fn(ctx, s.lookup, s.reader.WithContext(ctx))
	if err != nil && isTransient(err) && ctx.Err() == nil {
		err = fn(ctx, s.lookup, s.reader.WithContext(ctx))
	}
	return translate(step, err)
}

// lookRows is look for a single statement.
func (s *DB) lookRows(ctx context.Context, step string, scan func(*sql.Rows) error, statement string, args ...any) error {
	return s.look(ctx, step, func(ctx context.Context, q querier, _ *gorm.DB) error { return query(ctx, q, scan, statement, args...) })
}

// snapshot runs reads that all see the database as it was at the first of them.
func (s *DB) snapshot(ctx context.Context, fn func(querier) error) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.d.snapshot()})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // there is nothing to commit
	return fn(tx)
}

// clock reads the database's clock on its own.
func (t *txn) clock() (time.Time, error) {
	var ms int64
	err := query(t.ctx, t.q, func(rows *sql.Rows) error { return rows.Scan(&ms) }, "SELECT "+t.d.clock())
	if err == nil {
		t.s.clock.learn(ms)
	}
	return instant(ms), err
}

// estimatedClock is clock without a statement, when the clock was read not
// long ago. Whoever decides by it has to write under dialect.fresh, which
// allows it to go on to what is due last of that which is nearer than the estimate
// is good, as due tells: whoever asks has a timer that says that is now.
func (t *txn) estimatedClock(due func(until time.Time) time.Time) (time.Time, error) {
	if ms, ok := t.d.localClock(); ok {
		return instant(ms), nil
	}
	if ms, ok := t.s.clock.now(); ok {
		now := instant(ms)
		if due := due(now.Add(estimateError)); due.After(now) {
			now = due
		}
		return now, nil
	}
	return t.clock()
}
