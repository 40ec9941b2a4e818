package bulk_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon"
	"github.com/carillon-sched/carillon/admin/internal/addon/bulk"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/gormtest"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/internal/timing"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// fixture is a tenant of its own in a database.
type fixture struct {
	t        *testing.T
	ctx      context.Context
	s        *gormstore.Store
	table    bulk.Table
	tenant   domain.TenantID
	executor domain.ExecutorID
	runs     *fakeRuns
}

func (f *fixture) ok(err error) {
	f.t.Helper()
	require.NoError(f.t, err)
}

// onBoth runs a test on SQLite and on MariaDB.
func onBoth(t *testing.T, test func(*testing.T, *fixture)) {
	for driver, place := range map[string]func(testing.TB) string{
		"sqlite": gormtest.SQLite, "mysql": func(tb testing.TB) string { return testenv.Database(tb) },
	} {
		t.Run(driver, func(t *testing.T) { test(t, newFixture(t, driver, place(t))) })
	}
}

func newFixture(t *testing.T, driver, place string) *fixture {
	o := gormstore.Options{Driver: driver, DSN: place, NewID: storetest.NewID, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, gormstore.Migrate(t.Context(), o))
	s, err := gormstore.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.AuditMark.Set(func([]byte) string { return "mark" })
	f := &fixture{t: t, ctx: t.Context(), s: s, table: bulk.Table{DB: s.DB}, tenant: domain.TenantID(storetest.NewID()), runs: &fakeRuns{s: s}}
	f.ok(s.CreateTenant(f.ctx, domain.Tenant{ID: f.tenant, Name: "tenant " + f.tenant.String(), CreatedAt: time.Now()}))
	e := domain.Executor{ID: domain.ExecutorID(storetest.NewID()), TenantID: f.tenant, Name: "shop", CreatedAt: time.Now()}
	f.ok(s.CreateExecutor(f.ctx, e))
	f.executor = e.ID
	return f
}

// selection has the seams that a node has, but for those of runs.
func (f *fixture) selection() bulk.Selection {
	return bulk.Selection{Table: f.table, Jobs: addon.Jobs{
		ListIDs: f.s.ListJobIDs, Count: f.s.CountJobIDs, Match: f.s.MatchJobs, Lock: f.s.LockJobs, Pause: f.s.PauseLocked,
		Next:    timing.Next,
		Changed: func() {},
	}, Runs: f.runs.seams()}
}

func (f *fixture) worker() *bulk.Worker {
	return bulk.NewWorker(f.selection(), slog.New(slog.DiscardHandler))
}

// jobs makes jobs that are called job-000 and so on. change may change each of them.
func (f *fixture) jobs(n int, change ...func(i int, j *domain.Job)) []domain.JobID {
	f.t.Helper()
	var all []store.NewJob
	var ids []domain.JobID
	for i := range n {
		id := domain.JobID(storetest.NewID())
		j := domain.Job{
			ID: id, TenantID: f.tenant, Executor: f.executor, Partition: domain.PartitionOf(id), State: domain.JobEnabled, Source: domain.SourceConsole, Revision: 1,
			Spec: domain.JobSpec{
				Name: fmt.Sprintf("job-%03d", i), Handler: "work", Labels: map[string]string{"team": "pay"}, Owner: domain.Owner{Name: "old"},
				Schedule: domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "0 0 1 1 *", Zone: "UTC"}, Blocking: domain.BlockSerial, Routing: domain.RouteRoundRobin,
			},
			CreatedAt: time.Now(), UpdatedAt: time.Now(), CreatedBy: "anna", UpdatedBy: "anna",
		}
		for _, c := range change {
			c(i, &j)
		}
		all, ids = append(all, store.NewJob{Job: j, Next: timing.Next}), append(ids, id)
	}
	for _, err := range f.s.CreateJobs(f.ctx, f.tenant, all) {
		f.ok(err)
	}
	return ids
}

// person is who asks.
var person = bulk.Person{Kind: auth.KindUser, Name: "anna"}

// operation makes an operation of anna.
func (f *fixture) operation(o bulk.Order) bulk.Operation {
	f.t.Helper()
	if o.By == (bulk.Person{}) {
		o.By = person
	}
	made, err := f.table.Create(f.ctx, bulk.Operation{ID: bulk.ID(storetest.NewID()), Tenant: f.tenant, Order: o, State: bulk.Running})
	f.ok(err)
	return made
}

// recorded are the entries of the audit log that items of an operation have.
func (f *fixture) recorded(o bulk.Operation) (out []string) {
	f.t.Helper()
	out, err := db.LookColumn[string](f.ctx, f.s.DB, "list entries", "SELECT CONCAT(actor, ' ', operation, ' ', kind, ' ', object_id, ' ', object_name) FROM audit_log WHERE tenant_id = ? AND after_text LIKE ? ORDER BY object_id",
		int64(f.tenant), `%"bulk":"`+o.ID.String()+`"%`)
	f.ok(err)
	return out
}

// work lets a worker work until nothing is left, and returns the operation.
func (f *fixture) work(o bulk.Operation) bulk.Operation {
	f.t.Helper()
	w := f.worker()
	for more := true; more; {
		var err error
		more, err = w.Work(f.ctx)
		f.ok(err)
	}
	o, err := f.table.Find(f.ctx, f.tenant, o.ID)
	f.ok(err)
	return o
}

func (f *fixture) answers(o bulk.Operation) []bulk.Item {
	f.t.Helper()
	items, err := f.table.Items(f.ctx, f.tenant, o.ID, "", 0, 1000)
	f.ok(err)
	return items
}

func (f *fixture) job(id domain.JobID) store.JobView {
	f.t.Helper()
	v, err := f.s.FindJob(f.ctx, f.tenant, id)
	f.ok(err)
	return v
}

// fakeRuns begins, repeats and cancels runs as the API does, by their keys.
type fakeRuns struct {
	s    *gormstore.Store
	mu   sync.Mutex
	made map[string]string          // guarded by mu: who has made a run, by key and item
	acts int                        // guarded by mu: calls
	stop func(acts int)             // before a call is counted
	fail map[domain.JobID]error     // of jobs
	list []domain.Execution         // the newest first
	gone map[domain.ExecutionID]int // guarded by mu: how often each was cancelled
}

func (r *fakeRuns) act(key, by string, item int64) (domain.ExecutionID, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acts++
	if r.stop != nil {
		r.stop(r.acts)
	}
	if err := r.fail[domain.JobID(item)]; err != nil {
		return 0, "", err
	}
	if r.made == nil {
		r.made = map[string]string{}
	}
	key = fmt.Sprintf("%s/%d", key, item)
	if r.made[key] == "" {
		r.made[key] = by
	}
	return domain.ExecutionID(item + 1), r.made[key], nil
}

func (r *fakeRuns) seams() addon.Runs {
	return addon.Runs{
		List: func(_ context.Context, p store.ListExecutionsParams) (out []domain.Execution, err error) {
			for _, e := range r.list {
				if (p.Before == 0 || e.ID < p.Before) && len(out) < p.Limit {
					out = append(out, e)
				}
			}
			return out, nil
		},
		Begin: func(_ context.Context, a addon.Asked, job domain.JobID) (domain.ExecutionID, string, error) {
			return r.act(a.Key, a.By, int64(job))
		},
		Retry: func(_ context.Context, a addon.Asked, run domain.ExecutionID) (domain.ExecutionID, string, error) {
			return r.act(a.Key, a.By, int64(run))
		},
	}
}
