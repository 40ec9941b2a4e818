package gormstore

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
)

// Loaded jobs must be indistinguishable from created ones: figures measured
// with them are to hold for real ones.
func TestLoadedJobsAreAsCreatedOnes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := storetest.NewWorld(t, s)
			at := time.UnixMilli(1_800_000_000_000).UTC()
			created := w.JobFiring(at, func(s *domain.JobSpec) { s.Labels = map[string]string{"kind": "bench"} })
			jobs := make([]domain.Job, 2500)
			for i := range jobs {
				jobs[i] = created
				jobs[i].ID = domain.JobID(storetest.NewID())
				jobs[i].Spec.Name = "loaded " + jobs[i].ID.String()
			}
			require.NoError(t, benchdata.LoadJobs(t.Context(), s.DB, jobs, func(i int) time.Time { return at.Add(time.Duration(i) * time.Second) }))

			want, err := s.FindJob(t.Context(), w.Tenant, created.ID)
			require.NoError(t, err)
			for _, i := range []int{0, 999, 1000, 2499} {
				got, err := s.FindJob(t.Context(), w.Tenant, jobs[i].ID)
				require.NoError(t, err)
				require.Equal(t, at.Add(time.Duration(i)*time.Second), got.NextFireAt)
				got.NextFireAt = want.NextFireAt
				got.ID, got.Partition, got.Spec.Name = want.ID, want.Partition, want.Spec.Name
				got.CreatedAt, got.UpdatedAt, got.Written.At = want.CreatedAt, want.UpdatedAt, want.Written.At
				require.Equal(t, want, got)
			}

			require.NoError(t, s.ReadLedger(t.Context(), func(r store.LedgerReader) error {
				list, err := r.Jobs(t.Context(), created.ID-1, 2501)
				require.Len(t, list, 2501)
				for _, j := range list {
					require.Len(t, j.Events, 1)
					require.Equal(t, j.Revisions[0].CreatedAt, j.Events[0].At)
					require.Equal(t, domain.JobEnabled, j.Events[0].State)
				}
				return err
			}))
			ids := make([]domain.JobID, len(jobs))
			for i := range jobs {
				ids[i] = jobs[i].ID
			}
			require.NoError(t, benchdata.SetNextFires(t.Context(), s.DB, w.Tenant, ids, func(i int) time.Time {
				if i%2 == 0 {
					return domain.Never
				}
				return at
			}))
			for i, next := range map[int]time.Time{1500: domain.Never, 1501: at} {
				got, err := s.FindJob(t.Context(), w.Tenant, ids[i])
				require.NoError(t, err)
				require.Equal(t, next, got.NextFireAt)
			}
			require.NoError(t, benchdata.SetNextFires(t.Context(), s.DB, w.Tenant+1, ids, func(int) time.Time { return domain.Never }))
			got, err := s.FindJob(t.Context(), w.Tenant, ids[1501])
			require.NoError(t, err)
			require.Equal(t, at, got.NextFireAt, "another tenant moves nothing")
		})
	}
}

// Whoever plans all the time holds some trigger or other: the rest does not wait.
func TestNextFiresAreSetAroundLocks(t *testing.T) {
	s := openStore(t, bothDatabases["mysql"](t))
	w := storetest.NewWorld(t, s)
	one, other := w.Job(nil), w.Job(nil)
	at := time.UnixMilli(4_000_000_000_000).UTC()
	tx, err := s.Write.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }() // of no effect after the one below
	var id int64
	require.NoError(t, tx.QueryRowContext(t.Context(), "SELECT job_id FROM triggers WHERE job_id = ? FOR UPDATE", int64(one.ID)).Scan(&id))
	done := make(chan error, 1)
	go func() {
		done <- benchdata.SetNextFires(t.Context(), s.DB, w.Tenant, []domain.JobID{one.ID, other.ID}, func(int) time.Time { return at })
	}()
	next := func(id domain.JobID) time.Time {
		job, err := s.FindJob(t.Context(), w.Tenant, id)
		require.NoError(t, err)
		return job.NextFireAt
	}
	for next(other.ID) != at {
		require.NoError(t, t.Context().Err())
	}
	require.NotEqual(t, at, next(one.ID))
	require.NoError(t, tx.Rollback())
	require.NoError(t, <-done)
	require.Equal(t, at, next(one.ID))
}

