package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
)

const (
	// archiveJobs share the finished runs among themselves.
	archiveJobs = 10_000
	// archiveSpan is the time in which they ran, until a day ago.
	archiveSpan = 28 * 24 * time.Hour
)

// loadRows fills in finished runs, in the order in which a month of work would
// have written them: all jobs of one fire time, then the next one. They belong
// to another executor of the same tenant.
func (f *fleet) loadRows(ctx context.Context, n int, r *Result) error {
	began := time.Now()
	archive := domain.Executor{ID: domain.ExecutorID(f.ids.Next()), TenantID: f.tenant, Name: "archive", CreatedAt: began.UTC()}
	if err := f.store.CreateExecutor(ctx, archive); err != nil {
		return err
	}
	jobs, err := f.load(ctx, archive.ID, min(archiveJobs, n), func(i int) domain.JobSpec {
		return ticking(number("archive", i), handlerOnce, 24*time.Hour, began.Truncate(time.Second).UTC())
	}, notYet)
	if err != nil {
		return err
	}
	h := newArchive(f, archive.ID, jobs, n)
	group, groupCtx := errgroup.WithContext(ctx)
	for range 4 {
		group.Go(func() error {
			for {
				rows := h.next()
				if len(rows) == 0 {
					return nil
				}
				if err := benchdata.LoadExecutions(groupCtx, f.store.DB, rows); err != nil {
					return err
				}
			}
		})
	}
	err = group.Wait()
	r.Rows, r.Jobs = n, r.Jobs+len(jobs)
	r.note(f.b, "loading %d finished runs took %.0f s", n, time.Since(began).Seconds())
	return err
}

// archive makes finished runs. Safe for concurrent use.
type archive struct {
	f        *fleet
	executor domain.ExecutorID
	jobs     []domain.JobID
	first    time.Time
	every    time.Duration
	total    int

	mu   sync.Mutex
	made int              // guarded by mu
	at   time.Time        // guarded by mu: of the runs being made, which their ids tell too
	ids  *domain.IDSource // used under mu
}

func newArchive(f *fleet, executor domain.ExecutorID, jobs []domain.JobID, total int) *archive {
	fires := (total + len(jobs) - 1) / len(jobs)
	a := &archive{
		f: f, executor: executor, jobs: jobs, total: total, every: (archiveSpan / time.Duration(fires)).Truncate(time.Second),
		first: time.Now().Add(-archiveSpan - 24*time.Hour).Truncate(time.Second).UTC(),
	}
	a.ids = domain.NewIDSource(loaderNode, func() time.Time { return a.at })
	return a
}

// next returns the next thousand runs or less, none at the end.
func (a *archive) next() []domain.Execution {
	a.mu.Lock()
	defer a.mu.Unlock()
	rows := make([]domain.Execution, 0, 1000)
	for len(rows) < cap(rows) && a.made < a.total {
		job := a.jobs[a.made%len(a.jobs)]
		a.at = a.first.Add(time.Duration(a.made/len(a.jobs)) * a.every)
		rows = append(rows, a.run(job, a.at))
		a.made++
	}
	return rows
}

// run is a finished run as the path would have left it; two in a hundred failed.
func (a *archive) run(job domain.JobID, at time.Time) domain.Execution {
	e := domain.Execution{
		ID: domain.ExecutionID(a.ids.Next()), TenantID: a.f.tenant, JobID: job, Revision: 1, Executor: a.executor,
		Partition: domain.PartitionOf(job), Cause: domain.CauseSchedule, FireAt: at, State: domain.Succeeded,
		Fence: 1, Attempt: 1, MaxAttempts: 1, NotBefore: at, ExpireAt: at.Add(domain.DefaultDispatchTimeout), Node: 1, Instance: 1,
		PlannedAt: at.Add(-3 * time.Second), OfferedAt: at.Add(2 * time.Millisecond), GrantedAt: at.Add(5 * time.Millisecond),
		StartedAt: at.Add(7 * time.Millisecond), FinishedAt: at.Add(80 * time.Millisecond),
	}
	if a.made%50 == 0 {
		e.State, e.ErrorKind, e.Error = domain.Failed, "error", "the partner's server answered 503 Service Unavailable"
	}
	return e
}
