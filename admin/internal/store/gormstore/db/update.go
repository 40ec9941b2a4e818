package db

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Update is a change of many rows of one table in one go.
type Update struct {
	Table string
	Keys  []ColumnType // a row is found by all of them; the first is the primary key
	Same  []assignment // columns that get the same value in every row
	vary  []ColumnType // columns that get the row's own value
	cells []cell       // row by row: keys, then vary
	bytes int          // about how much text the rows hold
	Guard string       // a further condition, beginning with AND, or empty
}

// ColumnType is a column as the dialects see it.
type ColumnType struct {
	Name     string
	Kind     kind
	size     int  // characters, for text
	Nullable bool // 0 and "" are stored as NULL
}

type assignment struct {
	column ColumnType
	value  cell
}

// cell is the value of a column: num for kindInt, text for all others.
type cell struct {
	Num  int64
	text string
}

// argument is the value as a parameter that NULLIF may stand around.
func (v cell) argument(k kind) any {
	if k == kindInt {
		return v.Num
	}
	return v.text
}

// inserted is the value as an INSERT takes it.
func (v cell) inserted(c ColumnType) any {
	switch {
	case c.Nullable && v == cell{}:
		return nil
	case c.Kind == kindInt:
		return v.Num
	case c.Kind == KindBytes:
		return []byte(v.text)
	default:
		return v.text
	}
}

func (u *Update) width() int { return len(u.Keys) + len(u.vary) }

func (u *Update) len() int { return len(u.cells) / u.width() }

func (u *Update) row(i int) []cell { return u.cells[i*u.width() : (i+1)*u.width()] }

// perStatement is how many rows a statement of its own for rows with equal
// values has to save from the JSON form, which costs about 2.5 us more per row
// (measured, ADR 0010).
const perStatement = 32

// run executes the update and returns how many rows were found. Rows that get
// equal values are cheapest: a list of ids in one statement.
func (u *Update) run(t *Tx) (found int64, err error) {
	groups := u.groups(1 + u.len()/perStatement)
	if groups == nil {
		return t.Dialect.update(t.Ctx, t, u)
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
func (u *Update) groups(most int) [][]int {
	var out [][]int
	index := make(map[string]int, most)
	var key []byte
	for i := range u.len() {
		key = key[:0]
		for _, v := range u.row(i)[1:] {
			if len(v.text) > 256 {
				return nil
			}
			key = binary.AppendVarint(key, v.Num)
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
func (u *Update) runEqual(t *Tx, rows []int) (int64, error) {
	ids := make([]int64, len(rows))
	for i, at := range rows {
		ids[i] = u.row(at)[0].Num
	}
	first := u.row(rows[0])
	var b strings.Builder
	b.WriteString("UPDATE " + u.Table + t.Dialect.ByID() + " SET ")
	args := writeAssignments(&b, u.Same)
	for i, c := range u.vary {
		if i > 0 || len(u.Same) > 0 {
			b.WriteString(", ")
		}
		args = append(args, writeAssignment(&b, assignment{c, first[len(u.Keys)+i]}))
	}
	b.WriteString(" WHERE " + u.Keys[0].Name + " IN (" + IDList(ids) + ")")
	for i, c := range u.Keys[1:] {
		fmt.Fprintf(&b, " AND %s = %d", c.Name, first[1+i].Num)
	}
	b.WriteString(u.Guard)
	return t.Exec(t.Ctx, b.String(), args...)
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
	b.WriteString(a.column.Name)
	if a.column.Nullable {
		b.WriteString(" = NULLIF(?, " + emptyLiteral(a.column.Kind) + ")")
	} else {
		b.WriteString(" = ?")
	}
	return a.value.argument(a.column.Kind)
}

func emptyLiteral(k kind) string {
	if k == kindInt {
		return "0"
	}
	return "''"
}
