package engine

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// load locks and reads the rows of the request in the order of package gormstore:
// triggers, slots, limits, executions. Package run says which rows these are. A
// head of a queue is only known when its slot is locked; its execution comes later in the
// order. Moves lacks executions without a row, and unreadable ones.
func (b *Batch) load() error {
	if err := b.know(b.request.IDs); err != nil {
		return err
	}
	parents := b.request.ParentsOf(b.facts())
	for _, p := range parents {
		b.Parents[p] = true
	}
	if err := b.know(parents); err != nil {
		return err
	}
	needs, err := b.findNeeds()
	if err != nil {
		return err
	}
	triggers, err := lockTriggers(b.Tx, needs.Triggers, b.Kind.SkipsLocked())
	if err != nil {
		return err
	}
	if err := b.loadSlots(needs); err != nil {
		return err
	}
	if b.Kind.SkipsLocked() {
		for id, f := range b.known {
			_, delayed := slices.BinarySearch(needs.Triggers, f.ref.Job)
			b.locked[id] = delayed && triggers[f.ref.Job] == nil || needs.Slots[f.ref.Job] != nil && b.Slots[f.ref.Job] == nil
		}
	}
	others, err := b.findQueued(needs)
	if err != nil {
		return err
	}
	if err := b.know(others); err != nil {
		return err
	}
	if err := b.loadLimits(needs.Limits); err != nil {
		return err
	}
	return b.loadExecutions()
}

// know reads the facts of executions, and their jobs' revisions.
func (b *Batch) know(ids []domain.ExecutionID) error {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id domain.ExecutionID) bool {
		_, known := b.known[id]
		return known || b.without[id] != nil
	})
	found, err := b.s.Rows.load(b.Tx.Ctx, b.Tx.Conn, ids)
	if err != nil {
		return fmt.Errorf("find executions: %w", err)
	}
	keys := make([]record.RevisionKey, 0, len(found))
	for _, f := range found {
		keys = append(keys, revisionOf(f.ref))
	}
	specs, err := b.s.Specs.Load(b.Tx.Ctx, b.Tx.Conn, keys)
	if err != nil {
		return fmt.Errorf("load job revisions: %w", err)
	}
	for id, f := range found {
		key := revisionOf(f.ref)
		switch c := specs[key]; {
		case c.Spec == nil:
			b.bad[id] = b.s.Specs.Why(key)
		case c.Tenant != f.ref.Tenant:
			b.bad[id] = fmt.Errorf("job %s belongs to another tenant", f.ref.Job)
		default:
			f.ref.Spec = c.Spec
			b.known[id] = f
		}
	}
	return nil
}

func (b *Batch) facts() []run.Fact {
	facts := make([]run.Fact, 0, len(b.known))
	for _, f := range b.known {
		facts = append(facts, f.ref)
	}
	return facts
}

// findNeeds asks package run. This node knows of limits and maintenance.
func (b *Batch) findNeeds() (needs run.Needs, err error) {
	var known run.Known
	if b.Kind == run.Offers || b.Kind == run.Waits || len(b.request.Lingering) > 0 {
		if known.Limits, err = b.s.limits.load(b.Tx.Ctx, b.Tx.Conn); err != nil {
			return needs, err
		}
	}
	if b.Kind == run.Offers || b.Kind == run.Spreads {
		maintenance, err := b.s.maintenance.load(b.Tx.Ctx, b.Tx.Conn, b.Tx.Dialect)
		if err != nil {
			return needs, err
		}
		known.Stopping = len(maintenance.stopping) > 0
	}
	return b.request.Needs(b.facts(), known), nil
}

// loadSlots locks slots, and reads the beginnings of their queues. The slot of a job
// is not read if one run of it, which is in the row cache, is moved and the
// queue was empty so far.
func (b *Batch) loadSlots(needs run.Needs) (err error) {
	cached := map[domain.JobID]*run.Slot{}
	for _, f := range b.known {
		need := needs.Slots[f.ref.Job]
		if need != nil && need.Runs == 1 && f.ref.Parent == 0 && b.cacheable && !needs.ReadSlots && f.row != nil && !b.s.Rows.isContended(f.ref.Job) {
			cached[f.ref.Job] = cachedSlot(f.ref.Job, f.ref.Tenant, need.Limit)
		}
	}
	var jobs []domain.JobID
	for job := range needs.Slots {
		if cached[job] == nil {
			jobs = append(jobs, job)
		}
	}
	if b.Slots, err = b.s.lockSlots(b.Tx, jobs, b.Kind.SkipsLocked()); err != nil {
		return fmt.Errorf("lock slots: %w", err)
	}
	if len(b.Slots) < len(jobs) {
		if err := b.lackingSlots(jobs); err != nil {
			return err
		}
	}
	if err := loadQueues(b.Tx, b.Slots, needs.Slots, b.known); err != nil {
		return fmt.Errorf("load queues: %w", err)
	}
	maps.Copy(b.Slots, cached)
	return nil
}

// lackingSlots tells which of the jobs have no slot row, where not all could be
// locked: another transaction may have them.
func (b *Batch) lackingSlots(jobs []domain.JobID) error {
	missing := &noSlotsError{map[domain.JobID]domain.TenantID{}}
	for _, f := range b.known {
		if slices.Contains(jobs, f.ref.Job) && b.Slots[f.ref.Job] == nil {
			missing.jobs[f.ref.Job] = f.ref.Tenant
		}
	}
	if b.Kind.SkipsLocked() {
		there, err := db.SelectColumn[domain.JobID](b.Tx.Ctx, b.Tx.Conn, "SELECT job_id FROM job_slots WHERE job_id IN ("+db.IDList(slices.Sorted(maps.Keys(missing.jobs)))+")")
		for _, job := range there {
			delete(missing.jobs, job)
		}
		if err != nil || len(missing.jobs) == 0 {
			return err
		}
	}
	return missing
}

