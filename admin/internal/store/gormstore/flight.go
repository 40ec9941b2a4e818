package gormstore

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
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
	parent   domain.ExecutionID // of a part; 0 = none
}

func (r ref) spec() revisionKey { return revisionKey{r.job, r.revision} }

func refOf(r *executionRow) ref {
	return ref{
		id: domain.ExecutionID(r.id), tenant: domain.TenantID(r.tenantID), job: domain.JobID(r.jobID),
		revision: r.revision, executor: domain.ExecutorID(r.executorID), fireAt: r.fireAt, parent: domain.ExecutionID(r.parentID),
	}
}

// flight is what this node knows of an execution that has not ended.
type flight struct {
	ref ref
	// row is the whole row as this node wrote or locked it last, nil when it
	// does not know it. Whether it is still so, the version tells that the
	// next update demands. Nobody changes it.
	row *executionRow
}

// flights remembers executions on their way: the node that planned one usually
// offers, grants and ends it too, and then needs not read it. It is bounded;
// what falls out is read and locked instead.
type flights struct {
	entries *lru.Cache[domain.ExecutionID, flight]
	// refs are those of executions that have ended, or that others work on.
	refs *lru.Cache[domain.ExecutionID, ref]
	// crowded are jobs whose slot was found taken or queued for, with the
	// instant until which that is remembered: their slots are locked and read.
	crowded *lru.Cache[domain.JobID, time.Time]
	// believed counts batches that were written on belief alone, stale those
	// whose belief turned out to be wrong.
	believed, stale atomic.Int64
}

const (
	// maxFlights is what may wait in a node's memory (scheduler.MaxWaitingAll);
	// about 600 bytes each. With fewer, an overload would push out just what is
	// offered next.
	maxFlights = 200_000
	maxRefs    = 16384
	// crowdedFor is how long a job's slot is read after it was found crowded.
	crowdedFor = 10 * time.Second
)

func newFlights() *flights {
	return &flights{
		entries: newCache[domain.ExecutionID, flight](maxFlights),
		refs:    newCache[domain.ExecutionID, ref](maxRefs),
		crowded: newCache[domain.JobID, time.Time](maxFlights),
	}
}

func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // only for a size below 1
	}
	return cache
}

// remember takes a row as it is in the database now.
func (f *flights) remember(r *executionRow) {
	id := domain.ExecutionID(r.id)
	if domain.State(r.state).Terminal() {
		f.entries.Remove(id)
		f.refs.Add(id, refOf(r))
		return
	}
	f.entries.Add(id, flight{ref: refOf(r), row: r})
}

// forget forgets an execution altogether.
func (f *flights) forget(id domain.ExecutionID) {
	f.entries.Remove(id)
	f.refs.Remove(id)
}

// doubt forgets rows, but not what never changes in them.
func (f *flights) doubt(ids []domain.ExecutionID) {
	for _, id := range ids {
		if known, ok := f.entries.Peek(id); ok && known.row != nil {
			f.entries.Add(id, flight{ref: known.ref})
		}
	}
}

// doubtChanged forgets the rows that are not as this node believes any more; it
// reports whether there are any.
func (s *core) doubtChanged(ctx context.Context, ids []domain.ExecutionID) bool {
	believed := map[domain.ExecutionID]int64{}
	for _, id := range ids {
		if known, ok := s.flights.entries.Peek(id); ok && known.row != nil {
			believed[id] = known.row.version
		}
	}
	if len(believed) == 0 {
		return false
	}
	err := s.LookRows(ctx, "find changed executions", func(rows *sql.Rows) error {
		var id domain.ExecutionID
		var version int64
		err := rows.Scan(&id, &version)
		if believed[id] == version {
			delete(believed, id)
		}
		return err
	}, "SELECT id, version FROM executions"+s.Dialect.ByPrimary()+" WHERE id IN ("+db.IDList(slices.Sorted(maps.Keys(believed)))+")")
	if err != nil {
		return false
	}
	s.flights.doubt(slices.Collect(maps.Keys(believed)))
	return len(believed) > 0
}

// load returns what is known of the ids that exist (or existed: a planned
// execution may have been taken back).
func (f *flights) load(ctx context.Context, q db.Querier, ids []domain.ExecutionID) (map[domain.ExecutionID]flight, error) {
	found := make(map[domain.ExecutionID]flight, len(ids))
	var missing []domain.ExecutionID
	for _, id := range ids {
		if known, ok := f.entries.Get(id); ok {
			found[id] = known
		} else if r, ok := f.refs.Get(id); ok {
			found[id] = flight{ref: r}
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	err := db.Query(ctx, q, func(rows *sql.Rows) error {
		var r ref
		if err := rows.Scan(&r.id, &r.tenant, &r.job, &r.revision, &r.executor, &r.fireAt, &r.parent); err != nil {
			return err
		}
		found[r.id] = flight{ref: r}
		f.refs.Add(r.id, r)
		return nil
	}, "SELECT id, tenant_id, job_id, revision, executor_id, fire_at, parent_id FROM executions WHERE id IN ("+db.IDList(missing)+")")
	return found, err
}

// crowd notes that a job's slot has to be read for a while.
func (f *flights) crowd(job domain.JobID) { f.crowded.Add(job, time.Now().Add(crowdedFor)) }

func (f *flights) isCrowded(job domain.JobID) bool {
	until, ok := f.crowded.Get(job)
	return ok && time.Now().Before(until)
}
