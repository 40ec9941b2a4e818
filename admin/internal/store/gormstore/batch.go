package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// slotCheck is how long an execution that waits for its slot is left alone.
// The release of the slot wakes it; this is the net below, for a crash of the
// node that was to offer it then.
const slotCheck = 30 * time.Second

// batch moves many executions in one transaction: load, apply moves, save.
type batch struct {
	t   *txn
	now time.Time // the database's clock after the last lock

	refs  map[domain.ExecutionID]ref
	specs map[revisionKey]cachedSpec
	slots map[domain.JobID]*slot
	moves map[domain.ExecutionID]*move

	archived  []*attemptRow
	unarchive []*attemptRow // a late result settled what was archived
	alerts    []alertEventRow
}

// move is one locked execution. e is changed in place; save compares it with
// before.
type move struct {
	before *executionRow
	e      domain.Execution
	spec   *domain.JobSpec
}

func (m *move) policy() domain.Policy { return domain.PolicyOf(m.spec, m.e.Idempotent) }

// loadOptions say what a batch locks beside the executions.
type loadOptions struct {
	// slots: moves of this batch may take or release slots.
	slots bool
	// queue: a freed slot has to wake who waits for it.
	queue bool
	// skipLocked leaves out what others have locked.
	skipLocked bool
}

// newBatch locks the executions with these ids. Those that do not exist are
// missing in moves.
func newBatch(t *txn, ids []domain.ExecutionID, o loadOptions) (*batch, error) {
	b := &batch{t: t, slots: map[domain.JobID]*slot{}, moves: make(map[domain.ExecutionID]*move, len(ids))}
	var err error
	if b.refs, err = t.s.refs.load(t.ctx, t.tx, ids); err != nil {
		return nil, fmt.Errorf("find executions: %w", err)
	}
	keys := make([]revisionKey, 0, len(b.refs))
	for _, r := range b.refs {
		keys = append(keys, r.spec())
	}
	if b.specs, err = t.s.specs.load(t.ctx, t.tx, keys); err != nil {
		return nil, fmt.Errorf("load job revisions: %w", err)
	}
	if o.slots {
		if ids, err = b.lockDelays(ids, o.skipLocked); err != nil {
			return nil, err
		}
		if ids, err = b.loadSlots(ids, o); err != nil {
			return nil, err
		}
	}
	return b, b.lock(ids, o)
}

// loadSlots locks the slots of all jobs that have a limit, and returns the ids
// to lock, with those added that may be woken.
func (b *batch) loadSlots(ids []domain.ExecutionID, o loadOptions) ([]domain.ExecutionID, error) {
	limits := map[domain.JobID]int{}
	for _, r := range b.refs {
		if c, ok := b.specs[r.spec()]; ok {
			if limit := c.spec.SlotLimit(); limit > 0 {
				limits[r.job] = max(limits[r.job], limit)
			}
		}
	}
	jobs := make([]domain.JobID, 0, len(limits))
	for job := range limits {
		jobs = append(jobs, job)
	}
	var err error
	if b.slots, err = lockSlots(b.t, jobs, o.skipLocked); err != nil {
		return nil, fmt.Errorf("lock slots: %w", err)
	}
	if len(b.slots) < len(jobs) && !o.skipLocked {
		return nil, fmt.Errorf("lock slots: %d of %d jobs have no slot row", len(jobs)-len(b.slots), len(jobs))
	}
	if err := loadQueues(b.t, b.slots, limits, b.refs); err != nil {
		return nil, fmt.Errorf("load queues: %w", err)
	}
	if o.skipLocked {
		ids = slices.DeleteFunc(slices.Clone(ids), func(id domain.ExecutionID) bool {
			r, ok := b.refs[id]
			return !ok || limits[r.job] > 0 && b.slots[r.job] == nil
		})
	}
	if o.queue {
		return b.addQueued(ids)
	}
	return ids, nil
}

// addQueued adds the beginnings of the queues to the ids to lock.
func (b *batch) addQueued(ids []domain.ExecutionID) ([]domain.ExecutionID, error) {
	var queued []domain.ExecutionID
	for _, s := range b.slots {
		for _, w := range s.queue {
			if _, ok := b.refs[w.id]; !ok {
				queued = append(queued, w.id)
			}
		}
	}
	if len(queued) == 0 {
		return ids, nil
	}
	refs, err := b.t.s.refs.load(b.t.ctx, b.t.tx, queued)
	if err != nil {
		return nil, fmt.Errorf("find queued executions: %w", err)
	}
	var keys []revisionKey
	for id, r := range refs {
		b.refs[id] = r
		keys = append(keys, r.spec())
	}
	specs, err := b.t.s.specs.load(b.t.ctx, b.t.tx, keys)
	if err != nil {
		return nil, fmt.Errorf("load job revisions: %w", err)
	}
	for k, s := range specs {
		b.specs[k] = s
	}
	return append(slices.Clone(ids), queued...), nil
}

