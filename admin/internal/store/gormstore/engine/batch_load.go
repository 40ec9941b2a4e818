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

// LoadOptions say what a batch locks beside the executions.
type LoadOptions struct {
	// Slots: moves of this batch may take or release slots.
	Slots bool
	// queue: a freed slot has to wake who waits for it.
	queue bool
	// skipLocked leaves out what others have locked.
	skipLocked bool
	// readSlots: slots are always read, because executions may enter their queues.
	readSlots bool
	// Offers: moves of this batch may start runs. Then limits are locked too,
	// and runs are loaded that may have to be covered.
	Offers bool
	// lingering are executions that may occupy an instance again after they had
	// given up their places under limits: these are locked too.
	lingering []domain.ExecutionID
	// spreads: moves of this batch may make parts of runs: as offers, without
	// limits.
	spreads bool
	// parents are runs to lock and read whatever is known of them.
	parents []domain.ExecutionID
	// fromCache: what is in the row cache is neither read nor locked.
	fromCache bool
	// without are executions that are not loaded, and why.
	without map[domain.ExecutionID]error
}

// newBatch loads the executions with these ids. Those that do not exist, and
// those that cannot be read, are missing in moves.
func (s *core) newBatch(t *db.Tx, ids []domain.ExecutionID, o LoadOptions) (*Batch, error) {
	b := s.MakeBatch(t, len(ids), o)
	return b, b.loadAll(ids, o)
}

func (s *core) MakeBatch(t *db.Tx, size int, o LoadOptions) *Batch {
	b := &Batch{
		Batch: run.Batch{
			Moves: make(map[domain.ExecutionID]*run.Move, size), Slots: map[domain.JobID]*run.Slot{}, Parents: map[domain.ExecutionID]bool{},
			AllParents: o.skipLocked, Partial: o.skipLocked, Misfire: s.misfire, FenceFloor: s.KnownHistory().FenceFloor(),
		},
		s: s, Tx: t, rows: make(map[domain.ExecutionID]*stored, size), covers: map[domain.JobID]bool{}, bad: map[domain.ExecutionID]error{},
		known: make(map[domain.ExecutionID]cachedRun, size), specs: make(map[record.RevisionKey]record.CachedSpec, size),
	}
	b.Source = b
	return b
}

func (b *Batch) loadAll(ids []domain.ExecutionID, o LoadOptions) (err error) {
	if ids, err = b.know(ids, o); err != nil {
		return err
	}
	if ids, err = b.addParents(ids, o); err != nil {
		return err
	}
	var limited map[domain.LimitKey][]run.Place
	if o.Offers {
		if limited, err = b.findLimits(ids); err != nil {
			return err
		}
		o.readSlots = o.readSlots || len(limited) > 0 // who waits for room waits for the slot too
	} else if len(o.lingering) > 0 {
		if limited, err = b.findLimits(o.lingering); err != nil {
			return err
		}
	}
	if o.Slots && (o.Offers || o.spreads) && !o.readSlots {
		if o.readSlots, err = b.stopping(); err != nil { // who waits for its end waits for the slot too
			return err
		}
	}
	if o.Slots {
		if ids, err = b.lockDelays(ids, o.skipLocked); err != nil {
			return err
		}
		if ids, err = b.loadSlots(ids, o); err != nil {
			return err
		}
	}
	if err := b.loadLimits(limited); err != nil {
		return err
	}
	if err := b.load(ids, o); err != nil {
		return err
	}
	if o.skipLocked {
		b.leaveStuck()
	}
	return nil
}

