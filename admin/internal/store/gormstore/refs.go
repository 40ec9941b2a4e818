package gormstore

import (
	"context"
	"database/sql"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// ref is what never changes in an execution. It is known without a lock, so
// that slots can be locked before executions.
type ref struct {
	id       domain.ExecutionID
	tenant   domain.TenantID
	job      domain.JobID
	revision int64
	executor domain.ExecutorID
	fireAt   int64
}

func (r ref) spec() revisionKey { return revisionKey{r.job, r.revision} }

// refCache remembers refs of recent executions: the node that planned one
// usually offers and ends it too.
type refCache struct {
	entries *lru.Cache[domain.ExecutionID, ref]
}

func newRefCache(size int) *refCache {
	entries, err := lru.New[domain.ExecutionID, ref](size)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return &refCache{entries: entries}
}

func (c *refCache) remember(e *domain.Execution) {
	c.entries.Add(e.ID, ref{id: e.ID, tenant: e.TenantID, job: e.JobID, revision: e.Revision, executor: e.Executor, fireAt: millis(e.FireAt)})
}

// load returns the refs of the ids that exist (or existed: a planned execution
// may have been taken back).
func (c *refCache) load(ctx context.Context, q querier, ids []domain.ExecutionID) (map[domain.ExecutionID]ref, error) {
	found := make(map[domain.ExecutionID]ref, len(ids))
	var missing []domain.ExecutionID
	for _, id := range ids {
		if r, ok := c.entries.Get(id); ok {
			found[id] = r
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	err := query(ctx, q, func(rows *sql.Rows) error {
		var r ref
		if err := rows.Scan(&r.id, &r.tenant, &r.job, &r.revision, &r.executor, &r.fireAt); err != nil {
			return err
		}
		c.entries.Add(r.id, r)
		found[r.id] = r
		return nil
	}, "SELECT id, tenant_id, job_id, revision, executor_id, fire_at FROM executions WHERE id IN ("+idList(missing)+")")
	return found, err
}
