package engine

import (
	"context"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// CreateExecution locks the job's trigger for sharing: a deletion either comes
// first, and then there is no such job, or sees the new run.
func (s *Executions) CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	if len([]rune(e.OccurrenceKey)) > record.NameSize {
		return run, false, domain.Invalid("idempotency key", "is longer than %d characters", record.NameSize)
	}
	err = s.RunRepeatable(ctx, "create execution", func(t *db.Tx) error {
		run, created = domain.Execution{}, false
		now, err := s.Specs.FillFromJob(t, &e)
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
		key := record.RequestKeyRow{TenantID: int64(e.TenantID), JobID: int64(e.JobID), RequestKey: unique, ExecutionID: int64(e.ID)}
		result := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&key)
		if result.Error != nil {
			return result.Error
		}
		err = t.Gorm.Where("tenant_id = ? AND job_id = ? AND request_key = ?", key.TenantID, key.JobID, key.RequestKey).Take(&key).Error
		if err != nil {
			return err
		}
		if found, err := record.FindExecution(t, e.TenantID, domain.ExecutionID(key.ExecutionID)); err != nil || found != nil {
			if found != nil {
				// Ours, when the answer to an earlier commit was lost.
				run, created = *found, found.ID == e.ID
			}
			return err
		}
		row := record.ToExecutionRow(&e)
		rows := []*record.ExecutionRow{row}
		if err := record.ExecutionTable.Insert(t, rows); err != nil {
			return err
		}
		if err := record.InsertEndsOf(t, rows, false); err != nil {
			return err
		}
		run, created = row.Execution(), true
		return nil
	})
	if err == nil {
		s.Rows.remember(record.ToExecutionRow(&run))
	}
	return run, created, err
}

// OfferExecutions serves the first in precedence first, and those of a serial
// job in the order of their fire times. A gone execution that exists comes back as it is:
// the caller sees, for example, that it is not due yet by the database's clock.
func (s *Executions) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	if len(offers) == 0 {
		return nil, nil
	}
	ids := domain.Collect(offers, func(o *store.Offer) domain.ExecutionID { return o.ID })
	var results []store.OfferResult
	err := s.runAndWake(ctx, "offer executions", ids, LoadOptions{Slots: true, Offers: true}, func(b *Batch) (err error) {
		if results, err = b.Offer(offers); err != nil {
			return err
		}
		if err := b.Save(); err != nil {
			return err
		}
		for i := range results {
			b.Refresh(&results[i])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// GrantOffers needs no slot: an offered execution has it already.
func (s *Executions) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	ids := domain.Collect(grants, func(g *store.GrantRequest) domain.ExecutionID { return g.ID })
	var results []store.GrantResult
	err := db.Patiently(ctx, grantPatience, func() error {
		return s.move(ctx, "grant offers", ids, func(b *Batch) (err error) {
			results, err = b.Grant(grants)
			return err
		}, func(b *Batch) {
			for i, g := range grants {
				if m := b.Find(g.Tenant, g.ID); m != nil {
					results[i].Execution = m.E
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

// move runs a batch that touches nothing but executions. decide may be called
// several times; after is called once the batch is written.
func (s *core) move(ctx context.Context, step string, ids []domain.ExecutionID, decide func(*Batch) error, after func(*Batch)) error {
	var last *Batch
	err := s.RunBatch(ctx, step, ids, LoadOptions{}, func(b *Batch) error {
		last = b
		if err := decide(b); err != nil {
			return err
		}
		return b.Save()
	})
	if err == nil && after != nil {
		after(last)
	}
	return err
}

// GiveBackOffers leaves the slot with the execution, so that order is kept. One
// whose sends are spent is ended by the sweep, or by the next offer.
func (s *Executions) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ids := domain.Collect(items, func(g *store.GiveBack) domain.ExecutionID { return g.ID })
	var results []store.OfferResult
	err := s.move(ctx, "give back offers", ids, func(b *Batch) (err error) {
		results, err = b.GiveBack(items)
		return err
	}, func(b *Batch) {
		for i, g := range items {
			if m := b.Find(g.Tenant, g.ID); m != nil {
				results[i].Execution, results[i].Spec = m.E, m.Spec
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
func (s *Executions) RecordWaits(ctx context.Context, waits []store.Wait) (covered []domain.Execution, err error) {
	if len(waits) == 0 {
		return nil, nil
	}
	ids := domain.Collect(waits, func(w *store.Wait) domain.ExecutionID { return w.ID })
	err = s.runAndWake(ctx, "record waits", ids, LoadOptions{Slots: true, readSlots: true, Offers: true}, func(b *Batch) (err error) {
		if covered, err = b.Wait(waits); err != nil {
			return err
		}
		if err := b.Save(); err != nil {
			return err
		}
		b.AsStored(covered)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return covered, nil
}

// RecordStarts bounds the executor's clock by ours, as the result does.
func (s *Executions) RecordStarts(ctx context.Context, starts []store.Start) error {
	if len(starts) == 0 {
		return nil
	}
	ids := domain.Collect(starts, func(st *store.Start) domain.ExecutionID { return st.ID })
	return s.move(ctx, "record starts", ids, func(b *Batch) error {
		b.Start(starts)
		return nil
	}, nil)
}

// RequestCancel wakes who waits behind an execution that ends by it.
func (s *Executions) RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error) {
	var b *Batch
	var cancelled domain.Execution
	err := s.RunChecked(ctx, "cancel execution", s.landed(&b), func(t *db.Tx) (err error) {
		if b, err = s.newBatch(t, []domain.ExecutionID{id}, LoadOptions{Slots: true, queue: true}); err != nil {
			return err
		}
		m, err := b.RequestCancel(tenant, id, reason, message)
		if err == nil && m == nil {
			err = db.NotFound("execution", id)
		}
		if err != nil {
			return err
		}
		if _, err := b.Wake(); err != nil {
			return err
		}
		if err := b.Save(); err != nil {
			return err
		}
		cancelled = m.E
		return nil
	})
	if err != nil {
		return domain.Execution{}, err
	}
	return cancelled, nil
}

// FinishAttempts writes results, releases slots, wakes who waits for them,
// archives attempts that are repeated and writes alert events, in one
// transaction.
func (s *Executions) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	if len(reports) == 0 {
		return nil, nil
	}
	ids := make([]domain.ExecutionID, len(reports))
	load := LoadOptions{Slots: true, queue: true}
	for i, r := range reports {
		ids[i] = r.Report.ExecutionID
		if r.Report.StillRunning {
			load.lingering = append(load.lingering, r.Report.ExecutionID)
		}
	}
	var results []store.FinishResult
	err := s.RunBatch(ctx, "finish attempts", ids, load, func(b *Batch) (err error) {
		if results, err = b.Finish(reports); err != nil {
			return err
		}
		woken, err := b.Wake()
		if err != nil {
			return err
		}
		if err := b.Save(); err != nil {
			return err
		}
		b.FinishResults(reports, results, woken)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}
