package gormstore

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// slot is a locked row of job_slots with the part of its queue that matters.
type slot struct {
	job    domain.JobID
	tenant domain.TenantID

	// believed: the row was not read. Nobody waits, and there is a place for
	// one run, or one run's place to give back: the update demands it. limit
	// is how many may hold the slot.
	believed bool
	limit    int

	holders, waiters             int64
	holdersBefore, waitersBefore int64

	// queue is the beginning of the queue, oldest first.
	queue []waiter
	// waiting are the executions of this batch that stand anywhere in the queue.
	waiting map[domain.ExecutionID]bool

	enter, leave []waiter
	// freed: a place may have become free, so the queue has to be looked at.
	freed bool
}

// waiter is a place in the queue; it is ordered by fire time.
type waiter struct {
	fireAt int64
	id     domain.ExecutionID
}

func (w waiter) before(other waiter) bool {
	return w.fireAt < other.fireAt || w.fireAt == other.fireAt && w.id < other.id
}

// believedSlot is the slot of a job of which one execution moves.
func believedSlot(r ref, limit int) *slot {
	return &slot{job: r.job, tenant: r.tenant, believed: true, limit: limit}
}

func waiterOf(e *domain.Execution) waiter { return waiter{millis(e.FireAt), e.ID} }

// admits reports whether e may take a place: there is a free one for it and
// for all that have waited for an earlier fire time.
func (s *slot) admits(e *domain.Execution, limit int) bool {
	if s.believed {
		return true
	}
	me := waiterOf(e)
	places := int64(limit) - s.holders
	for _, w := range s.queue {
		if places <= 0 || !w.before(me) {
			break
		}
		places--
	}
	return places > 0
}

func (s *slot) take(e *domain.Execution) {
	e.HoldsSlot = true
	s.holders++
	s.dequeue(e)
}

func (s *slot) release() {
	s.freed = true
	if s.believed {
		s.holders--
		return
	}
	s.holders = max(s.holders-1, 0)
}

// enqueue lets e wait; it does nothing when it waits already.
func (s *slot) enqueue(e *domain.Execution) {
	if s.waiting[e.ID] {
		return
	}
	w := waiterOf(e)
	s.waiting[e.ID] = true
	s.waiters++
	s.enter = append(s.enter, w)
	i, _ := slices.BinarySearchFunc(s.queue, w, func(a, b waiter) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	s.queue = slices.Insert(s.queue, i, w)
}

// dequeue ends e's waiting, when it does wait. The place before the others
// becomes free, so they are looked at.
func (s *slot) dequeue(e *domain.Execution) { s.drop(waiterOf(e)) }

func (s *slot) drop(w waiter) {
	if !s.waiting[w.id] {
		return
	}
	delete(s.waiting, w.id)
	s.waiters = max(s.waiters-1, 0)
	if i := slices.Index(s.enter, w); i >= 0 {
		s.enter = slices.Delete(s.enter, i, i+1)
	} else {
		s.leave = append(s.leave, w)
	}
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
	}
	s.freed = true
}

// lockSlots locks the slot rows of jobs, in the order of their ids.
func lockSlots(t *txn, jobs []domain.JobID, skipLocked bool) (map[domain.JobID]*slot, error) {
	slots := make(map[domain.JobID]*slot, len(jobs))
	if len(jobs) == 0 {
		return slots, nil
	}
	slices.Sort(jobs)
	lock := t.d.forUpdate()
	if skipLocked {
		lock = t.d.forUpdateSkip()
	}
	err := query(t.ctx, t.q, func(rows *sql.Rows) error {
		s := &slot{waiting: map[domain.ExecutionID]bool{}}
		if err := rows.Scan(&s.job, &s.tenant, &s.holders, &s.waiters); err != nil {
			return err
		}
		s.holdersBefore, s.waitersBefore = s.holders, s.waiters
		if s.waiters > 0 {
			t.s.flights.crowd(s.job)
		}
		slots[s.job] = s
		return nil
	}, "SELECT job_id, tenant_id, holders, waiters FROM job_slots"+t.d.byPrimary()+
		" WHERE job_id IN ("+idList(jobs)+") ORDER BY job_id"+lock)
	return slots, err
}

