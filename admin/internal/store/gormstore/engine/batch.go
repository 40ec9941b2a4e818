package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/panics"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// Batch moves many executions in one transaction: load, decide, conclude, save.
//
// Executions and slots that are in the row cache are not read at all:
// the moves are decided on what it knows, and the statements that write them
// find only rows of the versions that it has (ErrStale otherwise, see RunBatch).
type Batch struct {
	run.Batch // the rules, and what they decide on
	s         *core
	Tx        *db.Tx
	attempt
	fromCache bool // some rows are of the cache, not locked
	// invalidated: it is known which cached rows were stale, and they are dropped.
	invalidated bool
	// unread is why it is not known whom to tell: the transaction cannot be saved.
	unread error

	known  map[domain.ExecutionID]cachedRun
	locked map[domain.ExecutionID]bool // by other transactions
	rows   map[domain.ExecutionID]*stored
	born   []*record.ExecutionRow // of Born, as they were inserted
	// bad are those that are left out because they cannot be read, with the
	// reason.
	bad map[domain.ExecutionID]error
}

// attempt is one try of a request.
type attempt struct {
	request run.Request
	// cacheable: rows that are in the row cache are neither read nor locked.
	cacheable bool
	// without are executions that are not loaded, and why.
	without map[domain.ExecutionID]error
}

// stored is one execution as it is stored: save compares it with what became of
// it, and sets after.
type stored struct {
	move          run.Move
	before, after *record.ExecutionRow
	cached        bool // before was not read in this transaction
}

// RunBatch runs one request in a transaction of its own. decide is called again when the
// transaction is repeated. If cached rows are stale, it is called once or twice more: first
// the changed rows are locked and read, then all rows. It is also called again without
// executions that cannot be moved. These are set aside when the others have moved.
//
// If the kind of the request does not wake runs, RunBatch wakes the successors for freed
// slots in a second transaction. If the process ends in between, a sweep looks at the
// successor 30 s after it began to wait.
func (s *core) RunBatch(ctx context.Context, step string, q run.Request, decide func(*Batch) error) error {
	if len(q.IDs) == 0 {
		return nil
	}
	a := attempt{q, false, map[domain.ExecutionID]error{}}
	mended, again := false, false
	for {
		b, err := s.runWithout(ctx, step, a, decide)
		var lacking *noSlotsError
		switch {
		case err == nil:
			maps.Copy(a.without, b.bad)
			if err := s.SetAside(ctx, a.without); err != nil {
				s.Logger.Error("executions cannot be set aside", "step", step, "err", err)
			}
			s.wakeSuccessors(ctx, b.Freed())
			return nil
		case errors.As(err, &lacking) && !mended:
			mended = true
			if err := s.mendSlots(ctx, lacking.jobs); err != nil {
				return err
			}
			continue
		case len(a.without) == maxSetAside:
			return err
		}
		bad := b.culprit(err)
		if bad == 0 && isRowError(err) {
			bad = s.bisect(ctx, b.suspects(), func(only []domain.ExecutionID) bool {
				return isRowError(s.tryOnly(ctx, a, b.suspects(), only, decide))
			})
		}
		if bad == 0 && isRowError(err) && !again {
			again = true // no single one fails by itself: perhaps none does any more
			continue
		}
		if _, known := a.without[bad]; bad == 0 || known {
			return err
		}
		a.without[bad] = err
	}
}

// suspects are the executions that may have kept the batch from being moved.
func (b *Batch) suspects() []domain.ExecutionID {
	if b == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(b.known))
}

// tryOnly runs a batch of some of the suspects, and undoes it.
func (s *core) tryOnly(ctx context.Context, a attempt, suspects, only []domain.ExecutionID, decide func(*Batch) error) error {
	a.without = maps.Clone(a.without)
	for _, id := range suspects {
		if !slices.Contains(only, id) {
			a.without[id] = errTrial
		}
	}
	err := s.TryOnce(ctx, "try", func(t *db.Tx) error {
		if _, err := s.moveBatch(t, a, decide); err != nil {
			return err
		}
		return errTrial
	})
	if errors.Is(err, errTrial) {
		return nil
	}
	return err
}

func (s *core) MakeBatch(t *db.Tx, q run.Request) *Batch { return s.makeBatch(t, attempt{request: q}) }

func (s *core) makeBatch(t *db.Tx, a attempt) *Batch {
	size := len(a.request.IDs)
	b := &Batch{
		Batch: run.Batch{
			Kind: a.request.Kind, Moves: make(map[domain.ExecutionID]*run.Move, size), Parents: map[domain.ExecutionID]bool{},
			Misfire: s.misfire, FenceFloor: s.KnownHistory().FenceFloor(),
		},
		s: s, Tx: t, attempt: a, rows: make(map[domain.ExecutionID]*stored, size), bad: map[domain.ExecutionID]error{},
		known: make(map[domain.ExecutionID]cachedRun, size), locked: map[domain.ExecutionID]bool{},
	}
	b.Source = b
	return b
}