func TestLoadedExecutionsReadBack(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := storetest.NewWorld(t, s)
			job := w.Job(nil)
			at := time.UnixMilli(1_700_000_000_000).UTC()
			runs := make([]domain.Execution, 2100)
			for i := range runs {
				runs[i] = domain.Execution{
					ID: domain.ExecutionID(storetest.NewID()), TenantID: w.Tenant, JobID: job.ID, Revision: 1, Executor: w.Executor,
					Partition: job.Partition, Cause: domain.CauseSchedule, FireAt: at.Add(time.Duration(i) * time.Second),
					State: domain.Succeeded, Attempt: 1, MaxAttempts: 1, Fence: 1, FinishedAt: at, LogLines: 3,
				}
			}
			require.NoError(t, benchdata.LoadExecutions(t.Context(), s.DB, runs))
			counts, err := s.CountExecutions(t.Context(), w.Tenant, domain.Reach{}, time.Time{})
			require.NoError(t, err)
			require.Equal(t, map[domain.State]int64{domain.Succeeded: int64(len(runs))}, counts)
			list, err := s.ListExecutions(t.Context(), store.ListExecutionsParams{Tenant: w.Tenant, Limit: 1})
			require.NoError(t, err)
			require.Equal(t, runs[2099], list[0].Execution)
		})
	}
}

// TestLeftRuns: only runs that have not ended and triggers with a next fire time are left.
func TestLeftRuns(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := storetest.NewWorld(t, s)
			at := time.UnixMilli(1_800_000_000_000).UTC()
			job := w.JobFiring(at, nil)
			w.JobFiring(domain.Never, nil)
			n, err := benchdata.CountUnplanned(t.Context(), s.DB)
			require.NoError(t, err)
			require.EqualValues(t, 1, n)

			runs := make([]domain.Execution, 6)
			for i := range runs {
				runs[i] = domain.Execution{
					ID: domain.ExecutionID(storetest.NewID()), TenantID: w.Tenant, JobID: job.ID, Revision: 1, Executor: w.Executor,
					Partition: job.Partition, Cause: domain.CauseSchedule, FireAt: at.Add(time.Duration(i) * time.Second),
					PlannedAt: at, NotBefore: at.Add(time.Minute), State: domain.Due, WakeAt: at, LogLines: -1,
				}
			}
			runs[0].Reason, runs[1].Reason = domain.ReasonWaitLimit, domain.ReasonWaitLimit
			runs[2].State, runs[2].Reason, runs[2].WakeAt, runs[2].FinishedAt = domain.Missed, domain.ReasonNoExecutor, time.Time{}, at
			runs[3].Parent, runs[3].Shards = runs[0].ID, 2
			require.NoError(t, benchdata.LoadExecutions(t.Context(), s.DB, runs))
			living, err := benchdata.Living(t.Context(), s.DB)
			require.NoError(t, err)
			require.Equal(t, map[string]int{"due": 3, "due waiting_for_limit": 2}, living)

			var seen []benchdata.MeasuredRun
			require.NoError(t, benchdata.ReadRuns(t.Context(), s.DB, w.Tenant, w.Executor, func(r benchdata.MeasuredRun) { seen = append(seen, r) }))
			require.Len(t, seen, len(runs))
			require.Equal(t, benchdata.MeasuredRun{
				ID: runs[2].ID, Job: job.ID, State: domain.Missed, Reason: domain.ReasonNoExecutor,
				FireAt: runs[2].FireAt, PlannedAt: at, NotBefore: at.Add(time.Minute), FinishedAt: at,
			}, seen[2])
			require.Equal(t, runs[0].ID, seen[3].Parent)
			require.Equal(t, 2, seen[3].Shards)
		})
	}
}

// counting counts the connections that go through a wrapper.
type counting struct {
	driver.Connector
	n *atomic.Int64
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	c.n.Add(1)
	return c.Connector.Connect(ctx)
}

func TestEveryConnectionGoesThroughTheConnector(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			o := options(t)
			o.Connector = func(c driver.Connector) driver.Connector { return counting{c, &n} }
			s := openStore(t, o)
			before := n.Load()
			require.Positive(t, before)
			_, err := s.Now(t.Context())
			require.NoError(t, err)
		})
	}
}
