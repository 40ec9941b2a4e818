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

			_, err := s.WidenStatistics(t.Context(), store.StatisticsKept{Minutes: time.Hour, Hours: time.Since(time.UnixMilli(2*hour)).Truncate(24*time.Hour) - 24*time.Hour, Days: time.Hour}, 100)
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

// groups are names, failures and jobs of a list.
func groups(list []store.FailureCount) (out []string) {
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s: %d of %d in %d, run %d", c.Name, c.Runs, c.Ended, c.Jobs, c.LastRun))
	}
	return out
}

// TestFailuresAreGrouped: by job, executor, label and error, within the caller's tenant, reach
// and time.
func TestFailuresAreGrouped(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 2, domain.BlockParallel)
			hour := time.Now().UTC().Truncate(time.Hour)
			end := func(job int, mark, run int64, executor domain.ExecutorID) domain.RunEnd {
				e := failed(int64(w.jobs[job]), mark, run, hour.Unix()/60)
				e.Tenant, e.Executor = w.tenant, executor
				return e
			}
			fine := end(0, 0, 0, w.executor)
			fine.State, fine.ErrorText = domain.Succeeded, ""
			foreign := end(0, 5, 99, w.executor)
			foreign.Tenant++
			old := end(1, 5, 50, w.executor)
			old.Minute -= 120
			countNow(t, s, end(0, 5, 51, w.executor), end(0, 6, 52, w.executor), end(1, 5, 53, w.executor), end(1, 5, 54, w.executor+1), fine, foreign, old)
			for i, labels := range []string{"\nteam=a\n\ntier=1\n", "\nteam=a\n"} {
				_, err := s.Write.ExecContext(t.Context(), "UPDATE jobs SET name = ?, labels = ? WHERE id = ?", fmt.Sprintf("j%d", i), labels, int64(w.jobs[i]))
				require.NoError(t, err)
			}
			list := func(by store.FailureGroup, within domain.Reach, limit int) []store.FailureCount {
				out, err := s.ListFailures(t.Context(), store.ListFailuresParams{Tenant: w.tenant, Within: within, By: by, From: hour, To: hour.Add(time.Hour), Limit: limit})
				require.NoError(t, err)
				return out
			}
			all := domain.Reach{}
			require.Equal(t, []string{"j0: 2 of 3 in 1, run 52", "j1: 2 of 2 in 1, run 54"}, groups(list(store.FailuresByJob, all, 10)))
			require.Equal(t, []string{"j0: 2 of 3 in 1, run 52"}, groups(list(store.FailuresByJob, all, 1)))
			require.Equal(t, []string{"j0: 2 of 3 in 1, run 52", "j1: 1 of 2 in 1, run 53"}, groups(list(store.FailuresByJob, domain.Within(w.executor), 10)))
			require.Empty(t, list(store.FailuresByJob, domain.Within(), 10))
			errors := list(store.FailuresByError, all, 10)
			require.Equal(t, []string{"text of 5: 3 of 0 in 2, run 54", "text of 6: 1 of 0 in 1, run 52"}, groups(errors))
			require.Equal(t, domain.Fingerprint(5), errors[0].Error)
			require.Equal(t, []string{"team=a: 4 of 0 in 2, run 54", "tier=1: 2 of 0 in 1, run 52"}, groups(list(store.FailuresByLabel, all, 10)))
			require.Equal(t, []time.Time{hour, hour}, []time.Time{errors[0].FirstAt, errors[1].FirstAt})
			ofJob, err := s.ListFailures(t.Context(), store.ListFailuresParams{Tenant: w.tenant, Job: w.jobs[1], By: store.FailuresByError, From: hour.Add(-3 * time.Hour), To: hour.Add(time.Hour), Limit: 10})
			require.NoError(t, err)
			require.Equal(t, []string{"text of 5: 3 of 0 in 1, run 54"}, groups(ofJob))
			require.Equal(t, hour.Add(-2*time.Hour), ofJob[0].FirstAt.UTC())
			executors := list(store.FailuresByExecutor, all, 10)
			require.Len(t, executors, 2)
			require.Equal(t, []int64{int64(w.executor), 3, 4}, []int64{executors[0].ID, executors[0].Runs, executors[0].Ended})

			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE failure_counts, statistics")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, tables: map[string]bool{"failure_counts": true, "statistics": true}, few: 10, groups: true}
			p := store.ListFailuresParams{Tenant: w.tenant, Within: domain.Within(w.executor), From: hour, To: hour.Add(time.Hour), Limit: 10}
			for _, p.By = range []store.FailureGroup{store.FailuresByJob, store.FailuresByExecutor, store.FailuresByError} {
				e.explain(t.Context(), console.FailureGroups(s.Dialect, p))
			}
			p.Job = w.jobs[0]
			e.explain(t.Context(), console.FailureGroups(s.Dialect, p))
			e.explain(t.Context(), console.EndedOf(s.Dialect, domain.StatisticsOfJob, p, []int64{1, 2}))
			e.groups = false
			e.explain(t.Context(), console.RunsOfError(s.Dialect, w.tenant, 5, domain.Within(w.executor), 100, hour))
		})
	}
}

