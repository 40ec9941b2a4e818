package engine

import (
	"context"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// CreateExecution locks the job's trigger for sharing: a deletion either comes
// first, and then there is no such job, or sees the new run.
func (s *Executions) CreateExecution(ctx context.Context, asked domain.Execution) (_ domain.Execution, created bool, err error) {
	if len([]rune(asked.OccurrenceKey)) > record.NameSize {
		return domain.Execution{}, false, domain.Invalid("idempotency key", "is longer than %d characters", record.NameSize)
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
	ids := domain.Collect(offers, func(o *store.Offer) domain.ExecutionID { return o.ID })
	return batchValue(ctx, s.core, "offer executions", run.Request{Kind: run.Offers, IDs: ids}, func(b *Batch) ([]store.OfferResult, error) { return b.Offer(offers) })
}

// GrantOffers needs no slot: an offered execution has it already.
func (s *Executions) GrantOffers(ctx context.Context, grants []store.GrantRequest) ([]store.GrantResult, error) {
	ids := domain.Collect(grants, func(g *store.GrantRequest) domain.ExecutionID { return g.ID })
	var results []store.GrantResult
	err := db.Patiently(ctx, grantPatience, func() (err error) {
		results, err = batchValue(ctx, s.core, "grant offers", run.Request{IDs: ids}, func(b *Batch) ([]store.GrantResult, error) { return b.Grant(grants) })
		return err
	})
	return results, err
}

// grantPatience is how long grants are tried while the database is away. What
// is not granted waits until its offer is taken back (domain.OfferTTL), while an
// executor holds a slot for it.
const grantPatience = 2 * time.Second

// GiveBackOffers leaves the slot with the execution, so that order is kept. One
// whose sends are spent is ended by the sweep, or by the next offer.
func (s *Executions) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	ids := domain.Collect(items, func(g *store.GiveBack) domain.ExecutionID { return g.ID })
	return batchValue(ctx, s.core, "give back offers", run.Request{IDs: ids}, func(b *Batch) ([]store.OfferResult, error) { return b.GiveBack(items) })
}

// RecordWaits passes over executions that are not due any more. One that needs
// its job's slot enters the queue for it: a later run of the job that finds an
// instance first, on this node or another, must not overtake it.
func (s *Executions) RecordWaits(ctx context.Context, waits []store.Wait) (covered []domain.Execution, err error) {
	ids := domain.Collect(waits, func(w *store.Wait) domain.ExecutionID { return w.ID })
	return batchValue(ctx, s.core, "record waits", run.Request{Kind: run.Waits, IDs: ids}, func(b *Batch) ([]domain.Execution, error) { return b.Wait(waits) })
}

// RecordStarts bounds the executor's clock by ours, as the result does.
func (s *Executions) RecordStarts(ctx context.Context, starts []store.Start) error {
	ids := domain.Collect(starts, func(st *store.Start) domain.ExecutionID { return st.ID })
	return s.RunBatch(ctx, "record starts", run.Request{IDs: ids}, func(b *Batch) error {
		b.Start(starts)
		return nil
	})
}

// RequestCancel wakes who waits behind an execution that ends by it.
func (s *Executions) RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error) {
	b, err := db.ValueChecked(ctx, s.DB, "cancel execution", s.landed, func(t *db.Tx) (*Batch, error) {
		return s.move(t, run.Request{Kind: run.Ends, IDs: []domain.ExecutionID{id}}, func(b *Batch) error {
			m, err := b.RequestCancel(tenant, id, reason, message)
			if err == nil && m == nil {
				err = db.NotFound("execution", id)
			}
			return err
		})
	})
	if err != nil {
		return domain.Execution{}, err
	}
	return b.Moves[id].E, nil
}

// FinishAttempts writes results, releases slots, wakes who waits for them,
// archives attempts that are repeated and writes alert events, in one
// transaction.
func (s *Executions) FinishAttempts(ctx context.Context, reports []store.AttemptReport) ([]store.FinishResult, error) {
	return batchValue(ctx, s.core, "finish attempts", run.FinishRequest(reports), func(b *Batch) ([]store.FinishResult, error) { return b.Finish(reports) })
}
