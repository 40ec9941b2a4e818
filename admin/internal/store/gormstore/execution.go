package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

type requestKeyRow struct {
	TenantID    int64  `gorm:"column:tenant_id;primaryKey"`
	JobID       int64  `gorm:"column:job_id;primaryKey"`
	RequestKey  string `gorm:"column:request_key;primaryKey"`
	ExecutionID int64  `gorm:"column:execution_id"`
}

func (requestKeyRow) TableName() string { return "request_keys" }

// CreateExecution locks the job's trigger for sharing: a deletion either comes
// first, and then there is no such job, or sees the new run.
func (s *Store) CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	if len([]rune(e.OccurrenceKey)) > nameSize {
		return run, false, domain.Invalid("idempotency key", "is longer than %d characters", nameSize)
	}
	err = s.runRepeatable(ctx, "create execution", func(t *txn) error {
		run, created = domain.Execution{}, false
		now, err := t.fillFromJob(&e)
		if err != nil {
			return err
		}
		if e.OccurrenceKey == "" {
			// The empty key belongs to scheduled fires.
			e.OccurrenceKey = "run:" + e.ID.String()
		}
		if e.PlannedAt.IsZero() {
			e.PlannedAt = now
		}
		unique, _ := domain.SplitRequestKey(e.OccurrenceKey)
		key := requestKeyRow{int64(e.TenantID), int64(e.JobID), unique, int64(e.ID)}
		result := t.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&key)
		if result.Error != nil {
			return result.Error
		}
		err = t.db.Where("tenant_id = ? AND job_id = ? AND request_key = ?", key.TenantID, key.JobID, key.RequestKey).Take(&key).Error
		if err != nil {
			return err
		}
		if found, err := t.findExecution(e.TenantID, domain.ExecutionID(key.ExecutionID)); err != nil || found != nil {
			if found != nil {
				// Ours, when the answer to an earlier commit was lost.
				run, created = *found, found.ID == e.ID
			}
			return err
		}
		row := toExecutionRow(&e)
		if err := executionTable.insert(t, []*executionRow{row}); err != nil {
			return err
		}
		run, created = row.execution(), true
		return nil
	})
	if err == nil {
		s.flights.remember(toExecutionRow(&run))
	}
	return run, created, err
}

// fillFromJob checks that the job lives and copies what the caller left out.
func (t *txn) fillFromJob(e *domain.Execution) (now time.Time, err error) {
	var state, part, executor, revision, at int64
	row := t.raw.QueryRowContext(t.ctx, "SELECT j.state, tr.part, tr.executor_id, tr.revision, "+t.d.clock()+
		" FROM triggers AS tr JOIN jobs AS j ON j.id = tr.job_id WHERE tr.job_id = ? AND tr.tenant_id = ?"+t.d.forShare(),
		int64(e.JobID), int64(e.TenantID))
	if err := row.Scan(&state, &part, &executor, &revision, &at); err == sql.ErrNoRows || err == nil && domain.JobState(state) == domain.JobDeleted {
		return now, notFound("job", e.JobID)
	} else if err != nil {
		return now, err
	}
	e.Partition = int(part)
	if e.Executor == 0 {
		e.Executor = domain.ExecutorID(executor)
	}
	if e.Revision == 0 {
		e.Revision = revision
	}
	specs, err := t.s.specs.load(t.ctx, t.q, []revisionKey{{e.JobID, e.Revision}})
	if err != nil {
		return now, err
	}
	if len(specs) == 0 {
		return now, domain.Errorf(domain.CodeNotFound, "job %s has no revision %d", e.JobID, e.Revision)
	}
	e.Priority = specs[revisionKey{e.JobID, e.Revision}].spec.Priority
	return instant(at), nil
}