// loadQueues reads the beginning of each queue that has waiters, as far as its
// limit can reach, and which of the batch's executions stand in it.
func loadQueues(t *txn, slots map[domain.JobID]*slot, limits map[domain.JobID]int, flights map[domain.ExecutionID]flight) error {
	var heads, members []string
	for _, s := range slots {
		if s.waiters > 0 {
			heads = append(heads, t.d.bounded(fmt.Sprintf(
				"SELECT job_id, fire_at, execution_id FROM slot_waiters WHERE job_id = %d ORDER BY job_id, fire_at, execution_id LIMIT %d",
				s.job, max(limits[s.job], 1)+1)))
		}
	}
	if len(heads) == 0 {
		return nil
	}
	for _, f := range flights {
		r := f.ref
		if s := slots[r.job]; s != nil && s.waiters > 0 {
			members = append(members, fmt.Sprintf("(job_id = %d AND fire_at = %d AND execution_id = %d)", r.job, r.fireAt, r.id))
		}
	}
	scan := func(rows *sql.Rows) error {
		var job domain.JobID
		var w waiter
		if err := rows.Scan(&job, &w.fireAt, &w.id); err != nil {
			return err
		}
		s := slots[job]
		s.waiting[w.id] = true
		if i, ok := slices.BinarySearchFunc(s.queue, w, compareWaiters); !ok {
			s.queue = slices.Insert(s.queue, i, w)
		}
		return nil
	}
	for part := range slices.Chunk(heads, 200) {
		if err := query(t.ctx, t.q, scan, strings.Join(part, " UNION ALL ")); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(members, 200) {
		err := query(t.ctx, t.q, func(rows *sql.Rows) error {
			var job domain.JobID
			var id domain.ExecutionID
			if err := rows.Scan(&job, &id); err != nil {
				return err
			}
			slots[job].waiting[id] = true
			return nil
		}, "SELECT job_id, execution_id FROM slot_waiters WHERE "+strings.Join(part, " OR "))
		if err != nil {
			return err
		}
	}
	return nil
}

func compareWaiters(a, b waiter) int {
	switch {
	case a == b:
		return 0
	case a.before(b):
		return -1
	default:
		return 1
	}
}

type slotRow struct{ jobID, tenantID, holders, waiters int64 }

var slotTable = table[slotRow]{
	name: "job_slots", keys: 2, required: 2,
	columns: []column[slotRow]{
		intColumn("job_id", func(r *slotRow) *int64 { return &r.jobID }),
		intColumn("tenant_id", func(r *slotRow) *int64 { return &r.tenantID }),
		intColumn("holders", func(r *slotRow) *int64 { return &r.holders }),
		intColumn("waiters", func(r *slotRow) *int64 { return &r.waiters }),
	},
}

type waiterRow struct{ jobID, fireAt, executionID, tenantID int64 }

var waiterTable = table[waiterRow]{
	name: "slot_waiters", keys: 4, required: 4,
	columns: []column[waiterRow]{
		intColumn("job_id", func(r *waiterRow) *int64 { return &r.jobID }),
		intColumn("fire_at", func(r *waiterRow) *int64 { return &r.fireAt }),
		intColumn("execution_id", func(r *waiterRow) *int64 { return &r.executionID }),
		intColumn("tenant_id", func(r *waiterRow) *int64 { return &r.tenantID }),
	},
}

// saveSlots writes the slots that changed, and their queues.
func saveSlots(t *txn, slots map[domain.JobID]*slot) error {
	if err := saveBelievedSlots(t, slots); err != nil {
		return err
	}
	var changes []change[slotRow]
	var enter []*waiterRow
	var leave []string
	for _, job := range slices.Sorted(maps.Keys(slots)) {
		s := slots[job]
		if s.believed {
			continue
		}
		if s.holders != s.holdersBefore || s.waiters != s.waitersBefore {
			changes = append(changes, change[slotRow]{
				before: &slotRow{int64(s.job), int64(s.tenant), s.holdersBefore, s.waitersBefore},
				after:  &slotRow{int64(s.job), int64(s.tenant), s.holders, s.waiters},
			})
		}
		for _, w := range s.enter {
			enter = append(enter, &waiterRow{int64(s.job), w.fireAt, int64(w.id), int64(s.tenant)})
		}
		for _, w := range s.leave {
			leave = append(leave, fmt.Sprintf("(job_id = %d AND fire_at = %d AND execution_id = %d AND tenant_id = %d)", s.job, w.fireAt, w.id, s.tenant))
		}
	}
	if err := slotTable.update(t, changes); err != nil {
		return err
	}
	if err := waiterTable.insert(t, enter); err != nil {
		return err
	}
	for part := range slices.Chunk(leave, 200) {
		if _, err := t.exec(t.ctx, "DELETE FROM slot_waiters WHERE "+strings.Join(part, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

// believedChange is what many slots that were not read have in common.
type believedChange struct {
	tenant domain.TenantID
	taken  int64 // 1 = a place is taken, -1 = given back
	limit  int   // 0 unless one is taken
}

// change is what the batch does to a slot that was not read.
func (s *slot) change() believedChange {
	change := believedChange{tenant: s.tenant, taken: s.holders}
	if s.holders > 0 {
		change.limit = s.limit
	}
	return change
}

// set and guard make a statement that changes slots which nobody waits for.
func (c believedChange) set(prefix string) string {
	return fmt.Sprintf("%[1]sholders = %[1]sholders + (%[2]d)", prefix, c.taken)
}

func (c believedChange) guard(prefix string) string {
	place := prefix + "holders > 0"
	if c.taken > 0 {
		place = fmt.Sprintf("%sholders < %d", prefix, c.limit)
	}
	return fmt.Sprintf("%[1]stenant_id = %[2]d AND %[1]swaiters = 0 AND %[3]s", prefix, c.tenant, place)
}

// saveBelievedSlots takes or gives back one place in each slot. errStale: a
// slot is full, or somebody waits for it. All of them are one statement along
// the primary key: it locks them in the order of their ids.
func saveBelievedSlots(t *txn, slots map[domain.JobID]*slot) error {
	var all []domain.JobID
	groups := map[believedChange][]domain.JobID{}
	for _, job := range slices.Sorted(maps.Keys(slots)) {
		if s := slots[job]; s.believed && s.holders != 0 {
			all = append(all, job)
			groups[s.change()] = append(groups[s.change()], job)
		}
	}
	if len(all) == 0 {
		return nil
	}
	var set, guard strings.Builder
	for change, jobs := range groups {
		in := "job_id IN (" + idList(jobs) + ")"
		fmt.Fprintf(&set, " WHEN %s THEN %d", in, change.taken)
		fmt.Fprintf(&guard, " OR %s AND %s", in, change.guard(""))
	}
	statement := "holders = holders + CASE" + set.String() + " ELSE 0 END WHERE job_id IN (" + idList(all) + ") AND (" + guard.String()[len(" OR "):] + ")"
	if len(groups) == 1 {
		change := slots[all[0]].change()
		statement = change.set("") + " WHERE job_id IN (" + idList(all) + ") AND " + change.guard("")
	}
	found, err := t.exec(t.ctx, "UPDATE job_slots"+t.d.byID()+" SET "+statement)
	if err == nil && found != int64(len(all)) {
		err = errStale
	}
	return err
}
