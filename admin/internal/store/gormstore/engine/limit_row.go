package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

type holderRow struct{ subjectID, kind, executionID, tenantID int64 }

var holderTable = db.Table[holderRow]{
	Name: "limit_holders", Keys: 4, Required: 4,
	Columns: []db.Column[holderRow]{
		db.IntColumn("subject_id", func(r *holderRow) *int64 { return &r.subjectID }),
		db.IntColumn("kind", func(r *holderRow) *int64 { return &r.kind }),
		db.IntColumn("execution_id", func(r *holderRow) *int64 { return &r.executionID }),
		db.IntColumn("tenant_id", func(r *holderRow) *int64 { return &r.tenantID }),
	},
}

type placeRow struct{ subjectID, kind, precedence, executionID, tenantID int64 }

var placeTable = db.Table[placeRow]{
	Name: "limit_waiters", Keys: 5, Required: 5,
	Columns: []db.Column[placeRow]{
		db.IntColumn("subject_id", func(r *placeRow) *int64 { return &r.subjectID }),
		db.IntColumn("kind", func(r *placeRow) *int64 { return &r.kind }),
		db.IntColumn("precedence", func(r *placeRow) *int64 { return &r.precedence }),
		db.IntColumn("execution_id", func(r *placeRow) *int64 { return &r.executionID }),
		db.IntColumn("tenant_id", func(r *placeRow) *int64 { return &r.tenantID }),
	},
}

// SaveLimits writes what changed in holders and queues.
func SaveLimits(t *db.Tx, limits map[domain.LimitKey]*run.Limit) error {
	var holders []*holderRow
	var places []*placeRow
	for _, l := range limits {
		subject, kind := SubjectOf(l.Key)
		for _, id := range l.Hold {
			holders = append(holders, &holderRow{subject, kind, int64(id), int64(l.Key.Tenant)})
		}
		for _, p := range l.Enter {
			places = append(places, &placeRow{subject, kind, p.Precedence, int64(p.ID), int64(l.Key.Tenant)})
		}
		if err := forgetPlaces(t, l); err != nil {
			return err
		}
	}
	if err := holderTable.Insert(t, holders); err != nil {
		return err
	}
	return placeTable.Insert(t, places)
}

// forgetPlaces deletes holders that ended and places that were left.
func forgetPlaces(t *db.Tx, l *run.Limit) error {
	for part := range slices.Chunk(l.Gone, 500) {
		if _, err := t.Exec(t.Ctx, "DELETE FROM limit_holders WHERE "+WhereLimit(l, "")+" AND execution_id IN ("+db.IDList(part)+") AND tenant_id = ?", int64(l.Key.Tenant)); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(l.Leave, 200) {
		var terms []string
		for _, p := range part {
			terms = append(terms, fmt.Sprintf("(%s AND precedence = %d AND execution_id = %d AND tenant_id = %d)", WhereLimit(l, ""), p.Precedence, p.ID, l.Key.Tenant))
		}
		if _, err := t.Exec(t.Ctx, "DELETE FROM limit_waiters WHERE "+strings.Join(terms, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

// RemoveLimit deletes the row of a limit that was taken away.
func RemoveLimit(t *db.Tx, l *run.Limit) error {
	for _, table := range []string{"limit_holders", "limits"} {
		if _, err := t.Exec(t.Ctx, "DELETE FROM "+table+" WHERE "+WhereLimit(l, "")+" AND tenant_id = ?", int64(l.Key.Tenant)); err != nil {
			return err
		}
	}
	return nil
}
