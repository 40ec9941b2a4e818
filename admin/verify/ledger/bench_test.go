package ledger_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/benchdata"
	"github.com/carillon-sched/carillon/admin/internal/store/storetest"
	"github.com/carillon-sched/carillon/admin/verify/ledger"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// benchRows is the size of the table; a million:
//
//	go run ./tools/withparts -- go test ./admin/verify/ledger -run - -bench . -benchtime 1x -rows 1000000
var benchRows = flag.Int("rows", 20_000, "executions to judge")

// BenchmarkCheck judges executions of jobs that fire once a second, each.
func BenchmarkCheck(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) {
		benchCheck(b, gormstore.Options{Driver: "sqlite", DSN: filepath.Join(b.TempDir(), "carillon.db")})
	})
	b.Run("mysql", func(b *testing.B) {
		benchCheck(b, gormstore.Options{Driver: "mysql", DSN: testenv.Database(b)})
	})
}

func benchCheck(b *testing.B, o gormstore.Options) {
	const jobs = 500
	o.NewID = storetest.NewID
	require.NoError(b, gormstore.Migrate(b.Context(), o))
	s, err := gormstore.Open(b.Context(), o)
	require.NoError(b, err)
	defer s.Close()
	seconds := *benchRows / jobs
	// The jobs are made now, so their hours lie ahead.
	begin := time.Now().Add(2 * time.Second).Truncate(time.Second).UTC()
	load(b, s, begin, jobs, seconds)
	b.ResetTimer()
	for b.Loop() {
		r, err := ledger.Check(b.Context(), s, ledger.Options{
			Since: -time.Until(begin), Recent: -time.Until(begin.Add(time.Duration(seconds-1) * time.Second)),
		})
		require.NoError(b, err)
		require.Empty(b, r.Examples)
		require.InDelta(b, jobs*seconds, r.Ran, 2*jobs) // the database's clock moves on
	}
	b.ReportMetric(float64(b.N**benchRows)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(highWater(b), "MiB-peak")
}

// load writes jobs and their executions.
func load(b *testing.B, s *gormstore.Store, begin time.Time, jobs, seconds int) {
	b.Helper()
	w := storetest.NewWorld(b, s)
	list := make([]domain.Job, jobs)
	for i := range list {
		list[i] = domain.Job{
			ID: domain.JobID(storetest.NewID()), TenantID: w.Tenant, Executor: w.Executor, State: domain.JobEnabled,
			Spec: domain.JobSpec{Name: "job " + strconv.Itoa(i), Schedule: domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: "* * * * * *", Dialect: "seconds"}},
		}
	}
	end := begin.Add(time.Duration(seconds) * time.Second)
	require.NoError(b, benchdata.LoadJobs(b.Context(), s.DB, list, func(int) time.Time { return end }))
	batch := make([]domain.Execution, 0, jobs*20)
	for second := range seconds {
		at := begin.Add(time.Duration(second) * time.Second)
		for i := range list {
			batch = append(batch, domain.Execution{
				ID: domain.ExecutionID(storetest.NewID()), TenantID: w.Tenant, JobID: list[i].ID, Revision: 1, Executor: w.Executor,
				Partition: domain.PartitionOf(list[i].ID), Cause: domain.CauseSchedule, FireAt: at, State: domain.Succeeded,
				Fence: 1, Attempt: 1, MaxAttempts: 1, NotBefore: at, PlannedAt: at.Add(-2 * time.Second),
				OfferedAt: at.Add(3 * time.Millisecond), GrantedAt: at.Add(5 * time.Millisecond), StartedAt: at.Add(8 * time.Millisecond),
				FinishedAt: at.Add(20 * time.Millisecond),
			})
		}
		if len(batch) == cap(batch) || second == seconds-1 {
			require.NoError(b, benchdata.LoadExecutions(b.Context(), s.DB, batch))
			batch = batch[:0]
		}
	}
}

// highWater is the most memory that this process has had, in MiB.
func highWater(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(b, err)
	match := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(b, match)
	kib, err := strconv.ParseFloat(string(match[1]), 64)
	require.NoError(b, err)
	return kib / 1024
}
