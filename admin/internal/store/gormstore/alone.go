package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/run"
)

// One execution that moves on belief alone needs no transaction: one statement
// writes it, and its job's slot with it, all or nothing. A round trip instead
// of four is what counts when nothing piles up: at 1,000 runs a second most
// batches are of one run (measured, docs/adr/0010).

// errNotAlone is the answer to whatever takes more than one statement.
var errNotAlone = errors.New("this takes a transaction")

// Singly is up to how many executions whoever has them should move one by one.
func (s *DB) Singly() int { return s.d.singly() }

type execFunc = func(ctx context.Context, query string, args ...any) (sql.Result, error)

// unwatched is for statements of batches: the driver hands every statement that
// could be called off to a goroutine that watches its context, and takes it
// back, which for a statement this small was a tenth of its cost. The
// connection's own time limits bound them.
func unwatched(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func (s *DB) execUnwatched(ctx context.Context, query string, args ...any) (sql.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.write.ExecContext(unwatched(ctx), query, args...)
}

// refused is where statements go that need a transaction, when there is none.
type refused struct{}

var _ gorm.ConnPool = refused{}

func (refused) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, errNotAlone
}

func (refused) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, errNotAlone
}

func (refused) PrepareContext(context.Context, string) (*sql.Stmt, error) { return nil, errNotAlone }

// QueryRowContext is gorm's way to a row of a raw statement, which nobody takes
// here: it cannot refuse.
func (refused) QueryRowContext(context.Context, string, ...any) *sql.Row { return nil }

// lone is the one statement, which commits by itself.
type lone struct {
	step      string
	statement string
	args      []any
}

// tryAlone is tryOnce without a transaction: errNotAlone when there has to be
// one, and then nothing has happened; errStale when the statement found nothing.
// It is sent when fn has ended, as a transaction is committed then: whatever
// becomes of the answer, fn has done all that it does.
func (s *DB) tryAlone(ctx context.Context, step string, fn func(*txn) error) error {
	l := &lone{step: step}
	if err := fn(&txn{ctx: ctx, s: s, d: s.d, q: refused{}, db: s.refusing, alone: l}); err != nil {
		return err
	}
	if l.statement == "" {
		return errNotAlone
	}
	hit(step, "before")
	result, err := s.execAlone(ctx, l.statement, l.args...)
	if err != nil {
		return commitError(err)
	}
	hit(step, "after")
	if found, err := result.RowsAffected(); err != nil || found > 0 {
		return err
	}
	return errStale
}

// saveAlone is save for one execution that is written on belief, and at most
// its job's slot beside it.
func (b *batch) saveAlone(changes []change[executionRow]) error {
	if len(changes) != 1 || !b.known || len(b.Limits) > 0 {
		return errNotAlone
	}
	if err := b.saveRest(); err != nil { // nothing, or errNotAlone
		return err
	}
	u := executionTable.difference(changes, b.t.d.fresh(millis(b.Now)))
	var taken *run.Slot
	for _, s := range b.Slots {
		switch {
		case !s.Believed || taken != nil:
			return errNotAlone
		case s.Holders != 0:
			taken = s
		}
	}
	b.t.alone.statement, b.t.alone.args = aloneStatement(u, b.t.d, taken)
	return nil
}

// aloneStatement writes the only row of the update, and takes or gives back a
// place of a slot if there is one. It finds both rows or none; the slot stands
// first, as it is locked first everywhere.
func aloneStatement(u *update, d dialect, s *run.Slot) (string, []any) {
	var b strings.Builder
	b.WriteString("UPDATE ")
	if s != nil {
		b.WriteString(slotTable.name + " AS s" + d.byID() + " STRAIGHT_JOIN ")
	}
	b.WriteString(u.table + " AS r" + d.byID() + " SET ")
	if s != nil {
		b.WriteString(changeOf(s).set("s.") + ", ")
	}
	row, args := u.row(0), make([]any, 0, len(u.same))
	for i, a := range u.same {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("r.")
		args = append(args, writeAssignment(&b, a))
	}
	b.WriteString(" WHERE ")
	for i, k := range u.keys {
		if i > 0 {
			b.WriteString(" AND ")
		}
		fmt.Fprintf(&b, "r.%s = %d", k.name, row[i].num)
	}
	b.WriteString(u.guard)
	if s != nil {
		fmt.Fprintf(&b, " AND s.job_id = %d AND %s", s.Job, changeOf(s).guard("s."))
	}
	return b.String(), args
}
