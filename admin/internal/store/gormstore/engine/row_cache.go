package engine

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/bytecache"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/run"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// revisionOf is the revision of a job that an execution follows.
func revisionOf(f run.Fact) record.RevisionKey {
	return record.RevisionKey{Job: f.Job, Revision: f.Revision}
}

func factOf(r *record.ExecutionRow) run.Fact {
	return run.Fact{
		ID: domain.ExecutionID(r.ID), Tenant: domain.TenantID(r.TenantID), Job: domain.JobID(r.JobID),
		Revision: r.Revision, Executor: domain.ExecutorID(r.ExecutorID), FireAt: r.FireAt, Parent: domain.ExecutionID(r.ParentID),
	}
}

// cachedRun is what this node knows of an execution that has not ended.
type cachedRun struct {
	ref run.Fact // without its Spec
	// row is the whole row as this node wrote or locked it last, nil when it
	// does not know it. Whether it is still so, the version tells that the
	// next update demands. Nobody changes it.
	row *record.ExecutionRow
}

// rowCache remembers executions on their way: the node that planned one usually
// offers, grants and ends it too, and then needs not read it. It is bounded;
// what falls out is read and locked instead.
type rowCache struct {
	Entries *bytecache.Cache[domain.ExecutionID, cachedRun]
	// Refs are those of executions that have ended, or that others work on.
	Refs *lru.Cache[domain.ExecutionID, run.Fact]
	// contended are jobs whose slot was found taken or queued for, with the
	// instant until which that is remembered: their slots are locked and read.
	contended *lru.Cache[domain.JobID, time.Time]
	// Hits counts batches that were written from the cache, Stale those whose
	// rows had changed since.
	Hits, Stale atomic.Int64
}

const (
	// maxCachedRows is what may wait in a node's memory (scheduler.MaxWaitingAll);
	// about 600 bytes each, and their texts. With fewer, an overload would push out just
	// what is offered next.
	maxCachedRows  = 200_000
	cachedRowSize  = 600
	cachedRowBytes = 160 << 20
	maxRefs        = 16384
	// contendedFor is how long a job's slot is read after it was found contended.
	contendedFor = 10 * time.Second
)

func newRowCache() *rowCache {
	return &rowCache{
		Entries:   bytecache.New[domain.ExecutionID, cachedRun](maxCachedRows, cachedRowBytes),
		Refs:      record.NewCache[domain.ExecutionID, run.Fact](maxRefs),
		contended: record.NewCache[domain.JobID, time.Time](maxCachedRows),
	}
}

// remember takes a row as it is in the database now.
func (f *rowCache) remember(r *record.ExecutionRow) {
	id := domain.ExecutionID(r.ID)
	if domain.State(r.State).Terminal() {
		f.Entries.Remove(id)
		f.Refs.Add(id, factOf(r))
		return
	}
	f.Entries.Add(id, cachedRun{ref: factOf(r), row: r}, domain.TenantID(r.TenantID), cachedRowSize+r.TextSize())
}

// forget forgets an execution altogether.
func (f *rowCache) forget(id domain.ExecutionID) {
	f.Entries.Remove(id)
	f.Refs.Remove(id)
}

// invalidate forgets rows, but not what never changes in them.
func (f *rowCache) invalidate(ids []domain.ExecutionID) {
	for _, id := range ids {
		if known, ok := f.Entries.Peek(id); ok && known.row != nil {
			f.Entries.Add(id, cachedRun{ref: known.ref}, known.ref.Tenant, cachedRowSize)
		}
	}
}

// invalidateChanged forgets the rows that have changed since they were cached; it
// reports whether there are any.
func (s *core) invalidateChanged(ctx context.Context, ids []domain.ExecutionID) bool {
	versions := map[domain.ExecutionID]int64{}
	for _, id := range ids {
		if known, ok := s.Rows.Entries.Peek(id); ok && known.row != nil {
			versions[id] = known.row.Version
		}
	}
	if len(versions) == 0 {
		return false
	}
	err := s.LookRows(ctx, "find changed executions", func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var version int64
		err := rows.Scan(&id, &version)
		if versions[id] == version {
			delete(versions, id)
		}
		return err
	}, "SELECT id, version FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(slices.Sorted(maps.Keys(versions)))+")")
	if err != nil {
		return false
	}
	s.Rows.invalidate(slices.Collect(maps.Keys(versions)))
	return len(versions) > 0
}

// load returns what is known of the ids that exist (or existed: a planned
// execution may have been taken back).
func (f *rowCache) load(ctx context.Context, q db.Querier, ids []domain.ExecutionID) (map[domain.ExecutionID]cachedRun, error) {
	found := make(map[domain.ExecutionID]cachedRun, len(ids))
	var missing []domain.ExecutionID
	for _, id := range ids {
		if known, ok := f.Entries.Get(id); ok {
			found[id] = known
		} else if r, ok := f.Refs.Get(id); ok {
			found[id] = cachedRun{ref: r}
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	facts, err := db.Select(ctx, q, func(r *run.Fact) []any {
		return []any{&r.ID, &r.Tenant, &r.Job, &r.Revision, &r.Executor, &r.FireAt, &r.Parent}
	},
		"SELECT id, tenant_id, job_id, revision, executor_id, fire_at, parent_id FROM executions WHERE id IN ("+db.IDList(missing)+")")
	for _, r := range facts {
		found[r.ID] = cachedRun{ref: r}
		f.Refs.Add(r.ID, r)
	}
	return found, err
}

// noteContended notes that a job's slot has to be read for a while.
func (f *rowCache) noteContended(job domain.JobID) {
	f.contended.Add(job, time.Now().Add(contendedFor))
}

func (f *rowCache) isContended(job domain.JobID) bool {
	until, ok := f.contended.Get(job)
	return ok && time.Now().Before(until)
}
