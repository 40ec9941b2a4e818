package sweeper

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func TestWhatGrewOldIsDeletedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		deletions := map[string]int{}
		keep := map[string]time.Duration{"logs": 48 * time.Hour, "runs": 72 * time.Hour, "rules": 0, "purges": 72 * time.Hour, "timers": 36 * time.Hour, "alerts": 72 * time.Hour, "instances": 72 * time.Hour, "handlers": 72 * time.Hour, "boots": 72 * time.Hour, "refusals": 72 * time.Hour, "maintenance": 72 * time.Hour, "jobs": 30 * 24 * time.Hour, "executors": 30 * 24 * time.Hour, "tenants": time.Hour, "documents": 30 * 24 * time.Hour, "counts": 6 * time.Hour, "tokens": 72 * time.Hour}
		old := fake{delete: func(what string, before time.Time, limit int) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			deletions[what]++
			if before != time.Now().Add(-keep[what]) || limit != deleteLimit {
				t.Errorf("asked to delete %d %s before %s", limit, what, before)
			}
			return 0, nil
		}}
		s := New(Options{
			Store: old, Retention: old,
			Logger: slog.New(slog.DiscardHandler), Held: func() []domain.PartitionTerm { return held(1) },
			Later: func(...domain.Execution) {}, Ended: func([]domain.Execution) {},
			LogRetention: 48 * time.Hour, RunRetention: 72 * time.Hour, TimerRetention: 36 * time.Hour,
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, s.Run(ctx))
		for what := range keep {
			require.GreaterOrEqual(t, deletions[what], 2, what)
			require.LessOrEqual(t, deletions[what], 6, what)
		}
	})
}

func TestLogsNeverOutliveTheirRun(t *testing.T) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler), LogRetention: 72 * time.Hour, RunRetention: 48 * time.Hour})
	require.Equal(t, 48*time.Hour, s.opt.LogRetention)
}

func TestLogsAreDeletedByTheAgeOfTheirRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.sweeper.opt.LogRetention = time.Hour
		job := r.Job(nil)
		write := func() domain.ExecutionID {
			e := domain.Execution{
				ID: domain.ExecutionID(domain.IDFloor(time.Now())) + 1, TenantID: r.Tenant, JobID: job.ID, Cause: domain.CauseManual,
				FireAt: time.Now(), NotBefore: time.Now(), State: domain.Due, MaxAttempts: 1, LogLines: -1, WakeAt: time.Now(),
			}
			run, created, err := r.S.CreateExecution(t.Context(), e)
			require.NoError(t, err)
			require.True(t, created)
			var chunks []domain.LogChunk
			for n := range int64(3) {
				chunks = append(chunks, domain.LogChunk{
					TenantID: r.Tenant, ExecutionID: run.ID, Attempt: 1, FirstLine: n + 1,
					Lines: []domain.LogLine{{Number: n + 1, Attempt: 1, At: time.Now(), Message: "line"}},
				})
			}
			dropped, err := r.S.AppendLogs(t.Context(), []store.LogAppend{{Tenant: r.Tenant, Executor: r.Executor, Chunks: chunks}})
			require.NoError(t, err)
			require.Zero(t, dropped)
			return run.ID
		}
		lines := func(id domain.ExecutionID) int {
			page, err := r.S.ReadLog(t.Context(), store.ReadLogParams{Tenant: r.Tenant, Execution: id, Attempt: 1, Limit: 10})
			require.NoError(t, err)
			return len(page.Lines)
		}
		old := write()
		time.Sleep(time.Minute)
		young := write()
		time.Sleep(time.Hour - time.Second)
		r.sweeper.deleteOld(t.Context())
		require.Zero(t, lines(old))
		require.Equal(t, 3, lines(young))
	})
}

func TestManyOldRowsAreDeletedInSteps(t *testing.T) {
	left, calls := int64(2*deleteLimit+1), 0
	s := New(Options{Store: fake{}, Logger: slog.New(slog.DiscardHandler)})
	total, err := s.deleteAll(t.Context(), time.Hour, func(_ context.Context, _ time.Time, limit int) (int64, error) {
		calls++
		n := min(left, int64(limit))
		left -= n
		return n, nil
	})
	require.NoError(t, err)
	require.EqualValues(t, 2*deleteLimit+1, total)
	require.Zero(t, left)
	require.Equal(t, 3, calls)
}
