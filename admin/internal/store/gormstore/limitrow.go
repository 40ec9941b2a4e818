package gormstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
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
func saveLimits(t *txn, limits map[domain.LimitKey]*limit) error {
	var holders []*holderRow
	var places []*placeRow
	for _, l := range limits {
		for _, id := range l.hold {
			holders = append(holders, &holderRow{l.subject, l.kind, int64(id), int64(l.tenant)})
		}
		for _, p := range l.enter {
			places = append(places, &placeRow{l.subject, l.kind, p.precedence, int64(p.id), int64(l.tenant)})
		}
		if err := l.forget(t); err != nil {
			return err
		}
	}
	if err := holderTable.insert(t, holders); err != nil {
		return err
	}
	return placeTable.insert(t, places)
}

// forget deletes holders that ended and places that were left.
func (l *limit) forget(t *txn) error {
	for part := range slices.Chunk(l.gone, 500) {
		if _, err := t.exec(t.ctx, "DELETE FROM limit_holders WHERE "+l.where("")+" AND execution_id IN ("+idList(part)+") AND tenant_id = ?", int64(l.tenant)); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(l.leave, 200) {
		var terms []string
		for _, p := range part {
			terms = append(terms, fmt.Sprintf("(%s AND precedence = %d AND execution_id = %d AND tenant_id = %d)", l.where(""), p.precedence, p.id, l.tenant))
		}
		if _, err := t.exec(t.ctx, "DELETE FROM limit_waiters WHERE "+strings.Join(terms, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes the row of a limit that was taken away.
func (l *limit) remove(t *txn) error {
	for _, table := range []string{"limit_holders", "limits"} {
		if _, err := t.exec(t.ctx, "DELETE FROM "+table+" WHERE "+l.where("")+" AND tenant_id = ?", int64(l.tenant)); err != nil {
			return err
		}
	}
	return nil
}
