package gormstore

import (
	"database/sql"
	"fmt"
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
}

type column[R any] struct {
	columnType
	ptr func(*R) any // *int64 or *string
	def int64        // the column's default, when it is not 0 or ""
}

func intColumn[R any](name string, ptr func(*R) *int64) column[R] {
	return column[R]{columnType: columnType{name: name, kind: kindInt}, ptr: func(r *R) any { return ptr(r) }}
}

func textColumn[R any](name string, size int, ptr func(*R) *string) column[R] {
	return column[R]{columnType: columnType{name: name, kind: kindText, size: size}, ptr: func(r *R) any { return ptr(r) }}
}

func longColumn[R any](name string, k kind, ptr func(*R) *string) column[R] {
	return column[R]{columnType: columnType{name: name, kind: k, nullable: true}, ptr: func(r *R) any { return ptr(r) }}
}

func (c column[R]) value(r *R) any {
	switch p := c.ptr(r).(type) {
	case *int64:
		return *p
	case *string:
		return *p
	default:
		panic(fmt.Sprintf("column %s is a %T", c.name, p)) // a mistake in a table's description
	}
}

func (c column[R]) isDefault(r *R) bool {
	switch v := c.value(r).(type) {
	case int64:
		return v == c.def
	default:
		return v == ""
	}
}

// argument is the value as an INSERT takes it.
func (c column[R]) argument(r *R) any {
	v := c.value(r)
	switch {
	case c.nullable && (v == "" || v == int64(0)):
		return nil
	case c.kind == kindBytes:
		return []byte(v.(string))
	default:
		return v
	}
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
		out = append(out, c.ptr(r))
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
				v := c.argument(rows[end])
				if s, ok := v.([]byte); ok {
					size += len(s)
				}
				args = append(args, v)
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
	statement, err := t.tx.PrepareContext(t.ctx, tb.insertStatement(used, 1))
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, len(used))
	for _, r := range rows {
		for i, c := range used {
			args[i] = c.argument(r)
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

// update writes what differs. Columns that differ in no row stay out of the
// statement, those that get the same value everywhere stand in it once: an
// offer of 500 executions sends 500 ids and not much more. Every row must
// still be there: its lock is held, so anything else is a fault of the program.
func (tb *table[R]) update(t *txn, changes []change[R]) error {
	if len(changes) == 0 {
		return nil
	}
	u := update{table: tb.name}
	for _, c := range tb.columns[:tb.keys] {
		u.keys = append(u.keys, c.columnType)
	}
	var vary []column[R]
	for _, c := range tb.columns[tb.keys:] {
		differs, same := inspect(c, changes)
		switch {
		case !differs:
		case same:
			u.same = append(u.same, assignment{c.columnType, c.value(changes[0].after)})
		default:
			vary = append(vary, c)
			u.vary = append(u.vary, c.columnType)
		}
	}
	if len(u.same) == 0 && len(vary) == 0 {
		return nil
	}
	for _, ch := range changes {
		row := make([]any, 0, tb.keys+len(vary))
		for _, c := range tb.columns[:tb.keys] {
			row = append(row, c.value(ch.after))
		}
		for _, c := range vary {
			v := c.value(ch.after)
			if s, ok := v.(string); ok {
				u.bytes += len(s)
			}
			row = append(row, v)
		}
		u.rows = append(u.rows, row)
	}
	found, err := t.d.update(t.ctx, t, u)
	if err == nil && found != int64(len(changes)) {
		err = fmt.Errorf("%d of %d locked rows of %s were updated", found, len(changes), tb.name)
	}
	return err
}

func inspect[R any](c column[R], changes []change[R]) (differs, same bool) {
	first := c.value(changes[0].after)
	same = true
	for _, ch := range changes {
		after := c.value(ch.after)
		differs = differs || c.value(ch.before) != after
		same = same && after == first
	}
	return differs, same
}

// selectRows reads rows; the statement's list is tb.list.
func (tb *table[R]) selectRows(t *txn, statement string, args ...any) ([]*R, error) {
	var out []*R
	err := query(t.ctx, t.tx, func(rows *sql.Rows) error {
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