// move is a request inside of a transaction.
func (s *core) move(t *db.Tx, q run.Request, decide func(*Batch) error) (*Batch, error) {
	b := s.MakeBatch(t, q)
	return b, b.move(decide)
}

// move is the only way of a batch to the database, so that each one concludes.
func (b *Batch) move(decide func(*Batch) error) error {
	if err := b.load(); err != nil {
		return err
	}
	if err := decide(b); err != nil {
		return err
	}
	if err := b.Conclude(); err != nil {
		return err
	}
	if err := b.save(); err != nil {
		return err
	}
	b.Stored()
	return nil
}

// moveBatch is one try of a batch inside a transaction. The batch is there with
// an error too, as far as it has come.
func (s *core) moveBatch(t *db.Tx, a attempt, decide func(*Batch) error) (b *Batch, err error) {
	t.Ctx = db.Unwatched(t.Ctx)
	if err := t.Guard(); err != nil {
		return nil, err
	}
	b = s.makeBatch(t, a)
	return b, panics.Catch(func() error { return b.move(decide) })
}

// runWithout is RunBatch without the executions that a names.
func (s *core) runWithout(ctx context.Context, step string, a attempt, decide func(*Batch) error) (b *Batch, err error) {
	ids := a.request.IDs
	a.cacheable = !a.request.Kind.SkipsLocked()
	wrong := 0 // how often
	once := func(t *db.Tx) (err error) {
		b, err = s.moveBatch(t, a, decide)
		return err
	}
	err = s.Repeat(ctx, step, func(ctx context.Context) (bool, error) { return s.landed(ctx, b) }, func(ctx context.Context) error {
		err := s.TryOnce(ctx, step, once)
		if errors.Is(err, db.ErrStale) {
			wrong++
			a.cacheable = wrong == 1 && (b.invalidated || s.invalidateChanged(ctx, ids))
			s.Rows.Stale.Add(1)
			s.Clock.Forget() // or it was the clock
		}
		return err
	})
	if err != nil {
		s.Rows.invalidate(ids)
		return b, err
	}
	if b.fromCache {
		s.Rows.Hits.Add(1)
	}
	for id := range b.Moves {
		r := b.rows[id]
		s.Rows.remember(cmp.Or(r.after, r.before))
	}
	for _, r := range b.born {
		s.Rows.remember(r)
	}
	for _, r := range b.rows {
		if r.proves() && s.Rollbacks.Note(r.move.E.ID, r.after.Version) {
			break // one is enough
		}
	}
	return b, nil
}

// proves: whoever looks for what was written finds it, unless the commit is
// lost. An edit of its job may delete an execution that was not offered, or only
// ahead of its time.
func (r *stored) proves() bool {
	a := r.after
	return a != nil && a.Fence > 0 && (a.Attempt > 0 || a.OfferedAt >= a.FireAt)
}

// save writes everything that changed.
func (b *Batch) save() error {
	if b.unread != nil {
		return b.unread
	}
	changes := make([]db.Change[record.ExecutionRow], 0, len(b.Moves))
	var refused []domain.ExecutionID
	for id, m := range b.Moves {
		b.Deciding = id
		r := b.rows[id]
		after := r.before.Next(&m.E)
		if after == r.before && r.cached {
			refused = append(refused, id)
		}
		if after == r.before {
			continue
		}
		changes = append(changes, db.Change[record.ExecutionRow]{Before: r.before, After: after})
		r.after, m.E = after, after.Execution() // what callers get is what is stored
	}
	b.Deciding = 0
	if len(refused) > 0 { // no statement would tell whether that is right
		b.s.Rows.invalidate(refused)
		b.invalidated = true
		return db.ErrStale
	}
	for _, job := range b.Contended {
		b.s.Rows.noteContended(job)
	}
	slices.SortFunc(changes, func(a, b db.Change[record.ExecutionRow]) int { return cmp.Compare(a.After.ID, b.After.ID) })
	if err := saveSlots(b.Tx, b.Slots); err != nil {
		return fmt.Errorf("save slots: %w", err)
	}
	if err := SaveLimits(b.Tx, b.Limits); err != nil {
		return fmt.Errorf("save limits: %w", err)
	}
	if err := b.saveExecutions(changes); err != nil {
		return fmt.Errorf("save executions: %w", err)
	}
	if err := b.saveWaiting(changes); err != nil {
		return fmt.Errorf("save waiting runs: %w", err)
	}
	if err := record.InsertEndsBy(b.Tx, changes); err != nil {
		return err
	}
	return b.saveRest()
}

