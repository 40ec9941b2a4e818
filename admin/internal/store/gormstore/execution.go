package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
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
func (s *Executions) CreateExecution(ctx context.Context, e domain.Execution) (run domain.Execution, created bool, err error) {
	if len([]rune(e.OccurrenceKey)) > nameSize {
		return run, false, domain.Invalid("idempotency key", "is longer than %d characters", nameSize)
	}
	err = s.RunRepeatable(ctx, "create execution", func(t *db.Tx) error {
		run, created = domain.Execution{}, false
		now, err := s.specs.fillFromJob(t, &e)
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
		result := t.Gorm.Clauses(clause.OnConflict{DoNothing: true}).Create(&key)
		if result.Error != nil {
			return result.Error
		}
		err = t.Gorm.Where("tenant_id = ? AND job_id = ? AND request_key = ?", key.TenantID, key.JobID, key.RequestKey).Take(&key).Error
		if err != nil {
			return err
		}
		if found, err := findExecution(t, e.TenantID, domain.ExecutionID(key.ExecutionID)); err != nil || found != nil {
			if found != nil {
				// Ours, when the answer to an earlier commit was lost.
				run, created = *found, found.ID == e.ID
			}
			return err
		}
		row := toExecutionRow(&e)
		if err := executionTable.Insert(t, []*executionRow{row}); err != nil {
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
func (c *specCache) fillFromJob(t *db.Tx, e *domain.Execution) (now time.Time, err error) {
	var state, part, executor, revision, at int64
	row := t.SQL.QueryRowContext(t.Ctx, "SELECT j.state, tr.part, tr.executor_id, tr.revision, "+t.Dialect.Clock()+
		" FROM triggers AS tr JOIN jobs AS j ON j.id = tr.job_id WHERE tr.job_id = ? AND tr.tenant_id = ?"+t.Dialect.ForShare(),
		int64(e.JobID), int64(e.TenantID))
	if err := row.Scan(&state, &part, &executor, &revision, &at); err == sql.ErrNoRows || err == nil && domain.JobState(state) == domain.JobDeleted {
		return now, db.NotFound("job", e.JobID)
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
	specs, err := c.load(t.Ctx, t.Conn, []revisionKey{{e.JobID, e.Revision}})
	if err != nil {
		return now, err
	}
	if len(specs) == 0 {
		return now, domain.Errorf(domain.CodeNotFound, "job %s has no revision %d", e.JobID, e.Revision)
	}
	e.Priority = specs[revisionKey{e.JobID, e.Revision}].spec.Priority
	return db.Instant(at), nil
}

func findExecution(t *db.Tx, tenant domain.TenantID, id domain.ExecutionID) (*domain.Execution, error) {
	rows, err := executionTable.SelectRows(t, "SELECT "+executionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	e := rows[0].execution()
	return &e, nil
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
	err := s.runBatch(ctx, "offer executions", ids, loadOptions{slots: true, offers: true}, func(b *batch) (err error) {
		if results, err = b.Offer(offers); err != nil {
			return err
		}
		if err := b.save(); err != nil {
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
		return s.move(ctx, "grant offers", ids, func(b *batch) (err error) {
			results, err = b.Grant(grants)
			return err
		}, func(b *batch) {
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
func (s *core) move(ctx context.Context, step string, ids []domain.ExecutionID, decide func(*batch) error, after func(*batch)) error {
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
func (s *Executions) GiveBackOffers(ctx context.Context, items []store.GiveBack) ([]store.OfferResult, error) {
	if len(items) == 0 {
		return nil, nil
	}
	ids := domain.Collect(items, func(g *store.GiveBack) domain.ExecutionID { return g.ID })
	var results []store.OfferResult
	err := s.move(ctx, "give back offers", ids, func(b *batch) (err error) {
		results, err = b.GiveBack(items)
		return err
	}, func(b *batch) {
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
	err = s.runBatch(ctx, "record waits", ids, loadOptions{slots: true, readSlots: true, offers: true}, func(b *batch) (err error) {
		if covered, err = b.Wait(waits); err != nil {
			return err
		}
		if err := b.save(); err != nil {
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
	return s.move(ctx, "record starts", ids, func(b *batch) error {
		b.Start(starts)
		return nil
	}, nil)
}

// RequestCancel wakes who waits behind an execution that ends by it.
func (s *Executions) RequestCancel(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID, reason domain.Reason, message string) (domain.Execution, error) {
	var b *batch
	var cancelled domain.Execution
	err := s.RunChecked(ctx, "cancel execution", s.landed(&b), func(t *db.Tx) (err error) {
		if b, err = s.newBatch(t, []domain.ExecutionID{id}, loadOptions{slots: true, queue: true}); err != nil {
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
		if err := b.save(); err != nil {
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

// executionByID reads one execution outside of a transaction.
func (s *Runs) executionByID(ctx context.Context, q db.Querier, tenant domain.TenantID, id domain.ExecutionID) (*executionRow, error) {
	var out *executionRow
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		out = &executionRow{}
		return rows.Scan(executionTable.Targets(out)...)
	}, "SELECT "+executionColumns+" FROM executions WHERE id = ? AND tenant_id = ?", int64(id), int64(tenant))
	if err != nil {
		return nil, fmt.Errorf("read execution: %w", err)
	}
	return out, nil
}