// TestRunsOfAnError: the counts of failures name runs, which the list shows with its other
// filters.
func TestRunsOfAnError(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 3, domain.BlockParallel)
			offered, err := s.OfferExecutions(t.Context(), w.offers(w.plan(1)))
			require.NoError(t, err)
			granted, err := s.GrantOffers(t.Context(), w.grants(offered))
			require.NoError(t, err)
			reports := w.reports(granted)
			require.Len(t, reports, 3)
			for i := range reports {
				reports[i].Report.Outcome, reports[i].Report.Error = domain.OutcomeFailed, fmt.Sprintf("order %d is lost", i)
			}
			reports[2].Report.Error = "another one"
			_, err = s.FinishAttempts(t.Context(), reports)
			require.NoError(t, err)
			countNow(t, s)
			list := func(p store.ListExecutionsParams) []store.ExecutionView {
				p.Tenant = w.tenant
				out, err := s.ListExecutions(t.Context(), p)
				require.NoError(t, err)
				return out
			}
			first := list(store.ListExecutionsParams{Job: w.jobs[0]})[0]
			mark, text := domain.ErrorOf(&first.Execution)
			require.Contains(t, text, "order # is lost")
			require.Equal(t, text, one[string](t, s, fmt.Sprintf("SELECT text FROM error_texts WHERE fingerprint = %d", int64(mark))))
			same := list(store.ListExecutionsParams{Fingerprint: mark})
			require.Len(t, same, 2)
			require.Greater(t, same[0].ID, same[1].ID)
			require.Len(t, list(store.ListExecutionsParams{Fingerprint: mark, Before: same[0].ID}), 1)
			require.Len(t, list(store.ListExecutionsParams{Fingerprint: mark, Job: w.jobs[0]}), 1)
			require.Empty(t, list(store.ListExecutionsParams{Fingerprint: mark, States: []domain.State{domain.Lost}}))
			require.Empty(t, list(store.ListExecutionsParams{Fingerprint: mark, Within: domain.Within(w.executor + 1)}))
			require.Empty(t, list(store.ListExecutionsParams{Fingerprint: mark + 1}))

			_, err = s.Write.ExecContext(t.Context(), "UPDATE jobs SET labels = ?, owner = 'Ann' WHERE id = ?", "\nteam=a\n", int64(w.jobs[1]))
			require.NoError(t, err)
			for _, p := range []store.ListExecutionsParams{{Label: "team=a"}, {Label: "team"}, {Owner: "ann"}, {Name: first.JobName}} {
				require.Len(t, list(p), 1, p)
			}
			require.Empty(t, list(store.ListExecutionsParams{Label: "team=b"}))
			require.Len(t, list(store.ListExecutionsParams{Name: "*"}), 3)
		})
	}
}
