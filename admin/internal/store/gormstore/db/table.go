package db

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table describes a table whose rows are read and written by hand-made
// statements. The fields of R are int64 or string; the first keys columns
// identify a row, and the first required ones have no default in the schema.
type Table[R any] struct {
	Name     string
	Keys     int
	Required int
	Columns  []Column[R]
	// Version, when set, counts the writes of a row: an update finds only rows
	// that are as they were before, whoever has written them.
	Version *Column[R]
}

// Column is a column of a table of R.
type Column[R any] struct {
	ColumnType
	num  func(*R) *int64  // for kindInt
	Text func(*R) *string // for all others
	Def  int64            // the column's default, when it is not 0 or ""
}

// IntColumn is a column of numbers.
func IntColumn[R any](name string, ptr func(*R) *int64) Column[R] {
	return Column[R]{ColumnType: ColumnType{Name: name, Kind: kindInt}, num: ptr}
}

// TextColumn is a column of at most size characters.
func TextColumn[R any](name string, size int, ptr func(*R) *string) Column[R] {
	return Column[R]{ColumnType: ColumnType{Name: name, Kind: kindText, size: size}, Text: ptr}
}

// LongColumn is a column of long text or bytes, NULL where it is empty.
func LongColumn[R any](name string, k kind, ptr func(*R) *string) Column[R] {
	return Column[R]{ColumnType: ColumnType{Name: name, Kind: k, Nullable: true}, Text: ptr}
}

func (c Column[R]) cell(r *R) cell {
	if c.num != nil {
		return cell{Num: *c.num(r)}
	}
	return cell{text: *c.Text(r)}
}

func (c Column[R]) isDefault(r *R) bool {
	if c.num != nil {
		return *c.num(r) == c.Def
	}
	return *c.Text(r) == ""
}

// List is the SELECT list of all columns; prefix is "" or "alias.".
func (tb *Table[R]) List(prefix string) string { return tb.ListBut(prefix, nil) }

// ListBut is List with an expression instead of some columns.
func (tb *Table[R]) ListBut(prefix string, instead map[string]string) string {
	var b strings.Builder
	for i, c := range tb.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if expression, has := instead[c.Name]; has {
			b.WriteString(expression)
		} else if c.Nullable {
			b.WriteString("COALESCE(" + prefix + c.Name + ", " + emptyLiteral(c.Kind) + ")")
		} else {
			b.WriteString(prefix + c.Name)
		}
	}
	return b.String()
}

// Targets are the pointers that Scan fills in the order of list, behind extra.
func (tb *Table[R]) Targets(r *R, extra ...any) []any {
	out := make([]any, 0, len(tb.Columns)+len(extra))
	out = append(out, extra...)
	for _, c := range tb.Columns {
		if c.num != nil {
			out = append(out, c.num(r))
		} else {
			out = append(out, c.Text(r))
		}
	}
	return out
}

// Insert writes rows. Columns in which no row differs from the default are
// left to the database.
func (tb *Table[R]) Insert(t *Tx, rows []*R) error {
	if len(rows) == 0 {
		return nil
	}
	var used []Column[R]
	for i, c := range tb.Columns {
		if i < tb.Required || !allDefault(c, rows) {
			used = append(used, c)
		}
	}
	batch := t.Dialect.insertBatch()
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
				args = append(args, v.inserted(c.ColumnType))
			}
		}
		if _, err := t.Exec(t.Ctx, tb.insertStatement(used, end-start), args...); err != nil {
			return err
		}
		start = end
	}
	return nil
}

func allDefault[R any](c Column[R], rows []*R) bool {
	for _, r := range rows {
		if !c.isDefault(r) {
			return false
		}
	}
	return true
}