// know finds out what never changes in the executions, and their jobs'
// revisions. It returns the ids without those that are to be left out.
func (b *Batch) know(ids []domain.ExecutionID, o LoadOptions) ([]domain.ExecutionID, error) {
	if len(o.without) > 0 {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id domain.ExecutionID) bool { return o.without[id] != nil })
	}
	found, err := b.s.Rows.load(b.Tx.Ctx, b.Tx.Conn, ids)
	if err != nil {
		return nil, fmt.Errorf("find executions: %w", err)
	}
	keys := make([]record.RevisionKey, 0, len(found))
	for _, f := range found {
		keys = append(keys, f.ref.spec())
	}
	specs, err := b.s.Specs.Load(b.Tx.Ctx, b.Tx.Conn, keys)
	if err != nil {
		return nil, fmt.Errorf("load job revisions: %w", err)
	}
	maps.Copy(b.specs, specs)
	bad := len(b.bad)
	for id, f := range found {
		key := f.ref.spec()
		switch c := specs[key]; {
		case c.Spec == nil:
			b.bad[id] = b.s.Specs.Why(key)
		case c.Tenant != f.ref.tenant:
			b.bad[id] = fmt.Errorf("job %s belongs to another tenant", f.ref.job)
		default:
			b.known[id] = f
		}
	}
	if len(b.bad) > bad {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id domain.ExecutionID) bool { return b.bad[id] != nil })
	}
	return ids, nil
}

// loadSlots locks the slots of all jobs that have a limit, and returns the ids
// to load, with those added that may be woken. The slot of a job is not looked
// at when one run of it, which is known, is moved, and nobody was seen to wait.
func (b *Batch) loadSlots(ids []domain.ExecutionID, o LoadOptions) ([]domain.ExecutionID, error) {
	limits := map[domain.JobID]int{}
	apart := map[domain.JobID]bool{}
	for _, f := range b.known {
		job := f.ref.job
		cached := b.specs[f.ref.spec()]
		limit := cached.Limit()
		if limit <= 0 || f.ref.parent != 0 {
			continue
		}
		if (o.Offers || o.spreads) && cached.Spec.Blocking == domain.BlockCover {
			b.covers[job] = true
		}
		_, several := limits[job]
		apart[job] = o.fromCache && !o.readSlots && !several && f.row != nil && !b.s.Rows.isContended(job)
		limits[job] = max(limits[job], limit)
	}
	jobs := make([]domain.JobID, 0, len(limits))
	for job := range limits {
		if !apart[job] {
			jobs = append(jobs, job)
		}
	}
	var err error
	if b.Slots, err = b.s.lockSlots(b.Tx, jobs, o.skipLocked); err != nil {
		return nil, fmt.Errorf("lock slots: %w", err)
	}
	if len(b.Slots) < len(jobs) {
		if err := b.lackingSlots(jobs, o.skipLocked); err != nil {
			return nil, err
		}
	}
	for job := range b.covers {
		limits[job] = max(limits[job], coverQueue)
	}
	if err := loadQueues(b.Tx, b.Slots, limits, b.known); err != nil {
		return nil, fmt.Errorf("load queues: %w", err)
	}
	for _, f := range b.known {
		if apart[f.ref.job] {
			b.Slots[f.ref.job] = cachedSlot(f.ref, b.specs[f.ref.spec()].Limit())
		}
	}
	if o.skipLocked {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id domain.ExecutionID) bool {
			f, ok := b.known[id]
			return !ok || limits[f.ref.job] > 0 && b.Slots[f.ref.job] == nil
		})
	}
	if o.queue {
		return b.addQueued(ids, o)
	}
	if len(b.covers) > 0 {
		others, err := b.coverable()
		if err != nil {
			return nil, err
		}
		return b.addIDs(ids, others, o)
	}
	return ids, nil
}

// addParents adds the parents of all parts to the ids to load.
func (b *Batch) addParents(ids []domain.ExecutionID, o LoadOptions) ([]domain.ExecutionID, error) {
	for _, id := range o.parents {
		b.Parents[id] = true
	}
	if !o.queue {
		return ids, nil // nothing ends here but what the sweep hears of as well
	}
	var missing []domain.ExecutionID
	for _, f := range b.known {
		if p := f.ref.parent; p != 0 && !b.Parents[p] {
			b.Parents[p] = true
			missing = append(missing, p)
		}
	}
	slices.Sort(missing)
	return b.addIDs(ids, missing, o)
}

// addQueued adds the beginnings of the queues to the ids to load.
func (b *Batch) addQueued(ids []domain.ExecutionID, o LoadOptions) ([]domain.ExecutionID, error) {
	var queued []domain.ExecutionID
	for _, s := range b.Slots {
		for _, w := range s.Queue {
			queued = append(queued, w.ID)
		}
	}
	return b.addIDs(ids, queued, o)
}

