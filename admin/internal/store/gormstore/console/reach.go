package console

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// within adds the condition of a bounded reach to a statement.
func within(g *gorm.DB, column string, r domain.Reach) *gorm.DB {
	if !r.Bounded() {
		return g
	}
	return g.Where(db.InReach(column, r))
}

// FindExecutorIDs goes by the unique index of names.
func (s *Executors) FindExecutorIDs(ctx context.Context, tenant domain.TenantID, names []string) ([]domain.ExecutorID, error) {
	if len(names) == 0 {
		return nil, nil
	}
	rows, err := db.FindAll[record.ExecutorRow](ctx, s.DB, "find executors by name", "id", "tenant_id = ? AND name IN ? AND "+record.LivingExecutor, int64(tenant), names)
	return domain.Collect(rows, func(r *record.ExecutorRow) domain.ExecutorID { return domain.ExecutorID(r.ID) }), err
}

// reachTables are where objects have their executors, with the alias o. All are found by
// their primary key.
var reachTables = map[domain.ReachNoun]struct{ from, executor string }{
	domain.ReachExecutor: {"executors AS o", "o.id"},
	domain.ReachInstance: {"instances AS o", "o.executor_id"},
	domain.ReachJob:      {"jobs AS o", "o.executor_id"},
	domain.ReachRun:      {"executions AS o", "o.executor_id"},
	domain.ReachBackfill: {"backfills AS o JOIN jobs AS j ON j.id = o.job_id", "j.executor_id"},
	domain.ReachProposal: {"job_proposals AS o", "o.executor_id"},
}

func (s *Executors) InReach(ctx context.Context, p domain.ReachQuery) (bool, error) {
	at, ok := reachTables[p.Noun]
	if !ok {
		return false, domain.Errorf(domain.CodeInvalid, "no executor of a %s is known", p.Noun)
	}
	found, err := db.LookColumn[int64](ctx, s.DB, "look whether it is in reach",
		fmt.Sprintf("SELECT 1 FROM %s WHERE o.id = %d AND o.tenant_id = %d AND %s", at.from, p.ID, int64(p.Tenant), db.InReach(at.executor, p.Within)))
	return len(found) > 0, err
}
