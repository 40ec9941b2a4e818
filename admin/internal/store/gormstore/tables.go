package gormstore

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// table describes a table whose rows are read and written by hand-made
// statements. The fields of R are int64 or string; the first keys columns
// identify a row, and the first required ones have no default in the schema.
type table[R any] struct {
	name     string
	keys     int
	required int
	columns  []column[R]
	// version, when set, counts the writes of a row: an update finds only rows
	// that are as they were before, whoever has written them.
	version *column[R]
}

type column[R any] struct {
	columnType
	num  func(*R) *int64  // for kindInt
	text func(*R) *string // for all others
	def  int64            // the column's default, when it is not 0 or ""
}

func intColumn[R any](name string, ptr func(*R) *int64) column[R] {
	return column[R]{columnType: columnType{name: name, kind: kindInt}, num: ptr}
}

func textColumn[R any](name string, size int, ptr func(*R) *string) column[R] {
	return column[R]{columnType: columnType{name: name, kind: kindText, size: size}, text: ptr}
}

func longColumn[R any](name string, k kind, ptr func(*R) *string) column[R] {
	return column[R]{columnType: columnType{name: name, kind: k, nullable: true}, text: ptr}
}

func (c column[R]) cell(r *R) cell {
	if c.num != nil {
		return cell{num: *c.num(r)}
	}
	return cell{text: *c.text(r)}
}

func (c column[R]) isDefault(r *R) bool {
	if c.num != nil {
		return *c.num(r) == c.def
	}
	return *c.text(r) == ""
}

// list is the SELECT list of all columns; prefix is "" or "alias.".
func (tb *table[R]) list(prefix string) string {
	var b strings.Builder
	for i, c := range tb.columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if c.nullable {
			b.WriteString("COALESCE(" + prefix + c.name + ", " + emptyLiteral(c.kind) + ")")
		} else {
			b.WriteString(prefix + c.name)
		}
	}
	return b.String()
}

// targets are the pointers that Scan fills in the order of list, behind extra.
func (tb *table[R]) targets(r *R, extra ...any) []any {
	out := make([]any, 0, len(tb.columns)+len(extra))
	out = append(out, extra...)
	for _, c := range tb.columns {
		if c.num != nil {
			out = append(out, c.num(r))
		} else {
			out = append(out, c.text(r))
		}
	}
	return out
}

// insert writes rows. Columns in which no row differs from the default are
// left to the database.
func (tb *table[R]) insert(t *txn, rows []*R) error {
	if len(rows) == 0 {
		return nil
	}
	var used []column[R]
	for i, c := range tb.columns {
		if i < tb.required || !allDefault(c, rows) {
			used = append(used, c)
		}
	}
	batch := t.d.insertBatch()
	if batch == 1 {
		return tb.insertEach(t, used, rows)
	}
	for start := 0; start < len(rows); {
		end, size := start, 0
		args := make([]any, 0, min(batch, len(rows)-start)*len(used))
		for ; end < len(rows) && end-start < batch && size < maxUpdateBytes; end++ {
			for _, c := range used {
				v := c.cell(rows[end])
				size += len(v.text)
				args = append(args, v.inserted(c.columnType))
			}
		}
		if _, err := t.exec(t.ctx, tb.insertStatement(used, end-start), args...); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func allDefault[R any](c column[R], rows []*R) bool {
	for _, r := range rows {
		if !c.isDefault(r) {
			return false
		}
	}
	return true
}

func (tb *table[R]) insertEach(t *txn, used []column[R], rows []*R) error {
	statement, err := t.raw.PrepareContext(t.ctx, tb.insertStatement(used, 1))
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, len(used))
	for _, r := range rows {
		for i, c := range used {
			args[i] = c.cell(r).inserted(c.columnType)
		}
		if _, err := statement.ExecContext(t.ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (tb *table[R]) insertStatement(used []column[R], rows int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + tb.name + " (")
	for i, c := range used {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.name)
	}
	b.WriteString(") VALUES ")
	row := "(" + strings.TrimSuffix(strings.Repeat("?,", len(used)), ",") + ")"
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(row)
	}
	return b.String()
}

// change is a row before and after.
type change[R any] struct{ before, after *R }

// errStale is the answer to an update of rows that are not locked: not all of
// them are as they were believed to be.
var errStale = errors.New("rows have changed since they were read")

// update writes what differs. Every row must still be there as it was before:
// its lock is held, so anything else is a fault of the program.
func (tb *table[R]) update(t *txn, changes []change[R]) error {
	err := tb.updateGuarded(t, changes, "")
	if errors.Is(err, errStale) {
		return fmt.Errorf("not all locked rows of %s were updated", tb.name)
	}
	return err
}

// updateGuarded is update for rows whose lock need not be held: it returns
// errStale when the database found fewer, and then the transaction has to be
// given up. guard is a further condition, beginning with AND, or empty.
//
// Columns that differ in no row stay out of the statement, those that get the
// same value everywhere stand in it once: an offer of 500 executions sends 500
// ids and not much more.
func (tb *table[R]) updateGuarded(t *txn, changes []change[R], guard string) error {
	if len(changes) == 0 {
		return nil
	}
	u := tb.difference(changes, guard)
	if len(u.same) == 0 && len(u.vary) == 0 {
		return nil
	}
	found, err := u.run(t)
	if err == nil && found != int64(len(changes)) {
		err = errStale
	}
	return err
}

// difference is the update that makes all changes.
func (tb *table[R]) difference(changes []change[R], guard string) *update {
	u := &update{table: tb.name, guard: guard}
	keys := slices.Clone(tb.columns[:tb.keys])
	if tb.version != nil {
		keys = append(keys, *tb.version)
	}
	for _, c := range keys {
		u.keys = append(u.keys, c.columnType)
	}
	var vary []column[R]
	for _, c := range tb.columns[tb.keys:] {
		differs, same := c.inspect(changes)
		switch {
		case !differs:
		case same:
			u.same = append(u.same, assignment{c.columnType, c.cell(changes[0].after)})
		default:
			vary = append(vary, c)
			u.vary = append(u.vary, c.columnType)
		}
	}
	u.cells = make([]cell, 0, len(changes)*(len(keys)+len(vary)))
	for _, ch := range changes {
		for _, c := range keys {
			u.cells = append(u.cells, c.cell(ch.before))
		}
		for _, c := range vary {
			v := c.cell(ch.after)
			u.bytes += len(v.text)
			u.cells = append(u.cells, v)
		}
	}
	return u
}

// inspect reports whether any row's value changes, and whether all rows get
// the same one.
func (c column[R]) inspect(changes []change[R]) (differs, same bool) {
	same = true
	if c.num != nil {
		first := *c.num(changes[0].after)
		for _, ch := range changes {
			after := *c.num(ch.after)
			differs = differs || *c.num(ch.before) != after
			same = same && after == first
		}
		return differs, same
	}
	first := *c.text(changes[0].after)
	for _, ch := range changes {
		after := *c.text(ch.after)
		differs = differs || *c.text(ch.before) != after
		same = same && after == first
	}
	return differs, same
}

// selectRows reads rows; the statement's list is tb.list.
func (tb *table[R]) selectRows(t *txn, statement string, args ...any) ([]*R, error) {
	var out []*R
	err := query(t.ctx, t.q, func(rows *sql.Rows) error {
		r := new(R)
		out = append(out, r)
		return rows.Scan(tb.targets(r)...)
	}, statement, args...)
	return out, err
}

// idList writes ids for an IN list; numbers need no placeholder.
func idList[T ~int64](ids []T) string {
	b := make([]byte, 0, len(ids)*20)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}
