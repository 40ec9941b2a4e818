package engine

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
)

// successesFor is the age at which a node reads the wishes again. A new wish takes effect so
// much later.
const successesFor = 2 * time.Second

// SuccessRules say which runs of a tenant are told when they have succeeded.
type SuccessRules interface {
	SuccessWish(executor domain.ExecutorID, job domain.JobID, labels map[string]string) domain.SuccessWish
}

// ReadSuccesses reads what a subscriber of the outbox wants to hear of runs that have
// succeeded, by tenant.
type ReadSuccesses func(ctx context.Context, q db.Querier, d db.Dialect) (map[domain.TenantID]SuccessRules, error)

// successes is the snapshot of these wishes that a node has. Without any, a node pays for
// one read in successesFor.
type successes struct {
	read ReadSuccesses // fixed after construction; nil: there is no subscriber
	snapshot[map[domain.TenantID]SuccessRules]
}

func (c *successes) load(ctx context.Context, q db.Querier, d db.Dialect) (map[domain.TenantID]SuccessRules, error) {
	if c.read == nil {
		return nil, nil
	}
	return c.snapshot.load(successesFor, func() (map[domain.TenantID]SuccessRules, error) { return c.read(ctx, q, d) })
}

// ForgetSuccesses makes the next run that succeeds read the wishes again: one has changed.
func (s *Admission) ForgetSuccesses() { s.success.forget() }

// SuccessWish implements run.Source.
func (b *Batch) SuccessWish(m *run.Move) domain.SuccessWish {
	of, err := b.s.success.load(b.Tx.Ctx, b.Tx.Conn, b.Tx.Dialect)
	if err != nil {
		b.unread = err
		return domain.SuccessUnwanted
	}
	rules := of[m.E.TenantID]
	if rules == nil || m.Spec == nil {
		return domain.SuccessUnwanted
	}
	return rules.SuccessWish(m.E.Executor, m.E.JobID, m.Spec.Labels)
}
