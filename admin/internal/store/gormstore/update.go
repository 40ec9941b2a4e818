package gormstore

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// update is a change of many rows of one table in one go.
type update struct {
	table string
	keys  []columnType // a row is found by all of them; the first is the primary key
	same  []assignment // columns that get the same value in every row
	vary  []columnType // columns that get the row's own value
	cells []cell       // row by row: keys, then vary
	bytes int          // about how much text the rows hold
	guard string       // a further condition, beginning with AND, or empty
}

// columnType is a column as the dialects see it.
type columnType struct {
	name     string
	kind     kind
	size     int  // characters, for text
	nullable bool // 0 and "" are stored as NULL
}

type assignment struct {
	column columnType
	value  cell
}

// cell is the value of a column: num for kindInt, text for all others.
type cell struct {
	num  int64
	text string
}

// argument is the value as a parameter that NULLIF may stand around.
func (v cell) argument(k kind) any {
	if k == kindInt {
		return v.num
	}
	return v.text
}

// inserted is the value as an INSERT takes it.
func (v cell) inserted(c columnType) any {
	switch {
	case c.nullable && v == cell{}:
		return nil
	case c.kind == kindInt:
		return v.num
	case c.kind == kindBytes:
		return []byte(v.text)
	default:
		return v.text
	}
}

func (u *update) width() int { return len(u.keys) + len(u.vary) }
func (u *update) len() int   { return len(u.cells) / u.width() }

func (u *update) row(i int) []cell { return u.cells[i*u.width() : (i+1)*u.width()] }

// perStatement is how many rows a statement of its own for rows with equal
// values has to save from the JSON form, which costs about 2.5 us more per row
// (measured, ADR 0010).
const perStatement = 32

// run executes the update and returns how many rows were found. Rows that get
// equal values are cheapest: a list of ids in one statement.
func (u *update) run(t *txn) (found int64, err error) {
	groups := u.groups(1 + u.len()/perStatement)
	if groups == nil {
		return t.d.update(t.ctx, t, u)
	}
	for _, rows := range groups {
		n, err := u.runEqual(t, rows)
		if err != nil {
			return found, err
		}
		found += n
	}
	return found, nil
}

// groups returns the numbers of the rows that are equal but for the first key;
// nil when there are more groups than most, or values too large to compare.
func (u *update) groups(most int) [][]int {
	var out [][]int
	index := make(map[string]int, most)
	var key []byte
	for i := range u.len() {
		key = key[:0]
		for _, v := range u.row(i)[1:] {
			if len(v.text) > 256 {
				return nil
			}
			key = binary.AppendVarint(key, v.num)
			key = append(binary.AppendUvarint(key, uint64(len(v.text))), v.text...)
		}
		at, ok := index[string(key)]
		if !ok {
			if len(out) == most {
				return nil
			}
			at = len(out)
			index[string(key)] = at
			out = append(out, nil)
		}
		out[at] = append(out[at], i)
	}
	return out
}

// runEqual updates rows that are equal but for the first key.
func (u *update) runEqual(t *txn, rows []int) (int64, error) {
	ids := make([]int64, len(rows))
	for i, at := range rows {
		ids[i] = u.row(at)[0].num
	}
	first := u.row(rows[0])
	var b strings.Builder
	b.WriteString("UPDATE " + u.table + t.d.byID() + " SET ")
	args := writeAssignments(&b, u.same)
	for i, c := range u.vary {
		if i > 0 || len(u.same) > 0 {
			b.WriteString(", ")
		}
		args = append(args, writeAssignment(&b, assignment{c, first[len(u.keys)+i]}))
	}
	b.WriteString(" WHERE " + u.keys[0].name + " IN (" + idList(ids) + ")")
	for i, c := range u.keys[1:] {
		fmt.Fprintf(&b, " AND %s = %d", c.name, first[1+i].num)
	}
	b.WriteString(u.guard)
	return t.exec(t.ctx, b.String(), args...)
}

func writeAssignments(b *strings.Builder, list []assignment) (args []any) {
	for i, a := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		args = append(args, writeAssignment(b, a))
	}
	return args
}

func writeAssignment(b *strings.Builder, a assignment) any {
	b.WriteString(a.column.name)
	if a.column.nullable {
		b.WriteString(" = NULLIF(?, " + emptyLiteral(a.column.kind) + ")")
	} else {
		b.WriteString(" = ?")
	}
	return a.value.argument(a.column.kind)
}

func emptyLiteral(k kind) string {
	if k == kindInt {
		return "0"
	}
	return "''"
}