func (t *txn) findExecution(tenant domain.TenantID, id domain.ExecutionID) (*domain.Execution, error) {
	rows, err := executionTable.selectRows(t, "SELECT "+executionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	e := rows[0].execution()
	return &e, nil
}

// OfferExecutions serves the first in precedence first, and those of a serial
// job in the order of their fire times. A gone execution that exists comes back as it is:
// the caller sees, for example, that it is not due yet by the database's clock.
func (s *Store) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	if len(offers) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(offers))
	for i, o := range offers {
		ids[i] = o.ID
	}
	var results []store.OfferResult
	err := s.runBatch(ctx, "offer executions", ids, loadOptions{slots: true, offers: true}, func(b *batch) (err error) {
		results = make([]store.OfferResult, len(offers))
		if err := b.findStopped(); err != nil {
			return err
		}
		for _, i := range b.offerOrder(offers) {
			if results[i], err = b.offer(offers[i]); err != nil {
				return err
			}
		}
		if err := b.save(); err != nil {
			return err
		}
		for i := range results {
			if results[i].Execution.ID != 0 {
				results[i].Execution = b.moves[results[i].Execution.ID].e
			}
			b.asStored(results[i].Covered)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (b *batch) offer(o store.Offer) (store.OfferResult, error) {
	m := b.find(o.Tenant, o.ID)
	if m == nil {
		return store.OfferResult{}, nil
	}
	r := store.OfferResult{Status: store.OfferGone, Execution: m.e, Spec: m.spec}
	if m.e.State != domain.Due && m.e.State != domain.RetryWait || m.spec.Sharding.On() && !m.e.IsPart() {
		return r, nil // one with shards is spread
	}
	if b.now.Before(m.e.NotBefore) && !b.maybeAhead(m, o) {
		return r, nil
	}
	if m.e.Bound != 0 && m.e.Bound != o.Instance {
		return r, nil
	}
	if in, err := b.enter(m, o.Since, &r); err != nil || !in {
		return r, err
	}
	if full := b.full(&m.e); full != nil {
		return b.waitForRoom(m, full, r)
	}
	if s := b.slots[m.e.JobID]; s != nil && !m.e.HoldsSlot && m.spec.SlotLimit() > 0 {
		s.take(&m.e)
	}
	b.takeRoom(&m.e)
	granted := o.Granted && o.Idempotent
	if err := m.e.Offer(b.now, o.Node, o.Instance, o.Idempotent, granted, domain.PolicyOf(m.spec, o.Idempotent)); err != nil {
		return r, err // all that is expected was checked above
	}
	m.e.Passed = o.Passed
	r.Status = store.OfferMade
	return r, nil
}

// maybeAhead reports whether an execution may be offered before its time: it only
// takes what is there for it, so that nothing is decided now that would be
// decided otherwise then.
func (b *batch) maybeAhead(m *move, o store.Offer) bool {
	if !m.e.Ahead(b.now) || !m.spec.MaybeAhead() || o.Granted && o.Idempotent || len(b.limitsOf(&m.e)) > 0 {
		return false
	}
	if b.stopped.stopReason(&m.e, m.e.Attempt) != "" || m.e.SendsSpent(m.spec.SendRetry) {
		return false
	}
	limit := m.spec.SlotLimit()
	return limit == 0 || m.e.HoldsSlot || b.slots[m.e.JobID].admits(&m.e, limit)
}

// enter decides by the state of the job, its misfire policy and its blocking
// strategy whether an execution may go on now. If not, r says what became of it. The slot is left
// for the caller to take.
func (b *batch) enter(m *move, since time.Time, r *store.OfferResult) (in bool, err error) {
	if fx, ended, err := b.endStopped(m); err != nil || ended {
		r.Status = store.OfferDiscarded
		return false, errors.Join(err, b.apply(m, fx))
	}
	if ended, err := b.lapse(m, since); err != nil || ended {
		r.Status = store.OfferDiscarded
		return false, err
	}
	if m.e.SendsSpent(m.spec.SendRetry) {
		fx, err := m.e.SendFailed(b.now)
		r.Status = store.OfferDiscarded
		return false, errors.Join(err, b.apply(m, fx))
	}
	if m.e.Expired(b.now) {
		fx, err := m.e.Expire(b.now)
		r.Status = store.OfferDiscarded
		return false, errors.Join(err, b.apply(m, fx))
	}
	s, limit := b.slots[m.e.JobID], m.spec.SlotLimit()
	if limit == 0 || m.e.HoldsSlot {
		return true, nil
	}
	if m.spec.Blocking == domain.BlockCover {
		var later bool
		if r.Covered, later, err = b.cover(m, s); err != nil || later {
			r.Status = store.OfferDiscarded
			return false, err
		}
	}
	if !s.admits(&m.e, limit) {
		*r, err = b.block(m, s, *r)
		return false, err
	}
	return true, nil
}

// block lets an execution wait for its job's slot, or drops it. A retry is not
// dropped: its run has begun, and only the try waits.
func (b *batch) block(m *move, s *slot, r store.OfferResult) (store.OfferResult, error) {
	b.t.s.flights.crowd(s.job)
	// A run of a backfill waits instead: it was asked for, and it is not late.
	if m.spec.Blocking == domain.BlockDiscard && m.e.State == domain.Due && m.e.Attempt == 0 && m.e.Cause != domain.CauseBackfill {
		fx, err := m.e.Discard(b.now, "an earlier run of the job had not ended")
		if err != nil {
			return r, err
		}
		r.Status = store.OfferDiscarded
		return r, b.apply(m, fx)
	}
	s.enqueue(&m.e)
	b.leaveQueues(&m.e, nil)
	r.Status = store.OfferBlocked
	return r, m.e.Wait(b.now, domain.ReasonWaitSlot, "", b.now.Add(slotCheck))
}

// GrantOffers needs no slot: an offered execution has it already.
func (s *Store) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(grants))
	for i, g := range grants {
		ids[i] = g.ID
	}
	results := make([]store.GrantResult, len(grants))
	err := patiently(ctx, grantPatience, func() error {
		return s.move(ctx, "grant offers", ids, func(b *batch) error {
			clear(results)
			return b.grant(grants, results)
		}, func(b *batch) {
			for i, g := range grants {
				if m := b.find(g.Tenant, g.ID); m != nil {
					results[i].Execution = m.e
				}
			}
		})
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// grantPatience is how long grants are tried while the database is away. What
// is not granted waits until its offer is taken back (domain.OfferTTL), while an
// executor holds a slot for it.
const grantPatience = 2 * time.Second

func (b *batch) grant(grants []store.GrantRequest, results []store.GrantResult) error {
	for i, g := range grants {
		m := b.find(g.Tenant, g.ID)
		if m == nil {
			continue
		}
		if !m.e.Has(g.Fence, g.Instance) {
			if err := b.lapseOffered(m); err != nil {
				return err
			}
			results[i].Granted = m.e.Grant(b.now, g.Fence, g.Instance, m.policy()) == nil
			continue
		}
		var err error
		if results[i].Granted, err = b.grantAgain(m); err != nil {
			return err
		}
	}
	return nil
}

// move runs a batch that touches nothing but executions. decide may be called
// several times; after is called once the batch is written.
func (s *Store) move(ctx context.Context, step string, ids []domain.ExecutionID, decide func(*batch) error, after func(*batch)) error {
	var last *batch
	err := s.runBatch(ctx, step, ids, loadOptions{}, func(b *batch) error {
		last = b
		if err := decide(b); err != nil {
			return err
		}
		return b.save()
	})
	if err == nil && after != nil {
		after(last)
	}
	return err
}

// GiveBackOffers leaves the slot with the execution, so that order is kept. One
// whose sends are spent is ended by the sweep, or by the next offer.
func (s *Store) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(items))
	for i, g := range items {
		ids[i] = g.ID
	}
	results := make([]store.OfferResult, len(items))
	err := s.move(ctx, "give back offers", ids, func(b *batch) error {
		clear(results)
		for i, g := range items {
			m := b.find(g.Tenant, g.ID)
			if m == nil || m.e.Instance != g.Instance {
				continue
			}
			if g.Unheard {
				moved, err := b.unheard(m, g)
				if err != nil {
					return err
				}
				if moved {
					results[i].Status = store.OfferMade
				}
				continue
			}
			giveBack := m.e.GiveBack
			if g.Refused {
				giveBack = m.e.Refuse
			}
			if giveBack(b.now, g.Fence, g.Reason, g.Message, m.e.SendWait(m.spec.SendRetry, g.Wait)) == nil {
				if g.Busy {
					m.e.SentToFull()
				}
				results[i].Status = store.OfferMade
			}
		}
		return nil
	}, func(b *batch) {
		for i, g := range items {
			if m := b.find(g.Tenant, g.ID); m != nil {
				results[i].Execution, results[i].Spec = m.e, m.spec
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// RecordWaits passes over executions that are not due any more. One that needs
// its job's slot enters the queue for it: a later run of the job that finds an
// instance first, on this node or another, must not overtake it.
func (s *Store) RecordWaits(ctx context.Context, waits []store.Wait) (covered []domain.Execution, err error) {
	if len(waits) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(waits))
	for i, w := range waits {
		ids[i] = w.ID
	}
	err = s.runBatch(ctx, "record waits", ids, loadOptions{slots: true, readSlots: true, offers: true}, func(b *batch) error {
		covered = nil
		for _, w := range waits {
			if m := b.find(w.Tenant, w.ID); m != nil {
				ended, err := b.wait(m, w)
				if err != nil {
					return err
				}
				covered = append(covered, ended...)
			}
		}
		if err := b.save(); err != nil {
			return err
		}
		b.asStored(covered)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return covered, nil
}

func (b *batch) wait(m *move, w store.Wait) (covered []domain.Execution, err error) {
	if ended, err := b.lapse(m, w.Since); err != nil || ended {
		return []domain.Execution{m.e}, err
	}
	// An illegal move means that somebody else was quicker.
	if m.e.Wait(b.now, w.Reason, w.Message, w.Until(b.now, &m.e)) != nil {
		return nil, nil
	}
	if w.Full {
		m.e.WaitsForRoom(b.now, m.policy())
	}
	b.leaveQueues(&m.e, nil)
	if m.spec.SlotLimit() == 0 || m.e.HoldsSlot {
		return nil, nil
	}
	s := b.slots[m.e.JobID]
	if m.spec.Blocking == domain.BlockCover {
		// The earlier run may be what the instance is busy with.
		var later bool
		if covered, later, err = b.cover(m, s); later {
			return []domain.Execution{m.e}, err
		}
	}
	s.enqueue(&m.e)
	return covered, err
}

// RecordStarts bounds the executor's clock by ours, as the result does.
func (s *Store) RecordStarts(ctx context.Context, starts []store.Start) error {
	if len(starts) == 0 {
		return nil
	}
	ids := make([]domain.ExecutionID, len(starts))
	for i, st := range starts {
		ids[i] = st.ID
	}
	return s.move(ctx, "record starts", ids, func(b *batch) error {
		for _, st := range starts {
			m := b.find(st.Tenant, st.ID)
			if m == nil || st.StartedAt.IsZero() {
				continue
			}
			// An illegal move means that the attempt has ended meanwhile.
			_ = m.e.Started(b.now, st.Fence, st.Instance, toMillis(st.StartedAt))
		}
		return nil
	}, nil)
}

// RequestCancel wakes who waits behind an execution that ends by it.
func (s *Store) RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error) {
	var b *batch
	var run domain.Execution
	err := s.runChecked(ctx, "cancel execution", s.landed(&b), func(t *txn) (err error) {
		if b, err = newBatch(t, []domain.ExecutionID{id}, loadOptions{slots: true, queue: true}); err != nil {
			return err
		}
		m := b.find(tenant, id)
		if m == nil {
			return notFound("execution", id)
		}
		fx, err := m.e.RequestCancel(b.now, reason, message)
		if err != nil {
			return err
		}
		if err := b.apply(m, fx); err != nil {
			return err
		}
		if _, err := b.wake(); err != nil {
			return err
		}
		if err := b.save(); err != nil {
			return err
		}
		run = m.e
		return nil
	})
	if err != nil {
		return domain.Execution{}, err
	}
	return run, nil
}

// executionByID reads one execution outside of a transaction.
func (s *Store) executionByID(ctx context.Context, q querier, tenant domain.TenantID, id domain.ExecutionID) (*executionRow, error) {
	var out *executionRow
	err := query(ctx, q, func(rows *sql.Rows) error {
		out = &executionRow{}
		return rows.Scan(executionTable.targets(out)...)
	}, "SELECT "+executionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return nil, fmt.Errorf("read execution: %w", err)
	}
	return out, nil
}