func (tb *Table[R]) insertEach(t *Tx, used []Column[R], rows []*R) error {
	statement, err := t.SQL.PrepareContext(t.Ctx, tb.insertStatement(used, 1))
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, len(used))
	for _, r := range rows {
		for i, c := range used {
			args[i] = c.cell(r).inserted(c.ColumnType)
		}
		if _, err := statement.ExecContext(t.Ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (tb *Table[R]) insertStatement(used []Column[R], rows int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO " + tb.Name + " (")
	for i, c := range used {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name)
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

// Change is a row before and after.
type Change[R any] struct{ Before, After *R }

// ErrStale is the answer to an update of rows that are not locked: not all of
// them are as they were cached.
var ErrStale = errors.New("rows have changed since they were read")

// Update writes what differs. Every row must still be there as it was before:
// its lock is held, so anything else is a fault of the program.
func (tb *Table[R]) Update(t *Tx, changes []Change[R]) error {
	err := tb.UpdateGuarded(t, changes, "")
	if errors.Is(err, ErrStale) {
		return fmt.Errorf("not all locked rows of %s were updated", tb.Name)
	}
	return err
}

// UpdateGuarded is update for rows whose lock need not be held: it returns
// ErrStale when the database found fewer, and then the transaction has to be
// given up. guard is a further condition, beginning with AND, or empty.
//
// Columns that differ in no row stay out of the statement, those that get the
// same value everywhere stand in it once: an offer of 500 executions sends 500
// ids and not much more.
func (tb *Table[R]) UpdateGuarded(t *Tx, changes []Change[R], guard string) error {
	if len(changes) == 0 {
		return nil
	}
	u := tb.Difference(changes, guard)
	if len(u.Same) == 0 && len(u.vary) == 0 {
		return nil
	}
	found, err := u.run(t)
	if err == nil && found != int64(len(changes)) {
		err = ErrStale
	}
	return err
}

// Difference is the update that makes all changes.
func (tb *Table[R]) Difference(changes []Change[R], guard string) *Update {
	u := &Update{Table: tb.Name, Guard: guard}
	keys := slices.Clone(tb.Columns[:tb.Keys])
	if tb.Version != nil {
		keys = append(keys, *tb.Version)
	}
	for _, c := range keys {
		u.Keys = append(u.Keys, c.ColumnType)
	}
	var vary []Column[R]
	for _, c := range tb.Columns[tb.Keys:] {
		differs, same := c.inspect(changes)
		switch {
		case !differs:
		case same:
			u.Same = append(u.Same, assignment{c.ColumnType, c.cell(changes[0].After)})
		default:
			vary = append(vary, c)
			u.vary = append(u.vary, c.ColumnType)
		}
	}
	u.cells = make([]cell, 0, len(changes)*(len(keys)+len(vary)))
	for _, ch := range changes {
		for _, c := range keys {
			u.cells = append(u.cells, c.cell(ch.Before))
		}
		for _, c := range vary {
			v := c.cell(ch.After)
			u.bytes += len(v.text)
			u.cells = append(u.cells, v)
		}
	}
	return u
}

// inspect reports whether any row's value changes, and whether all rows get
// the same one.
func (c Column[R]) inspect(changes []Change[R]) (differs, same bool) {
	same = true
	if c.num != nil {
		first := *c.num(changes[0].After)
		for _, ch := range changes {
			after := *c.num(ch.After)
			differs = differs || *c.num(ch.Before) != after
			same = same && after == first
		}
		return differs, same
	}
	first := *c.Text(changes[0].After)
	for _, ch := range changes {
		after := *c.Text(ch.After)
		differs = differs || *c.Text(ch.Before) != after
		same = same && after == first
	}
	return differs, same
}

// SelectRows reads rows; the statement's list is tb.list.
func (tb *Table[R]) SelectRows(t *Tx, statement string, args ...any) ([]*R, error) {
	var out []*R
	err := Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		r := new(R)
		out = append(out, r)
		return rows.Scan(tb.Targets(r)...)
	}, statement, args...)
	return out, err
}

// IDList writes ids for an IN list; numbers need no placeholder.
func IDList[T ~int64](ids []T) string {
	b := make([]byte, 0, len(ids)*20)
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	return string(b)
}