// findQueued returns the heads of queues that may be woken, and the executions that a
// run of a job that covers may have to end: the holders and the waiters of the job's
// slot. These cannot change while the slot is locked.
func (b *Batch) findQueued(needs run.Needs) (ids []domain.ExecutionID, err error) {
	for job, s := range b.Slots {
		covers := needs.Slots[job].Covers && !s.FromCache
		if covers || b.Kind.Wakes() {
			for _, w := range s.Queue {
				ids = append(ids, w.ID)
			}
		}
		if !covers || s.Holders == 0 {
			continue
		}
		living, err := record.LivingOf(b.Tx.Ctx, b.Tx.Conn, s.Tenant, job)
		if err != nil {
			return nil, err
		}
		holders, err := db.SelectColumn[domain.ExecutionID](b.Tx.Ctx, b.Tx.Conn,
			"SELECT id FROM executions"+b.Tx.Dialect.ByIndex("ix_executions_wake")+" WHERE "+living+" AND holds_slot = 1")
		if err != nil {
			return nil, fmt.Errorf("find runs to cover: %w", err)
		}
		ids = append(ids, holders...)
	}
	return ids, nil
}

// loadLimits locks limits, and reads the places of these and of other executions.
func (b *Batch) loadLimits(needs map[domain.LimitKey][]run.Place) (err error) {
	if len(needs) == 0 {
		return nil
	}
	if b.Limits, err = LockLimits(b.Tx, slices.Collect(maps.Keys(needs)), false); err != nil {
		return err
	}
	for k, l := range b.Limits {
		if err := loadMembers(b.Tx, l, needs[k]); err != nil {
			return fmt.Errorf("find waiting executions: %w", err)
		}
		if err := LoadPlaces(b.Tx, l, l.Reach(len(needs[k]))); err != nil {
			return fmt.Errorf("load queue: %w", err)
		}
	}
	return nil
}

// loadExecutions takes executions from the row cache, and locks and reads the others by
// primary key, in the order of their ids.
func (b *Batch) loadExecutions() error {
	var unknown []domain.ExecutionID
	for id, f := range b.known {
		switch {
		case b.locked[id]:
		case b.cacheable && f.row != nil && !b.Parents[id]:
			b.fromCache = true
			b.add(f.row, true)
		default:
			unknown = append(unknown, id)
		}
	}
	slices.Sort(unknown)
	var now int64
	for part := range slices.Chunk(unknown, 1000) {
		err := db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
			row := &record.ExecutionRow{}
			var at int64
			if err := rows.Scan(record.ExecutionTable.Targets(row, &at)...); err != nil {
				return err
			}
			now = max(now, at)
			b.add(row, false)
			return nil
		}, "SELECT "+b.Tx.Dialect.Clock()+", "+record.ExecutionColumns+" FROM executions"+b.Tx.Dialect.ByPrimary()+
			" WHERE id IN ("+db.IDList(part)+") ORDER BY id"+lockOf(b.Tx, b.Kind.SkipsLocked()))
		if err != nil {
			return fmt.Errorf("lock executions: %w", err)
		}
	}
	b.Now = db.Instant(now)
	if now > 0 {
		b.Tx.DB.Clock.Learn(now)
	} else if len(b.Moves) > 0 {
		var err error
		if b.Now, err = b.Tx.EstimatedClock(b.latestDue); err != nil {
			return fmt.Errorf("read clock: %w", err)
		}
	}
	if b.Kind.SkipsLocked() {
		b.leaveStuck()
	}
	return nil
}

// leaveStuck takes a job out of the batch if another transaction has locked its next
// waiter. If this one freed the slot, it could not wake that waiter. The next sweep
// looks at all runs of the job.
func (b *Batch) leaveStuck() {
	maps.DeleteFunc(b.Moves, func(_ domain.ExecutionID, m *run.Move) bool {
		s := b.Slots[m.E.JobID]
		return s != nil && len(s.Queue) > 0 && b.rows[s.Queue[0].ID] == nil
	})
}

// latestDue is the time of the last of the executions, but for those that are
// offered ahead of a time beyond until.
func (b *Batch) latestDue(until time.Time) (due time.Time) {
	for _, m := range b.Moves {
		if m.E.NotBefore.After(due) && !m.E.NotBefore.After(until) {
			due = m.E.NotBefore
		}
	}
	return due
}

func (b *Batch) add(row *record.ExecutionRow, cached bool) {
	e := row.Execution()
	f := b.known[e.ID].ref
	switch {
	case f.Job != e.JobID || f.Revision != e.Revision || f.Tenant != e.TenantID: // what never changes in a row has changed
		b.bad[e.ID] = fmt.Errorf("job %s has no revision %d", e.JobID, e.Revision)
	case e.State.String() == "":
		b.bad[e.ID] = fmt.Errorf("there is no state %d", row.State)
	case row.Parked(): // as if it were not there
	default:
		r := &stored{move: run.NewMove(e, f.Spec.For(e.Part)), before: row, cached: cached}
		b.rows[e.ID], b.Moves[e.ID] = r, &r.move
	}
}