// lock reads the executions by primary key, in the order of their ids.
func (b *batch) lock(ids []domain.ExecutionID, o loadOptions) error {
	known := make([]domain.ExecutionID, 0, len(ids))
	for _, id := range ids {
		if _, ok := b.refs[id]; ok {
			known = append(known, id)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	lock := b.t.d.forUpdate()
	if o.skipLocked {
		lock = b.t.d.forUpdateSkip()
	}
	var now int64
	for part := range slices.Chunk(known, 1000) {
		err := query(b.t.ctx, b.t.tx, func(rows *sql.Rows) error {
			row := &executionRow{}
			var at int64
			if err := rows.Scan(executionTable.targets(row, &at)...); err != nil {
				return err
			}
			now = max(now, at)
			return b.add(row)
		}, "SELECT "+b.t.d.clock()+", "+executionColumns+" FROM executions"+b.t.d.byPrimary()+
			" WHERE id IN ("+idList(part)+") ORDER BY id"+lock)
		if err != nil {
			return fmt.Errorf("lock executions: %w", err)
		}
	}
	b.now = instant(now)
	return nil
}

func (b *batch) add(row *executionRow) error {
	e := row.execution()
	cached, ok := b.specs[revisionKey{e.JobID, e.Revision}]
	if !ok || cached.tenant != e.TenantID {
		return fmt.Errorf("execution %s: job %s has no revision %d", e.ID, e.JobID, e.Revision)
	}
	b.moves[e.ID] = &move{before: row, e: e, spec: cached.spec}
	return nil
}

// find returns the locked execution if it belongs to the tenant.
func (b *batch) find(tenant domain.TenantID, id domain.ExecutionID) *move {
	if m := b.moves[id]; m != nil && m.e.TenantID == tenant {
		return m
	}
	return nil
}

// apply carries out what a move demands. It is called after every move that
// may end or archive an attempt.
func (b *batch) apply(m *move, fx domain.Effects) error {
	s := b.slots[m.e.JobID]
	if fx.ReleaseSlot && s != nil {
		s.release()
	}
	if s != nil && m.e.State.Terminal() {
		s.dequeue(&m.e)
	}
	if fx.Archive != nil {
		b.archived = append(b.archived, toAttemptRow(fx.Archive))
	}
	if fx.Alert == "" {
		return nil
	}
	id, err := b.t.s.id()
	if err != nil {
		return err
	}
	b.alerts = append(b.alerts, alertEventRow{
		ID: id, TenantID: int64(m.e.TenantID), Kind: string(fx.Alert), JobID: int64(m.e.JobID), Revision: m.e.Revision,
		ExecutionID: int64(m.e.ID), CreatedAt: millis(b.now),
		DedupeKey: string(fx.Alert) + ":" + m.e.ID.String() + ":" + strconv.FormatInt(m.e.Fence, 10),
	})
	return nil
}

// wake makes the oldest waiters ready wherever a place became free, and
// returns them by job. They stay in the queue until they are offered, so that
// nobody overtakes them.
func (b *batch) wake() (map[domain.JobID][]*move, error) {
	woken := map[domain.JobID][]*move{}
	for job, s := range b.slots {
		if !s.freed || len(s.queue) == 0 {
			continue
		}
		places := s.holders
		for _, w := range slices.Clone(s.queue) {
			m := b.moves[w.id]
			if m == nil {
				break // locked by another transaction: its own WakeAt is the net
			}
			if m.e.State != domain.Due && m.e.State != domain.RetryWait {
				s.dequeue(&m.e) // cannot be, but would block the queue for ever
				continue
			}
			if places >= int64(m.spec.SlotLimit()) {
				break
			}
			places++
			if err := m.e.Wake(b.now, patience(m.spec)); err != nil {
				return nil, err
			}
			woken[job] = append(woken[job], m)
		}
	}
	return woken, nil
}

// patience is how long a due execution waits for an instance.
func patience(spec *domain.JobSpec) time.Duration {
	if spec.DispatchTimeout > 0 {
		return spec.DispatchTimeout
	}
	return domain.DefaultDispatchTimeout
}

// save writes everything that changed.
func (b *batch) save() error {
	changes := make([]change[executionRow], 0, len(b.moves))
	for _, m := range b.moves {
		after := toExecutionRow(&m.e)
		if *after == *m.before {
			continue
		}
		changes = append(changes, change[executionRow]{m.before, after})
		m.e = after.execution() // what callers get is what is stored
	}
	slices.SortFunc(changes, func(a, b change[executionRow]) int { return cmp.Compare(a.after.id, b.after.id) })
	if err := saveSlots(b.t, b.slots); err != nil {
		return fmt.Errorf("save slots: %w", err)
	}
	if err := executionTable.update(b.t, changes); err != nil {
		return fmt.Errorf("save executions: %w", err)
	}
	for _, a := range append(b.unarchive, b.archived...) {
		if _, err := b.t.exec(b.t.ctx, "DELETE FROM attempts WHERE execution_id = ? AND fence = ? AND tenant_id = ?",
			a.executionID, a.fence, a.tenantID); err != nil {
			return fmt.Errorf("replace attempt: %w", err)
		}
	}
	if err := attemptTable.insert(b.t, b.archived); err != nil {
		return fmt.Errorf("archive attempts: %w", err)
	}
	if err := b.rearm(); err != nil {
		return err
	}
	return insertAlerts(b.t, b.alerts)
}

func insertAlerts(t *txn, events []alertEventRow) error {
	if len(events) == 0 {
		return nil
	}
	if err := t.db.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(events, 200).Error; err != nil {
		return fmt.Errorf("write alert events: %w", err)
	}
	return nil
}

// landed looks whether an execution is in the state that a transaction with
// lost commit left it in. One is enough: the transaction is all or nothing.
// Executions that somebody has moved on since prove nothing; when all have,
// the repetition finds nothing to do.
func (s *Store) landed(b **batch) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		if *b == nil {
			return false, nil
		}
		var ids []domain.ExecutionID
		for id, m := range (*b).moves {
			if *toExecutionRow(&m.e) != *m.before {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return true, nil // nothing was to be written
		}
		found := false
		err := query(ctx, s.read, func(rows *sql.Rows) error {
			row := &executionRow{}
			if err := rows.Scan(executionTable.targets(row)...); err != nil {
				return err
			}
			found = found || *row == *toExecutionRow(&(*b).moves[domain.ExecutionID(row.id)].e)
			return nil
		}, "SELECT "+executionColumns+" FROM executions WHERE id IN ("+idList(ids)+")")
		return found, err
	}
}
