package db

import (
	"context"
	"database/sql"
	"errors"

	"gorm.io/gorm"
)

// One execution that moves from the cache needs no transaction: one statement
// writes it, and its job's slot with it, all or nothing. A round trip instead
// of four is what counts when nothing piles up: at 1,000 runs a second most
// batches are of one run (measured, docs/adr/0010).

// ErrNeedsTransaction is the answer to whatever takes more than one statement.
var ErrNeedsTransaction = errors.New("this takes a transaction")

// Singly is up to how many executions whoever has them should move one by one.
func (s *DB) Singly() int { return s.Dialect.Singly() }

type ExecFunc = func(ctx context.Context, query string, args ...any) (sql.Result, error)

// Unwatched is for statements of batches: the driver hands every statement that
// could be called off to a goroutine that watches its context, and takes it
// back, which for a statement this small was a tenth of its cost. The
// connection's own time limits bound them.
func Unwatched(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (s *DB) execUnwatched(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.Write.ExecContext(Unwatched(ctx), query, args...)
}

// refused is where statements go that need a transaction, when there is none.
type refused struct{}

var _ gorm.ConnPool = refused{}

func (refused) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, ErrNeedsTransaction
}

func (refused) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, ErrNeedsTransaction
}

func (refused) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, ErrNeedsTransaction
}

// QueryRowContext is gorm's way to a row of a raw statement, which nobody takes
// here: it cannot refuse.
func (refused) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

// Single is the one statement, which commits by itself.
type Single struct {
	step      string
	Statement string
	Args      []any
}

// TrySingle is TryOnce without a transaction: ErrNeedsTransaction when there has to be
// one, and then nothing has happened; ErrStale when the statement found nothing.
// It is sent when fn has ended, as a transaction is committed then: whatever
// becomes of the answer, fn has done all that it does.
func (s *DB) TrySingle(ctx context.Context, step string, fn func(*Tx) error) error {
	l := &Single{step: step}
	if err := fn(&Tx{Ctx: ctx, DB: s, Dialect: s.Dialect, Conn: refused{}, Gorm: s.refusing, Single: l}); err != nil {
		return err
	}
	if l.Statement == "" {
		return ErrNeedsTransaction
	}
	hit(step, "before")
	result, err := s.ExecSingle(ctx, l.Statement, l.Args...)
	if err != nil {
		return commitError(err)
	}
	hit(step, "after")
	if found, err := result.RowsAffected(); err != nil || found > 0 {
		return err
	}
	return ErrStale
}
