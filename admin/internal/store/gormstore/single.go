package gormstore

import (
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// saveAlone is save for one execution that is written on belief, and at most
// its job's slot beside it.
func (b *batch) saveAlone(changes []db.Change[executionRow]) error {
	if len(changes) != 1 || !b.known || len(b.Limits) > 0 {
		return db.ErrNeedsTransaction
	}
	if err := b.saveRest(); err != nil { // nothing, or ErrNeedsTransaction
		return err
	}
	u := executionTable.Difference(changes, b.t.Dialect.Fresh(db.Millis(b.Now)))
	var taken *run.Slot
	for _, s := range b.Slots {
		switch {
		case !s.Believed || taken != nil:
			return db.ErrNeedsTransaction
		case s.Holders != 0:
			taken = s
		}
	}
	b.t.Single.Statement, b.t.Single.Args = aloneStatement(u, b.t.Dialect, taken)
	return nil
}

// aloneStatement writes the only row of the update, and takes or gives back a
// place of a slot if there is one. It finds both rows or none; the slot stands
// first, as it is locked first everywhere.
func aloneStatement(u *db.Update, d db.Dialect, s *run.Slot) (string, []any) {
	var b strings.Builder
	b.WriteString("UPDATE ")
	if s != nil {
		b.WriteString(slotTable.Name + " AS s" + d.ByID() + " STRAIGHT_JOIN ")
	}
	b.WriteString(u.Table + " AS r" + d.ByID() + " SET ")
	if s != nil {
		b.WriteString(changeOf(s).set("s.") + ", ")
	}
	row, args := u.Row(0), make([]any, 0, len(u.Same))
	for i, a := range u.Same {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("r.")
		args = append(args, db.WriteAssignment(&b, a))
	}
	b.WriteString(" WHERE ")
	for i, k := range u.Keys {
		if i > 0 {
			b.WriteString(" AND ")
		}
		fmt.Fprintf(&b, "r.%s = %d", k.Name, row[i].Num)
	}
	b.WriteString(u.Guard)
	if s != nil {
		fmt.Fprintf(&b, " AND s.job_id = %d AND %s", s.Job, changeOf(s).guard("s."))
	}
	return b.String(), args
}
