package gormstore

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// coverQueue is how much of the queue of a cover-early job is loaded. It has one
// waiter at most, but for what waited when the job became one.
const coverQueue = 100

// coverable returns the executions that a run of a cover-early job in this batch
// may have to end: those that hold the job's slot, or wait for it. Who they are
// cannot change while the slot is locked.
func (b *batch) coverable() (ids []domain.ExecutionID, err error) {
	for job, s := range b.slots {
		if !b.covers[job] || s.believed {
			continue
		}
		for _, w := range s.queue {
			ids = append(ids, w.id)
		}
		if s.holders == 0 {
			continue
		}
		err := query(b.t.ctx, b.t.q, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT id FROM executions"+b.t.d.byIndex("ix_executions_wake")+
			" WHERE part = ? AND wake_at > 0 AND job_id = ? AND tenant_id = ? AND holds_slot = 1",
			domain.PartitionOf(job), int64(job), int64(s.tenant))
		if err != nil {
			return nil, fmt.Errorf("find runs to cover: %w", err)
		}
	}
	return ids, nil
}

// cover ends the earlier runs of m's job, or tells them to stop, so that m can
// take their place. When a later run has done so before, m itself is ended:
// later.
func (b *batch) cover(m *move, s *slot) (covered []domain.Execution, later bool, err error) {
	if s.believed {
		return nil, false, nil // it is free, or this transaction is repeated
	}
	me := waiterOf(&m.e)
	var others []*move
	for _, o := range b.moves {
		if o == m || o.e.JobID != m.e.JobID || !o.e.HoldsSlot && !s.waiting[o.e.ID] {
			continue
		}
		if me.before(waiterOf(&o.e)) {
			fx, err := m.e.Cover(b.now, "a later run of the job was due before this one started")
			if err != nil {
				return nil, false, err
			}
			return nil, true, b.apply(m, fx)
		}
		if o.e.State != domain.Cancelling && !o.e.Lingers { // those have been told
			others = append(others, o)
		}
	}
	slices.SortFunc(others, func(x, y *move) int { return cmp.Compare(x.e.ID, y.e.ID) })
	for _, o := range others {
		fx, err := o.e.Cover(b.now, "the run of "+m.e.FireAt.UTC().Format("2006-01-02T15:04:05.000Z")+" took its place")
		if err != nil {
			return nil, false, fmt.Errorf("cover execution %s: %w", o.e.ID, err)
		}
		if err := b.apply(o, fx); err != nil {
			return nil, false, err
		}
		covered = append(covered, o.e)
	}
	return covered, false, nil
}

// asStored replaces what was collected before the batch was saved.
func (b *batch) asStored(list []domain.Execution) {
	for i := range list {
		list[i] = b.moves[list[i].ID].e
	}
}

// offerOrder is the order in which offers are decided: by precedence, so that
// the first ones get what room there is, but those of one job that has a slot
// by fire time; of a job that covers, the latest first.
func (b *batch) offerOrder(offers []store.Offer) []int {
	order := make([]int, len(offers))
	ranks := make([]place, len(offers))
	byJob := map[domain.JobID][]int{} // places in order
	for i, o := range offers {
		order[i], ranks[i] = i, b.placeOf(o.ID)
	}
	slices.SortStableFunc(order, func(x, y int) int { return comparePlaces(ranks[x], ranks[y]) })
	for at, i := range order {
		r := b.flights[offers[i].ID].ref
		if b.slots[r.job] != nil {
			byJob[r.job] = append(byJob[r.job], at)
		}
	}
	for job, places := range byJob {
		if len(places) < 2 {
			continue
		}
		own := make([]int, len(places))
		for n, at := range places {
			own[n] = order[at]
		}
		slices.SortStableFunc(own, func(x, y int) int {
			c := compareWaiters(waiter{b.flights[offers[x].ID].ref.fireAt, offers[x].ID}, waiter{b.flights[offers[y].ID].ref.fireAt, offers[y].ID})
			if b.covers[job] {
				return -c
			}
			return c
		})
		for n, at := range places {
			order[at] = own[n]
		}
	}
	return order
}

// placeOf is placeOf without the row.
func (b *batch) placeOf(id domain.ExecutionID) place {
	r := b.flights[id].ref
	e := domain.Execution{ID: id, FireAt: instant(r.fireAt)}
	if spec := b.specs[r.spec()].spec; spec != nil {
		e.Priority = spec.Priority
	}
	return placeOf(&e)
}
