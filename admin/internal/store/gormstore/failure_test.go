package gormstore

import (
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/console"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// failureRow is what tests look at in failure_counts.
type failureRow struct {
	at, job, mark, runs, lastRun int64
}

func failureRows(t *testing.T, s *Store, where string) (out []failureRow) {
	t.Helper()
	require.NoError(t, db.Query(t.Context(), s.Read, func(rows *sql.Rows) error {
		var r failureRow
		err := rows.Scan(&r.at, &r.job, &r.mark, &r.runs, &r.lastRun)
		out = append(out, r)
		return err
	}, "SELECT at, job_id, fingerprint, runs, last_run FROM failure_counts WHERE "+where+" ORDER BY at, job_id, fingerprint"))
	return out
}

func one[V any](t *testing.T, s *Store, query string) (v V) {
	t.Helper()
	require.NoError(t, s.Read.QueryRowContext(t.Context(), query).Scan(&v))
	return v
}

// countNow writes ends to the outbox, and counts all.
func countNow(t *testing.T, s *Store, ends ...domain.RunEnd) {
	t.Helper()
	require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error { return record.InsertEnds(x, ends) }))
	for more := true; more; {
		var err error
		more, err = s.CountEnds(t.Context(), 0)
		require.NoError(t, err)
	}
}

// failed is an end with an error.
func failed(job, mark, run, minute int64) domain.RunEnd {
	return domain.RunEnd{
		Tenant: 1, Executor: 2, Job: domain.JobID(job), Minute: minute, State: domain.Failed, Late: -1, Took: -1,
		Run: domain.ExecutionID(run), Error: domain.Fingerprint(mark), ErrorText: fmt.Sprintf("text of %d", mark),
	}
}

func undone(e domain.RunEnd) domain.RunEnd {
	e.Undone = true
	return e
}

// TestFailuresAreCounted: runs that ended badly count by hour, job and error.
func TestFailuresAreCounted(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			fine := failed(3, 0, 0, 61)
			fine.State, fine.Run, fine.ErrorText = domain.Succeeded, 0, ""
			countNow(t, s, failed(3, 7, 100, 61), failed(3, 7, 90, 62), failed(3, 8, 91, 61), failed(4, -7, 92, 125), fine)
			const hour = 3_600_000
			require.Equal(t, []failureRow{{hour, 3, 7, 2, 100}, {hour, 3, 8, 1, 91}, {2 * hour, 4, -7, 1, 92}}, failureRows(t, s, "tenant_id = 1"))
			require.Equal(t, "text of 7", one[string](t, s, "SELECT text FROM error_texts WHERE tenant_id = 1 AND fingerprint = 7"))

			countNow(t, s, failed(3, 7, 110, 63), undone(failed(3, 8, 91, 61)), undone(failed(4, -7, 92, 125)), failed(4, -7, 93, 126))
			require.Equal(t, []failureRow{{hour, 3, 7, 3, 110}, {2 * hour, 4, -7, 1, 92}}, failureRows(t, s, "tenant_id = 1"), "a row without runs is gone")

			var many []domain.RunEnd
			for n := range int64(30) {
				many = append(many, failed(9, n+1, 1000+n, 61))
			}
			countNow(t, s, many[:10]...)
			countNow(t, s, many[10:]...)
			rows := failureRows(t, s, "job_id = 9")
			require.Len(t, rows, 17, "16 errors of a job in an hour, and the others")
			require.Equal(t, failureRow{hour, 9, 0, 14, 1029}, rows[0])
			countNow(t, s, undone(many[29]), undone(many[0]))
			rows = failureRows(t, s, "job_id = 9")
			require.Len(t, rows, 16)
			require.Equal(t, int64(13), rows[0].runs)

			_, err := s.WidenStatistics(t.Context(), store.StatisticsKept{Minutes: time.Hour, Hours: time.Since(time.UnixMilli(2 * hour)).Truncate(24*time.Hour) - 24*time.Hour, Days: time.Hour}, 100)
			require.NoError(t, err)
			require.Empty(t, failureRows(t, s, "1 = 1"))
		})
	}
}

// TestErrorTextsHaveABound: those leave first that were seen longest ago.
func TestErrorTextsHaveABound(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			var ends []domain.RunEnd
			for n := range int64(2000) {
				ends = append(ends, failed(n+1, n+1, n+1, 1000+n))
			}
			countNow(t, s, ends...)
			other := failed(1, 1, 1, 1)
			other.Tenant = 2
			countNow(t, s, failed(1, 1, 9000, 5000), other)
			require.Equal(t, 2000, one[int](t, s, "SELECT COUNT(*) FROM error_texts WHERE tenant_id = 1"))
			countNow(t, s, failed(1, 5001, 9001, 5001))
			require.Equal(t, 1800, one[int](t, s, "SELECT COUNT(*) FROM error_texts WHERE tenant_id = 1"))
			require.Equal(t, 2, one[int](t, s, "SELECT COUNT(*) FROM error_texts WHERE tenant_id = 1 AND fingerprint IN (1, 2, 5001)"), "the first one was seen again")
			require.Equal(t, 1, one[int](t, s, "SELECT COUNT(*) FROM error_texts WHERE tenant_id = 2"))
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE error_texts")
				require.NoError(t, err)
			}
			(&explainer{t: t, s: s, tables: map[string]bool{"error_texts": true}, few: 100}).explain(t.Context(), console.OldErrorTexts(s.Dialect, 1, 10))
		})
	}
}