// saveRest writes what comes of the moves beside executions, slots and limits.
func (b *Batch) saveRest() error {
	b.born = domain.Collect(b.Born, record.ToExecutionRow)
	if err := record.ExecutionTable.Insert(b.Tx, b.born); err != nil {
		return fmt.Errorf("insert parts: %w", err)
	}
	if err := b.saveAttempts(); err != nil {
		return err
	}
	if err := b.rearm(); err != nil {
		return err
	}
	if err := appendList(b.Tx, domain.TopicCallbacks, b.Callbacks); err != nil {
		return err
	}
	var missed missedRuns
	for i := range b.Missed {
		missed.add(&b.Missed[i])
	}
	return InsertEvents(b.Tx, append(b.Alerts, missed.events()...), b.Now)
}

// saveAttempts writes results that came too late to the archive, and what is
// archived now.
func (b *Batch) saveAttempts() error {
	for _, l := range b.Late {
		r := &l.Report
		_, err := b.Tx.Exec(b.Tx.Ctx, "UPDATE attempts SET state = ?, output = ?, error_kind = ?, error = ?, stack = ?, log_lines = ?, finished_at = ?"+
			" WHERE execution_id = ? AND fence = ? AND tenant_id = ? AND state = ?",
			int64(l.State), r.Output, record.Clip(r.ErrorKind, record.ErrorKindSize), record.Valid(r.Error), record.Valid(r.Stack), r.LogLines, db.Millis(b.Now),
			int64(l.ID), l.Fence, int64(l.Tenant), int64(domain.Lost))
		if err != nil {
			return fmt.Errorf("store late result: %w", err)
		}
	}
	archived := make([]*record.AttemptRow, len(b.Archived))
	for i, a := range b.Archived {
		archived[i] = record.ToAttemptRow(a)
	}
	if err := b.deleteAttempts(archived); err != nil {
		return fmt.Errorf("replace attempts: %w", err)
	}
	if err := record.AttemptTable.Insert(b.Tx, archived); err != nil {
		return fmt.Errorf("archive attempts: %w", err)
	}
	return nil
}

// deleteAttempts makes room for what is archived, and forgets what a late result
// has settled: along the primary key, in one statement as a rule.
func (b *Batch) deleteAttempts(archived []*record.AttemptRow) error {
	byKey := func(x, y *record.AttemptRow) int {
		return cmp.Or(cmp.Compare(x.ExecutionID, y.ExecutionID), cmp.Compare(x.Fence, y.Fence))
	}
	slices.SortFunc(archived, byKey)
	old := slices.Clone(archived)
	for _, k := range b.Unarchive {
		old = append(old, &record.AttemptRow{ExecutionID: int64(k.ID), Fence: k.Fence, TenantID: int64(k.Tenant)})
	}
	slices.SortFunc(old, byKey)
	for part := range slices.Chunk(old, 200) {
		terms := make([]string, len(part))
		for i, a := range part {
			terms[i] = fmt.Sprintf("(execution_id = %d AND fence = %d AND tenant_id = %d)", a.ExecutionID, a.Fence, a.TenantID)
		}
		if _, err := b.Tx.Exec(b.Tx.Ctx, "DELETE FROM attempts WHERE "+strings.Join(terms, " OR ")); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) saveExecutions(changes []db.Change[record.ExecutionRow]) error {
	if b.fromCache {
		return record.ExecutionTable.UpdateGuarded(b.Tx, changes, b.Tx.Dialect.Fresh(db.Millis(b.Now)))
	}
	// Until the commit is known.
	b.s.Rows.invalidate(domain.Collect(changes, func(c *db.Change[record.ExecutionRow]) domain.ExecutionID { return domain.ExecutionID(c.After.ID) }))
	return record.ExecutionTable.Update(b.Tx, changes)
}

// landed looks whether an execution is in the state that a transaction with
// lost commit left it in. One is enough: the transaction is all or nothing.
// Executions that somebody has moved on since prove nothing; when all have,
// the repetition finds nothing to do.
func (s *core) landed(ctx context.Context, b *Batch) (bool, error) {
	if b == nil {
		return false, nil
	}
	var ids []domain.ExecutionID
	for id, r := range b.rows {
		if r.after != nil {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return true, nil // nothing was to be written
	}
	rows, err := db.Select(ctx, s.Read, func(r *record.ExecutionRow) []any { return record.ExecutionTable.Targets(r) },
		"SELECT "+record.ExecutionColumns+" FROM executions WHERE id IN ("+db.IDList(ids)+")")
	return slices.ContainsFunc(rows, func(r record.ExecutionRow) bool { return r == *b.rows[domain.ExecutionID(r.ID)].after }), err
}
