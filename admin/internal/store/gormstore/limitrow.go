package gormstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
)

type holderRow struct{ subjectID, kind, executionID, tenantID int64 }

var holderTable = table[holderRow]{
	name: "limit_holders", keys: 4, required: 4,
	columns: []column[holderRow]{
		intColumn("subject_id", func(r *holderRow) *int64 { return &r.subjectID }),
		intColumn("kind", func(r *holderRow) *int64 { return &r.kind }),
		intColumn("execution_id", func(r *holderRow) *int64 { return &r.executionID }),
		intColumn("tenant_id", func(r *holderRow) *int64 { return &r.tenantID }),
	},
}

type placeRow struct{ subjectID, kind, precedence, executionID, tenantID int64 }

var placeTable = table[placeRow]{
	name: "limit_waiters", keys: 5, required: 5,
	columns: []column[placeRow]{
		intColumn("subject_id", func(r *placeRow) *int64 { return &r.subjectID }),
		intColumn("kind", func(r *placeRow) *int64 { return &r.kind }),
		intColumn("precedence", func(r *placeRow) *int64 { return &r.precedence }),
		intColumn("execution_id", func(r *placeRow) *int64 { return &r.executionID }),
		intColumn("tenant_id", func(r *placeRow) *int64 { return &r.tenantID }),
	},
}

// saveLimits writes what changed in holders and queues.
func saveLimits(t *txn, limits map[domain.LimitKey]*run.Limit) error {
	var holders []*holderRow
	var places []*placeRow
	for _, l := range limits {
		subject, kind := subjectOf(l.Key)
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
	if err := holderTable.insert(t, holders); err != nil {
		return err
	}
	return placeTable.insert(t, places)
}

// forgetPlaces deletes holders that ended and places that were left.
func forgetPlaces(t *txn, l *run.Limit) error {
	for part := range slices.Chunk(l.Gone, 500) {
		if _, err := t.exec(t.ctx, "DELETE FROM limit_holders WHERE "+whereLimit(l, "")+" AND execution_id IN ("+idList(part)+") AND tenant_id = ?", int64(l.Key.Tenant)); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(l.Leave, 200) {
		var terms []string
		for _, p := range part {
			terms = append(terms, fmt.Sprintf("(%s AND precedence = %d AND execution_id = %d AND tenant_id = %d)", whereLimit(l, ""), p.Precedence, p.ID, l.Key.Tenant))
		}
		if _, err := t.exec(t.ctx, "DELETE FROM limit_waiters WHERE "+strings.Join(terms, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

// removeLimit deletes the row of a limit that was taken away.
func removeLimit(t *txn, l *run.Limit) error {
	for _, table := range []string{"limit_holders", "limits"} {
		if _, err := t.exec(t.ctx, "DELETE FROM "+table+" WHERE "+whereLimit(l, "")+" AND tenant_id = ?", int64(l.Key.Tenant)); err != nil {
			return err
		}
	}
	return nil
}