// addIDs adds others to the ids to load.
func (b *Batch) addIDs(ids, others []domain.ExecutionID, o LoadOptions) ([]domain.ExecutionID, error) {
	others = slices.DeleteFunc(others, func(id domain.ExecutionID) bool {
		_, known := b.known[id]
		return known
	})
	if len(others) == 0 {
		return ids, nil
	}
	others, err := b.know(others, o)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(ids), others...), nil
}

// lackingSlots tells which of the jobs have no slot row, where not all could be
// locked; skipped: another transaction may have them.
func (b *Batch) lackingSlots(jobs []domain.JobID, skipped bool) error {
	missing := &noSlotsError{map[domain.JobID]domain.TenantID{}}
	for _, f := range b.known {
		if slices.Contains(jobs, f.ref.job) && b.Slots[f.ref.job] == nil {
			missing.jobs[f.ref.job] = f.ref.tenant
		}
	}
	if skipped {
		err := db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
			var job domain.JobID
			err := rows.Scan(&job)
			delete(missing.jobs, job)
			return err
		}, "SELECT job_id FROM job_slots WHERE job_id IN ("+db.IDList(slices.Sorted(maps.Keys(missing.jobs)))+")")
		if err != nil || len(missing.jobs) == 0 {
			return err
		}
	}
	return missing
}

// load takes the executions that are known, and locks and reads the others by
// primary key, in the order of their ids.
func (b *Batch) load(ids []domain.ExecutionID, o LoadOptions) error {
	unknown := make([]domain.ExecutionID, 0, len(ids))
	for _, id := range ids {
		f, ok := b.known[id]
		if ok && o.fromCache && f.row != nil && !b.Parents[id] {
			b.fromCache = true
			b.add(f.row, true)
		} else if ok {
			unknown = append(unknown, id)
		}
	}
	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	lock := b.Tx.Dialect.ForUpdate()
	if o.skipLocked {
		lock = b.Tx.Dialect.ForUpdateSkip()
	}
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
			" WHERE id IN ("+db.IDList(part)+") ORDER BY id"+lock)
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
	return nil
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
	revision, ok := b.specs[record.RevisionKey{Job: e.JobID, Revision: e.Revision}]
	switch {
	case !ok || revision.Tenant != e.TenantID: // what never changes in a row has changed
		b.bad[e.ID] = fmt.Errorf("job %s has no revision %d", e.JobID, e.Revision)
	case e.State.String() == "":
		b.bad[e.ID] = fmt.Errorf("there is no state %d", row.State)
	case row.Parked(): // as if it were not there
	default:
		r := &stored{move: run.NewMove(e, revision.Spec.For(e.Part)), before: row, cached: cached}
		b.rows[e.ID], b.Moves[e.ID] = r, &r.move
	}
}

// coverQueue is how much of the queue of a cover-early job is loaded. It has one
// waiter at most, but for what waited when the job became one.
const coverQueue = 100

// coverable returns the executions that a run of a cover-early job in this batch
// may have to end: those that hold the job's slot, or wait for it. Who they are
// cannot change while the slot is locked.
func (b *Batch) coverable() (ids []domain.ExecutionID, err error) {
	for job, s := range b.Slots {
		if !b.covers[job] || s.FromCache {
			continue
		}
		for _, w := range s.Queue {
			ids = append(ids, w.ID)
		}
		if s.Holders == 0 {
			continue
		}
		living, err := record.LivingOf(b.Tx.Ctx, b.Tx.Conn, s.Tenant, job)
		if err != nil {
			return nil, err
		}
		err = db.Query(b.Tx.Ctx, b.Tx.Conn, func(rows *sql.Rows) error {
			var id domain.ExecutionID
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		}, "SELECT id FROM executions"+b.Tx.Dialect.ByIndex("ix_executions_wake")+" WHERE "+living+" AND holds_slot = 1")
		if err != nil {
			return nil, fmt.Errorf("find runs to cover: %w", err)
		}
	}
	return ids, nil
}
