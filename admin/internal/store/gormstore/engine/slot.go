package engine

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// cachedSlot is the slot of a job of which one execution moves.
func cachedSlot(job domain.JobID, tenant domain.TenantID, limit int) *run.Slot {
	return &run.Slot{Job: job, Tenant: tenant, FromCache: true, Limit: limit}
}

// lockOf is the clause that locks rows for a change.
func lockOf(t *db.Tx, skipLocked bool) string {
	if skipLocked {
		return t.Dialect.ForUpdateSkip()
	}
	return t.Dialect.ForUpdate()
}

// lockSlots locks the slot rows of jobs, in the order of their ids.
func (s *core) lockSlots(t *db.Tx, jobs []domain.JobID, skipLocked bool) (map[domain.JobID]*run.Slot, error) {
	slots := make(map[domain.JobID]*run.Slot, len(jobs))
	if len(jobs) == 0 {
		return slots, nil
	}
	slices.Sort(jobs)
	err := db.Query(t.Ctx, t.Conn, func(rows *sql.Rows) error {
		var r record.SlotRow
		if err := rows.Scan(&r.JobID, &r.TenantID, &r.Holders, &r.Waiters); err != nil {
			return err
		}
		job := domain.JobID(r.JobID)
		if r.Waiters > 0 {
			s.Rows.noteContended(job)
		}
		slots[job] = run.LoadedSlot(job, domain.TenantID(r.TenantID), r.Holders, r.Waiters)
		return nil
	}, "SELECT job_id, tenant_id, holders, waiters FROM job_slots"+t.Dialect.ByPrimary()+
		" WHERE job_id IN ("+db.IDList(jobs)+") ORDER BY job_id"+lockOf(t, skipLocked))
	return slots, err
}

