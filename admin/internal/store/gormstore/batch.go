package gormstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/rescue"
)

// slotCheck is how long an execution that waits for its slot is left alone.
// The release of the slot wakes it; this is the net below, for a crash of the
// node that was to offer it then.
const slotCheck = 30 * time.Second

// batch moves many executions in one transaction: load, apply moves, save.
//
// Executions and slots that this node believes to know are not read at all:
// the moves are decided on what it knows, and the statements that write them
// find only rows that are as believed (errStale otherwise, see runBatch).
type batch struct {
	t     *txn
	now   time.Time // the database's clock after the last lock
	known bool      // some rows are believed, not locked
	// doubted: it is known which beliefs were wrong, and they are given up.
	doubted bool
	// skipLocked: what is missing in moves may be locked by others.
	skipLocked bool

	flights map[domain.ExecutionID]flight
	specs   map[revisionKey]cachedSpec
	slots   map[domain.JobID]*slot
	// covers are the jobs among them whose runs cover earlier ones.
	covers map[domain.JobID]bool
	limits map[domain.LimitKey]*limit
	// stopped are jobs that are not enabled, with their state (findStopped).
	stopped jobStates
	moves   map[domain.ExecutionID]*move
	// bad are those that are left out because they cannot be read, with the
	// reason; deciding is the one whose turn it is, 0 where it is all of them.
	bad      map[domain.ExecutionID]error
	deciding domain.ExecutionID
	// parents are the runs whose parts move in this batch: they are locked and
	// read, since what becomes of them follows from rows that are not.
	parents map[domain.ExecutionID]bool
	ended   []*move         // parents that end because their parts have
	born    []*executionRow // parts to insert

	archived  []*attemptRow
	unarchive []*attemptRow // a late result settled what was archived
	alerts    []alertEventRow
	missed    missedRuns
	callbacks []callbackRow
}

// move is one execution on its way. e is changed in place; save compares it
// with before and sets after.
type move struct {
	before, after *executionRow
	believed      bool // before was not read in this transaction
	e             domain.Execution
	spec          *domain.JobSpec
}

func (m *move) policy() domain.Policy { return domain.PolicyOf(m.spec, m.e.Idempotent) }

// runBatch runs one batch in a transaction of its own. move decides and saves;
// it is called again when the transaction is repeated, and once or twice more
// when what was believed turns out to be wrong: first with those rows locked and
// read which have changed, then with all of them. It is also called again without
// executions that cannot be moved; they are set aside when the others have moved.
func (s *Store) runBatch(ctx context.Context, step string, ids []domain.ExecutionID, o loadOptions, move func(*batch) error) error {
	o.without = map[domain.ExecutionID]error{}
	mended, again := false, false
	for {
		b, err := s.runWithout(ctx, step, ids, o, move)
		var lacking *noSlotsError
		switch {
		case err == nil:
			if b != nil {
				maps.Copy(o.without, b.bad)
			}
			if len(o.without) == 0 {
				return nil
			}
			if err := s.SetAside(ctx, o.without); err != nil {
				s.log.Error("executions cannot be set aside", "step", step, "err", err)
			}
			return nil
		case errors.As(err, &lacking) && !mended:
			mended = true
			if err := s.mendSlots(ctx, lacking.jobs); err != nil {
				return err
			}
			continue
		case len(o.without) == maxAside:
			return err
		}
		guilty := b.blamed(err)
		if guilty == 0 && ofRow(err) {
			guilty = s.findGuilty(ctx, b.suspects(), func(only []domain.ExecutionID) bool {
				return ofRow(s.tryOnly(ctx, ids, o, b.suspects(), only, move))
			})
		}
		if guilty == 0 && ofRow(err) && !again {
			again = true // no single one fails alone: perhaps none does any more
			continue
		}
		if _, known := o.without[guilty]; guilty == 0 || known {
			return err
		}
		o.without[guilty] = err
	}
}

// suspects are the executions that may have kept the batch from being moved.
func (b *batch) suspects() []domain.ExecutionID {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.flights))
}

// tryOnly runs a batch of some of the suspects, and undoes it.
func (s *Store) tryOnly(ctx context.Context, ids []domain.ExecutionID, o loadOptions, suspects, only []domain.ExecutionID, move func(*batch) error) error {
	o.known, o.without = false, maps.Clone(o.without)
	for _, id := range suspects {
		if !slices.Contains(only, id) {
			o.without[id] = errUndone
		}
	}
	err := s.tryOnce(ctx, "try", func(t *txn) error {
		if _, err := t.moveBatch(ids, o, move); err != nil {
			return err
		}
		return errUndone
	})
	if errors.Is(err, errUndone) {
		return nil
	}
	return err
}

