package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// scale measures steady load and throughput while one thing at a time grows.
// The first variant, one node and nothing else in the tables, is what the
// others are to be compared with.
func (b *bench) scale() (parts []part) {
	nodes, jobs, rows := b.scaleSizes()
	for _, n := range nodes {
		variant := fmt.Sprintf("admin nodes: %d", n)
		parts = append(parts, b.scaleOf(variant, n, 0, nil))
	}
	// What has a goal comes next to what it is compared with: the machine changes.
	runs := b.scaleOf(fmt.Sprintf("%d finished runs", rows), 1, time.Duration(rows)*loadRow, func(ctx context.Context, f *fleet, r *Result) error {
		if err := f.loadRows(ctx, rows, r); err != nil {
			return err
		}
		if err := f.settle(ctx, r); err != nil {
			return err
		}
		return f.reads(ctx, r)
	})
	parts = slices.Insert(parts, 1, runs)
	for _, n := range jobs {
		parts = append(parts, b.scaleOf(fmt.Sprintf("%d enabled jobs", n), 1, time.Duration(n)*loadJob, func(ctx context.Context, f *fleet, r *Result) error {
			if err := f.loadIdle(ctx, n, r); err != nil {
				return err
			}
			return f.settle(ctx, r)
		}))
	}
	return parts
}

// What loading one job, and one finished run, usually takes.
const (
	loadJob = 90 * time.Microsecond
	loadRow = 28 * time.Microsecond
)

// scaleSizes are what options and the database leave of the usual sizes.
func (b *bench) scaleSizes() (nodes, jobs []int, rows int) {
	nodes, jobs, rows = b.o.Admins, b.o.Jobs, b.o.Rows
	if len(nodes) == 0 {
		nodes = []int{1, 2, 4}
	}
	if b.o.Databases[0] == SQLite {
		nodes = nodes[:1] // one node is all that a file of its own can serve
	}
	if len(jobs) == 0 {
		jobs = []int{10_000, 100_000, 1_000_000}
	}
	if rows == 0 {
		rows = 10_000_000
	}
	if b.o.Quick {
		nodes, jobs = nodes[:min(2, len(nodes))], jobs[:1]
		if b.o.Rows == 0 {
			rows = 200_000
		}
	}
	return nodes, jobs, rows
}

// scaleOf measures both on one fleet: two results.
func (b *bench) scaleOf(variant string, admins int, filling time.Duration, fill func(context.Context, *fleet, *Result) error) part {
	kind := b.o.Databases[0]
	run := func(ctx context.Context, r *Result) error {
		return b.withFleet(ctx, kind, admins, func(f *fleet) error {
			if fill != nil {
				if err := fill(ctx, f, r); err != nil {
					return err
				}
			}
			steady := *r
			steady.Variant = variant + ", steady"
			began := time.Now()
			err := f.steady(ctx, scaleWindow, &steady)
			steady.Took = seconds(time.Since(began))
			b.add(steady, err)
			r.Notes = nil // told with the first
			return f.throughput(ctx, handlerOnce, r)
		})
	}
	return part{
		result: Result{Scenario: "scale", Variant: variant + ", throughput", Database: kind, Admins: admins},
		usual:  filling + b.quickOr(60*time.Second, 95*time.Second),
		run:    run,
	}
}

// scaleWindow is shorter than steady's own: there are seven of them.
const scaleWindow = 20 * time.Second

// loadIdle fills in enabled jobs that fire once a day, the first of them in an
// hour.
func (f *fleet) loadIdle(ctx context.Context, n int, r *Result) error {
	began := time.Now()
	anchor := began.Truncate(time.Second).UTC().Add(time.Hour)
	at := func(i int) time.Time { return anchor.Add(time.Duration(i%82_000) * time.Second) }
	_, err := f.load(ctx, f.executor, n, func(i int) domain.JobSpec {
		return ticking(number("daily", i), handlerOnce, 24*time.Hour, at(i))
	}, at)
	r.Jobs += n
	r.note(f.b, "loading %d enabled jobs took %.0f s", n, time.Since(began).Seconds())
	return err
}

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
				if err := f.store.LoadExecutions(groupCtx, rows); err != nil {
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

// note keeps a remark and tells it.
func (r *Result) note(b *bench, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.Notes = append(r.Notes, text)
	b.o.Say("  %s", text)
}