// loadQueues reads the beginning of each queue that has waiters, as far as its
// limit can reach, and which of the batch's executions stand in it.
func loadQueues(t *db.Tx, slots map[domain.JobID]*run.Slot, needs map[domain.JobID]*run.SlotNeed, known map[domain.ExecutionID]cachedRun) error {
	var heads, members []string
	for _, s := range slots {
		if s.Waiters > 0 {
			heads = append(heads, t.Dialect.Bounded(fmt.Sprintf(
				"SELECT job_id, fire_at, execution_id FROM slot_waiters WHERE job_id = %d ORDER BY job_id, fire_at, execution_id LIMIT %d",
				s.Job, needs[s.Job].Depth())))
		}
	}
	if len(heads) == 0 {
		return nil
	}
	for _, f := range known {
		r := f.ref
		if s := slots[r.Job]; s != nil && s.Waiters > 0 {
			members = append(members, fmt.Sprintf("(job_id = %d AND fire_at = %d AND execution_id = %d)", r.Job, r.FireAt, r.ID))
		}
	}
	inQueue := func(first bool) func(*sql.Rows) error {
		return func(rows *sql.Rows) error {
			var job domain.JobID
			var w run.Waiter
			if err := rows.Scan(&job, &w.FireAt, &w.ID); err != nil {
				return err
			}
			slots[job].InQueue(w, first)
			return nil
		}
	}
	for part := range slices.Chunk(heads, 200) {
		if err := db.Query(t.Ctx, t.Conn, inQueue(true), strings.Join(part, " UNION ALL ")); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(members, 200) {
		if err := db.Query(t.Ctx, t.Conn, inQueue(false), "SELECT job_id, fire_at, execution_id FROM slot_waiters WHERE "+strings.Join(part, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

type waiterRow struct{ jobID, fireAt, executionID, tenantID int64 }

var waiterTable = db.Table[waiterRow]{
	Name: "slot_waiters", Keys: 4, Required: 4,
	Columns: []db.Column[waiterRow]{
		db.IntColumn("job_id", func(r *waiterRow) *int64 { return &r.jobID }),
		db.IntColumn("fire_at", func(r *waiterRow) *int64 { return &r.fireAt }),
		db.IntColumn("execution_id", func(r *waiterRow) *int64 { return &r.executionID }),
		db.IntColumn("tenant_id", func(r *waiterRow) *int64 { return &r.tenantID }),
	},
}

// saveSlots writes the slots that changed, and their queues.
func saveSlots(t *db.Tx, slots map[domain.JobID]*run.Slot) error {
	if err := saveCachedSlots(t, slots); err != nil {
		return err
	}
	var changes []db.Change[record.SlotRow]
	var enter []*waiterRow
	var leave []string
	for _, job := range slices.Sorted(maps.Keys(slots)) {
		s := slots[job]
		if s.FromCache {
			continue
		}
		if s.Holders != s.HoldersWas || s.Waiters != s.WaitersWas {
			changes = append(changes, db.Change[record.SlotRow]{
				Before: &record.SlotRow{JobID: int64(s.Job), TenantID: int64(s.Tenant), Holders: s.HoldersWas, Waiters: s.WaitersWas},
				After:  &record.SlotRow{JobID: int64(s.Job), TenantID: int64(s.Tenant), Holders: s.Holders, Waiters: s.Waiters},
			})
		}
		for _, w := range s.Enter {
			enter = append(enter, &waiterRow{int64(s.Job), w.FireAt, int64(w.ID), int64(s.Tenant)})
		}
		for _, w := range s.Leave {
			leave = append(leave, fmt.Sprintf("(job_id = %d AND fire_at = %d AND execution_id = %d AND tenant_id = %d)", s.Job, w.FireAt, w.ID, s.Tenant))
		}
	}
	if err := record.SlotTable.Update(t, changes); err != nil {
		return err
	}
	if err := waiterTable.Insert(t, enter); err != nil {
		return err
	}
	for part := range slices.Chunk(leave, 200) {
		if _, err := t.Exec(t.Ctx, "DELETE FROM slot_waiters WHERE "+strings.Join(part, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

// slotChange is what many slots that were not read have in common.
type slotChange struct {
	tenant domain.TenantID
	taken  int64 // 1 = a place is taken, -1 = given back
	limit  int   // 0 unless one is taken
}

// changeOf is what the batch does to a slot that was not read.
func changeOf(s *run.Slot) slotChange {
	change := slotChange{tenant: s.Tenant, taken: s.Holders}
	if s.Holders > 0 {
		change.limit = s.Limit
	}
	return change
}

// set and guard make a statement that changes slots which nobody waits for.
func (c slotChange) set() string {
	return fmt.Sprintf("holders = holders + (%d)", c.taken)
}

func (c slotChange) guard() string {
	place := "holders > 0"
	if c.taken > 0 {
		place = fmt.Sprintf("holders < %d", c.limit)
	}
	return fmt.Sprintf("tenant_id = %d AND waiters = 0 AND %s", c.tenant, place)
}

// saveCachedSlots takes or gives back one place in each slot. ErrStale: a
// slot is full, or somebody waits for it. All of them are one statement along
// the primary key: it locks them in the order of their ids.
func saveCachedSlots(t *db.Tx, slots map[domain.JobID]*run.Slot) error {
	var all []domain.JobID
	groups := map[slotChange][]domain.JobID{}
	for _, job := range slices.Sorted(maps.Keys(slots)) {
		if s := slots[job]; s.FromCache && s.Holders != 0 {
			all = append(all, job)
			groups[changeOf(s)] = append(groups[changeOf(s)], job)
		}
	}
	if len(all) == 0 {
		return nil
	}
	var set, guard strings.Builder
	for change, jobs := range groups {
		in := "job_id IN (" + db.IDList(jobs) + ")"
		fmt.Fprintf(&set, " WHEN %s THEN %d", in, change.taken)
		fmt.Fprintf(&guard, " OR %s AND %s", in, change.guard())
	}
	statement := "holders = holders + CASE" + set.String() + " ELSE 0 END WHERE job_id IN (" + db.IDList(all) + ") AND (" + guard.String()[len(" OR "):] + ")"
	if len(groups) == 1 {
		change := changeOf(slots[all[0]])
		statement = change.set() + " WHERE job_id IN (" + db.IDList(all) + ") AND " + change.guard()
	}
	found, err := t.Exec(t.Ctx, "UPDATE job_slots"+t.Dialect.ByID()+" SET "+statement)
	if err == nil && found != int64(len(all)) {
		err = db.ErrStale
	}
	return err
}
