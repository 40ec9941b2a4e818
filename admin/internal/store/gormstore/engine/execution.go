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
func (s *Executions) CreateExecution(ctx context.Context, asked domain.Execution) (run domain.Execution, created bool, err error) {
	if len([]rune(asked.OccurrenceKey)) > record.NameSize {
		return run, false, domain.Invalid("idempotency key", "is longer than %d characters", record.NameSize)
	}
	type made struct {
		run     domain.Execution
		created bool
	}
	did, err := db.Value(ctx, s.RunRepeatable, "create execution", func(t *db.Tx) (made, error) {
		e := asked
		now, err := s.Specs.FillFromJob(t, &e)
		if err != nil {
			return made{}, err
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
			return made{}, result.Error
		}
		err = t.Gorm.Where("tenant_id = ? AND job_id = ? AND request_key = ?", key.TenantID, key.JobID, key.RequestKey).Take(&key).Error
		if err != nil {
			return made{}, err
		}
		if found, err := record.FindExecution(t, e.TenantID, domain.ExecutionID(key.ExecutionID)); err != nil || found != nil {
			if err != nil {
				return made{}, err
			}
			return made{*found, found.ID == e.ID}, nil // ours, when the answer to an earlier commit was lost
		}
		row := record.ToExecutionRow(&e)
		rows := []*record.ExecutionRow{row}
		if err := record.ExecutionTable.Insert(t, rows); err != nil {
			return made{}, err
		}
		if err := record.InsertEndsOf(t, rows, false); err != nil {
			return made{}, err
		}
		return made{row.Execution(), true}, nil
	})
	if err != nil {
		return domain.Execution{}, false, err
	}
	s.Rows.remember(record.ToExecutionRow(&did.run))
	return did.run, did.created, nil
}

// OfferExecutions serves the first in precedence first, and those of a serial
// job in the order of their fire times. A gone execution that exists comes back as it is:
// the caller sees, for example, that it is not due yet by the database's clock.
func (s *Executions) OfferExecutions(ctx context.Context, offers []store.Offer) ([]store.OfferResult, error) {
	if len(offers) == 0 {
		return nil, nil
	}
	ids := domain.Collect(offers, func(o *store.Offer) domain.ExecutionID { return o.ID })
	return batchValue(ctx, s.runAndWake, "offer executions", ids, LoadOptions{Slots: true, Offers: true}, func(b *Batch) ([]store.OfferResult, error) {
		results, err := b.Offer(offers)
		if err == nil {
			err = b.Save()
		}
		for i := range results {
			b.Refresh(&results[i])
		}
		return results, err
	})
}

// GrantOffers needs no slot: an offered execution has it already.
func (s *Executions) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	if len(grants) == 0 {
		return nil, nil
	}
	ids := domain.Collect(grants, func(g *store.GrantRequest) domain.ExecutionID { return g.ID })
	var results []store.GrantResult
	err := db.Patiently(ctx, grantPatience, func() (err error) {
		results, err = batchValue(ctx, s.RunBatch, "grant offers", ids, LoadOptions{}, func(b *Batch) ([]store.GrantResult, error) {
			results, err := b.Grant(grants)
			if err == nil {
				err = b.Save()
			}
			for i, g := range grants {
				if m := b.Find(g.Tenant, g.ID); m != nil && err == nil {
					results[i].Execution = m.E
				}
			}
			return results, err
		})
		return err
	})
	return results, err
}

// grantPatience is how long grants are tried while the database is away. What
// is not granted waits until its offer is taken back (domain.OfferTTL), while an
// executor holds a slot for it.
const grantPatience = 2 * time.Second

// batchValue is run, RunBatch or runAndWake, with a value that is handed out after the
// commit. With an error it is the zero value.
func batchValue[T any](ctx context.Context, run func(context.Context, string, []domain.ExecutionID, LoadOptions, func(*Batch) error) error,
	step string, ids []domain.ExecutionID, o LoadOptions, move func(*Batch) (T, error),
) (T, error) {
	var value T
	if err := run(ctx, step, ids, o, func(b *Batch) (err error) {
		value, err = move(b)
		return err
	}); err != nil {
		var zero T
		return zero, err
	}
	return value, nil
}

// GiveBackOffers leaves the slot with the execution, so that order is kept. One
// whose sends are spent is ended by the sweep, or by the next offer.
func (s *Executions) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ids := domain.Collect(items, func(g *store.GiveBack) domain.ExecutionID { return g.ID })
	return batchValue(ctx, s.RunBatch, "give back offers", ids, LoadOptions{}, func(b *Batch) ([]store.OfferResult, error) {
		results, err := b.GiveBack(items)
		if err == nil {
			err = b.Save()
		}
		for i, g := range items {
			if m := b.Find(g.Tenant, g.ID); m != nil && err == nil {
				results[i].Execution, results[i].Spec = m.E, m.Spec
			}
		}
		return results, err
	})
}

// RecordWaits passes over executions that are not due any more. One that needs
// its job's slot enters the queue for it: a later run of the job that finds an
// instance first, on this node or another, must not overtake it.
func (s *Executions) RecordWaits(ctx context.Context, waits []store.Wait) (covered []domain.Execution, err error) {
	if len(waits) == 0 {
		return nil, nil
	}
	ids := domain.Collect(waits, func(w *store.Wait) domain.ExecutionID { return w.ID })
	return batchValue(ctx, s.runAndWake, "record waits", ids, LoadOptions{Slots: true, readSlots: true, Offers: true}, func(b *Batch) ([]domain.Execution, error) {
		covered, err := b.Wait(waits)
		if err != nil {
			return nil, err
		}
		if err := b.Save(); err != nil {
			return nil, err
		}
		b.AsStored(covered)
		return covered, nil
	})
}

// RecordStarts bounds the executor's clock by ours, as the result does.
func (s *Executions) RecordStarts(ctx context.Context, starts []store.Start) error {
	if len(starts) == 0 {
		return nil
	}
	ids := domain.Collect(starts, func(st *store.Start) domain.ExecutionID { return st.ID })
	return s.RunBatch(ctx, "record starts", ids, LoadOptions{}, func(b *Batch) error {
		b.Start(starts)
		return b.Save()
	})
}

// RequestCancel wakes who waits behind an execution that ends by it.
func (s *Executions) RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error) {
	type moved struct {
		b *Batch
		e domain.Execution
	}
	landed := func(ctx context.Context, last moved) (bool, error) { return s.landed(ctx, last.b) }
	did, err := db.ValueChecked(ctx, s.DB, "cancel execution", landed, func(t *db.Tx) (out moved, err error) {
		b, err := s.newBatch(t, []domain.ExecutionID{id}, LoadOptions{Slots: true, queue: true})
		out.b = b
		if err != nil {
			return out, err
		}
		m, err := b.RequestCancel(tenant, id, reason, message)
		if err == nil && m == nil {
			err = db.NotFound("execution", id)
		}
		if err != nil {
			return out, err
		}
		if _, err := b.Wake(); err != nil {
			return out, err
		}
		err = b.Save()
		out.e = m.E
		return out, err
	})
	return did.e, err
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
	return batchValue(ctx, s.RunBatch, "finish attempts", ids, load, func(b *Batch) ([]store.FinishResult, error) {
		results, err := b.Finish(reports)
		if err != nil {
			return nil, err
		}
		woken, err := b.Wake()
		if err != nil {
			return nil, err
		}
		if err := b.Save(); err != nil {
			return nil, err
		}
		b.FinishResults(reports, results, woken)
		return results, nil
	})
}