// moveBatch is one try of a batch inside a transaction. The batch is there with
// an error too, as far as it has come.
func (t *txn) moveBatch(ids []domain.ExecutionID, o loadOptions, move func(*batch) error) (b *batch, err error) {
	t.ctx = unwatched(t.ctx)
	if err := t.guard(); err != nil {
		return nil, err
	}
	b = makeBatch(t, len(ids), o)
	return b, rescue.Call(func() error {
		if err := b.loadAll(ids, o); err != nil {
			return err
		}
		return move(b)
	})
}

// runWithout is runBatch without the executions that o names.
func (s *Store) runWithout(ctx context.Context, step string, ids []domain.ExecutionID, o loadOptions, move func(*batch) error) (b *batch, err error) {
	o.known = !o.skipLocked
	wrong := 0 // how often
	once := func(t *txn) (err error) {
		b, err = t.moveBatch(ids, o, move)
		return err
	}
	err = s.repeat(ctx, step, s.landed(&b), func(ctx context.Context) error {
		err := errNotAlone
		if o.known && len(ids) == 1 && s.d.singly() > 0 {
			err = s.tryAlone(ctx, step, once)
		}
		if errors.Is(err, errNotAlone) {
			err = s.tryOnce(ctx, step, once)
		}
		if errors.Is(err, errStale) {
			wrong++
			o.known = wrong == 1 && (b.doubted || s.doubtChanged(ctx, ids))
			s.flights.stale.Add(1)
			s.clock.forget() // or it was the clock
		}
		return err
	})
	if err != nil || b == nil {
		s.flights.doubt(ids)
		return b, err
	}
	if b.known {
		s.flights.believed.Add(1)
	}
	for _, m := range b.moves {
		s.flights.remember(cmp.Or(m.after, m.before))
	}
	for _, r := range b.born {
		s.flights.remember(r)
	}
	s.past.note(b.moves)
	return b, nil
}

