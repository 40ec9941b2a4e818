package engine

import (
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// saveSingle is save for one execution that is written from the cache, and at most
// its job's slot beside it.
func (b *Batch) saveSingle(changes []db.Change[record.ExecutionRow]) error {
	if len(changes) != 1 || !b.fromCache || len(b.Limits) > 0 {
		return db.ErrNeedsTransaction
	}
	if err := b.saveRest(); err != nil { // nothing, or ErrNeedsTransaction
		return err
	}
	u := record.ExecutionTable.Difference(changes, b.Tx.Dialect.Fresh(db.Millis(b.Now)))
	var taken *run.Slot
	for _, s := range b.Slots {
		switch {
		case !s.Believed || taken != nil:
			return db.ErrNeedsTransaction
		case s.Holders != 0:
			taken = s
		}
	}
	b.Tx.Single.Statement, b.Tx.Single.Args = singleStatement(u, b.Tx.Dialect, taken)
	return nil
}

// singleStatement writes the only row of the update, and takes or gives back a
// place of a slot if there is one. It finds both rows or none; the slot stands
// first, as it is locked first everywhere.
func singleStatement(u *db.Update, d db.Dialect, s *run.Slot) (string, []any) {
	var b strings.Builder
	b.WriteString("UPDATE ")
	if s != nil {
		b.WriteString(record.SlotTable.Name + " AS s" + d.ByID() + " STRAIGHT_JOIN ")
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