// find returns the locked execution if it belongs to the tenant.
func (b *batch) find(tenant domain.TenantID, id domain.ExecutionID) *move {
	b.deciding = id
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
	if m.e.State.Terminal() {
		if s != nil {
			s.dequeue(&m.e)
		}
		b.leaveQueues(&m.e, nil)
		// The parts of a run are no ends: its own is.
		if m.e.Parent == 0 && m.spec.Callback(m.e.State) != "" && m.before.state != int64(m.e.State) {
			b.callbacks = append(b.callbacks, callbackRow{
				ExecutionID: int64(m.e.ID), Success: flag(m.e.State == domain.Succeeded), TenantID: int64(m.e.TenantID), CreatedAt: millis(b.now),
			})
		}
	}
	if fx.Archive != nil {
		b.archived = append(b.archived, toAttemptRow(fx.Archive))
	}
	if fx.Alert == "" || m.e.IsPart() { // its parent's end is told
		return nil
	}
	if fx.Alert == domain.AlertRunMissed {
		b.missed.add(&m.e)
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

// wake moves parents on whose parts have ended, and makes the oldest waiters ready wherever a place became free, and
// returns all who may be offered now, by job. Waiters stay in the queue until they are offered, so that
// nobody overtakes them.
func (b *batch) wake() (map[domain.JobID][]*move, error) {
	woken := map[domain.JobID][]*move{}
	if err := b.advanceParents(woken); err != nil {
		return nil, err
	}
	for job, s := range b.slots {
		if !s.freed || len(s.queue) == 0 {
			continue
		}
		places := s.holders
		for _, w := range slices.Clone(s.queue) {
			m := b.moves[w.id]
			if m == nil && b.skipLocked {
				break // another transaction has it: the next sweep comes back to it
			}
			b.deciding = w.id
			if m == nil {
				s.drop(w) // without a row; it cannot be, but would block the queue for ever
				continue
			}
			if m.e.State != domain.Due && m.e.State != domain.RetryWait {
				s.dequeue(&m.e) // cannot be, but would block the queue for ever
				continue
			}
			if places >= int64(m.spec.SlotLimit()) {
				break
			}
			places++
			if m.e.Reason != domain.ReasonWaitSlot {
				continue // it keeps its place, and waits for something else now
			}
			if err := m.e.Wake(b.now, patience(m.spec)); err != nil {
				return nil, err
			}
			woken[job] = append(woken[job], m)
		}
	}
	return woken, nil
}

// leaveStuck takes jobs out of the batch whose next waiter is locked by another
// transaction: it could not be woken if this one freed the slot, so all of the
// job is left to the next sweep.
func (b *batch) leaveStuck() {
	stuck := map[domain.JobID]bool{}
	for job, s := range b.slots {
		if len(s.queue) > 0 && b.moves[s.queue[0].id] == nil {
			stuck[job] = true
		}
	}
	if len(stuck) == 0 {
		return
	}
	for id, m := range b.moves {
		if stuck[m.e.JobID] {
			delete(b.moves, id)
		}
	}
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
	var refused []domain.ExecutionID
	for _, m := range b.moves {
		b.deciding = m.e.ID
		after := m.before.next(&m.e)
		if after == m.before && m.believed {
			refused = append(refused, m.e.ID)
		}
		if after == m.before {
			continue
		}
		changes = append(changes, change[executionRow]{m.before, after})
		m.after, m.e = after, after.execution() // what callers get is what is stored
	}
	b.deciding = 0
	if len(refused) > 0 { // no statement would tell whether that is right
		b.t.s.flights.doubt(refused)
		b.doubted = true
		return errStale
	}
	if b.t.alone != nil {
		return b.saveAlone(changes)
	}
	slices.SortFunc(changes, func(a, b change[executionRow]) int { return cmp.Compare(a.after.id, b.after.id) })
	if err := saveSlots(b.t, b.slots); err != nil {
		return fmt.Errorf("save slots: %w", err)
	}
	if err := saveLimits(b.t, b.limits); err != nil {
		return fmt.Errorf("save limits: %w", err)
	}
	if err := b.saveExecutions(changes); err != nil {
		return fmt.Errorf("save executions: %w", err)
	}
	return b.saveRest()
}

// saveRest writes what comes of the moves beside executions, slots and limits.
// Whatever it writes, the batch needs a transaction for it (saveAlone).
func (b *batch) saveRest() error {
	if err := executionTable.insert(b.t, b.born); err != nil {
		return fmt.Errorf("insert parts: %w", err)
	}
	if err := b.deleteAttempts(); err != nil {
		return fmt.Errorf("replace attempts: %w", err)
	}
	if err := attemptTable.insert(b.t, b.archived); err != nil {
		return fmt.Errorf("archive attempts: %w", err)
	}
	if err := b.rearm(); err != nil {
		return err
	}
	if err := insertCallbacks(b.t, b.callbacks); err != nil {
		return err
	}
	if err := b.missed.insert(b.t, b.now); err != nil {
		return err
	}
	return insertAlerts(b.t, b.alerts)
}

// deleteAttempts makes room for what is archived, and forgets what a late result
// has settled: along the primary key, in one statement as a rule.
func (b *batch) deleteAttempts() error {
	byKey := func(x, y *attemptRow) int {
		return cmp.Or(cmp.Compare(x.executionID, y.executionID), cmp.Compare(x.fence, y.fence))
	}
	slices.SortFunc(b.archived, byKey)
	old := slices.Concat(b.unarchive, b.archived)
	slices.SortFunc(old, byKey)
	for part := range slices.Chunk(old, 200) {
		terms := make([]string, len(part))
		for i, a := range part {
			terms[i] = fmt.Sprintf("(execution_id = %d AND fence = %d AND tenant_id = %d)", a.executionID, a.fence, a.tenantID)
		}
		if _, err := b.t.exec(b.t.ctx, "DELETE FROM attempts WHERE "+strings.Join(terms, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) saveExecutions(changes []change[executionRow]) error {
	if b.known {
		return executionTable.updateGuarded(b.t, changes, b.t.d.fresh(millis(b.now)))
	}
	ids := make([]domain.ExecutionID, len(changes))
	for i, c := range changes {
		ids[i] = domain.ExecutionID(c.after.id)
	}
	b.t.s.flights.doubt(ids) // until the commit is known
	return executionTable.update(b.t, changes)
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
			if m.after != nil {
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
			found = found || *row == *(*b).moves[domain.ExecutionID(row.id)].after
			return nil
		}, "SELECT "+executionColumns+" FROM executions WHERE id IN ("+idList(ids)+")")
		return found, err
	}
}
