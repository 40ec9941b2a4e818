package gormstore

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/week"
)

// weekRow is what a row of job_weeks and the statistics behind it say.
type weekRow struct{ ended, failed, lateMS, tookMS int64 }

// weekRows reads them, and when each row begins.
func weekRows(t *testing.T, s *Store) (rows map[int64]weekRow, from map[int64]int64) {
	t.Helper()
	rows, from = map[int64]weekRow{}, map[int64]int64{}
	require.NoError(t, db.Query(t.Context(), s.Read, func(r *sql.Rows) error {
		var job, at int64
		var w weekRow
		err := r.Scan(&job, &at, &w.ended, &w.failed, &w.lateMS, &w.tookMS)
		rows[job], from[job] = w, at
		return err
	}, "SELECT job_id, from_at, ended, failed, late_ms, took_ms FROM job_weeks"))
	return rows, from
}

// requireWeeks compares each row with the statistics since its begin.
func requireWeeks(t *testing.T, s *Store, tenant domain.TenantID) {
	t.Helper()
	rows, from := weekRows(t, s)
	require.NotEmpty(t, rows)
	for job, got := range rows {
		sums, err := s.SumRuns(t.Context(), store.SumRunsParams{
			Tenant: tenant, Kind: domain.StatisticsOfJob, Subjects: []int64{job}, Step: domain.StepHour, From: time.UnixMilli(from[job]), To: time.Now().Add(24 * time.Hour),
		})
		require.NoError(t, err)
		var want domain.JobWeek
		for at, sum := range sums {
			want.AddSum(at.State, sum)
		}
		expected := weekRow{want.Ended, want.Failed, -1, -1}
		if want.Ended == 0 {
			expected.failed = -1
		}
		for spread, into := range map[*domain.Spread]*int64{&want.Late: &expected.lateMS, &want.Took: &expected.tookMS} {
			spread.MaxMS = 1 << 62 // a row has none
			if d, ok := spread.Quantile(0.95); ok {
				*into = d.Milliseconds()
			}
		}
		require.Equal(t, expected, got, "job %d", job)
	}
}

func insertEnds(t *testing.T, s *Store, ends []domain.RunEnd) {
	t.Helper()
	require.NoError(t, s.Run(t.Context(), "ends", func(x *db.Tx) error { return record.InsertEnds(x, ends) }))
	for more := true; more; {
		var err error
		more, err = s.CountEnds(t.Context(), 0)
		require.NoError(t, err)
	}
}

// slide moves all rows on to the week before an instant.
func slide(t *testing.T, s *Store, now time.Time) {
	t.Helper()
	for {
		n, err := db.Value(t.Context(), s.RunRepeatable, "slide", func(x *db.Tx) (int, error) { return week.Slide(x, now, 7) })
		require.NoError(t, err)
		if n == 0 {
			return
		}
	}
}

// TestWeeksEqualStatistics: whatever ends, is taken back and leaves the week, a row is the sum of
// the statistics since its begin.
func TestWeeksEqualStatistics(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 9, domain.BlockParallel)
			random := rand.New(rand.NewPCG(7, 24))
			now := time.Now()
			states := []domain.State{domain.Succeeded, domain.Succeeded, domain.Failed, domain.TimedOut, domain.Lost, domain.Missed, domain.Cancelled}
			var known []domain.RunEnd
			for round := range 12 {
				var ends []domain.RunEnd
				for range 60 {
					e := domain.RunEnd{
						Tenant: w.tenant, Executor: w.executor, Job: w.jobs[random.IntN(9)], State: states[random.IntN(len(states))],
						Minute: now.Add(-time.Duration(random.Int64N(int64(9*24*time.Hour)))).UnixMilli() / 60_000, Late: random.Int64N(20_000) - 1, Took: random.Int64N(90_000) - 1,
					}
					ends = append(ends, e)
					if len(known) > 0 && random.IntN(4) == 0 {
						n := random.IntN(len(known))
						undone := known[n]
						undone.Undone = true
						ends, known[n] = append(ends, undone), known[len(known)-1]
						known = known[:len(known)-1]
					}
				}
				for _, e := range ends {
					if !e.Undone {
						known = append(known, e)
					}
				}
				insertEnds(t, s, ends)
				requireWeeks(t, s, w.tenant)
				slide(t, s, now.Add(time.Duration(round)*20*time.Hour))
				requireWeeks(t, s, w.tenant)
				if round == 6 {
					_, err := s.WidenStatistics(t.Context(), store.StatisticsKept{Minutes: -time.Hour, Hours: 60 * 24 * time.Hour, Days: 60 * 24 * time.Hour}, 10_000)
					require.NoError(t, err)
					requireWeeks(t, s, w.tenant)
				}
			}
			rows, from := weekRows(t, s)
			require.Len(t, rows, 9)
			begin := week.Begin(now.Add(11 * 20 * time.Hour))
			for job, at := range from {
				require.LessOrEqual(t, at, begin)
				require.Zero(t, rows[job].ended, "job %d: all of it is older than a week", job)
			}
		})
	}
}

// TestWeeksHeal: a row that a node of the version before has left behind, or that was never made,
// is made of statistics, and one of a job that is gone leaves.
func TestWeeksHeal(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			now := time.Now()
			var ends []domain.RunEnd
			for job := range 30 {
				for _, ago := range []time.Duration{time.Hour, 100 * time.Hour, 160 * time.Hour} {
					ends = append(ends, domain.RunEnd{Tenant: 1, Executor: 2, Job: domain.JobID(job + 1), State: domain.Failed, Minute: now.Add(-ago).UnixMilli() / 60_000, Late: 5, Took: 7})
				}
			}
			insertEnds(t, s, ends)
			change := func(set string) {
				require.NoError(t, s.Run(t.Context(), "break", func(x *db.Tx) error {
					_, err := x.Exec(x.Ctx, "UPDATE job_weeks SET "+set)
					return err
				}))
			}
			change("from_at = 0, first_at = 0, ended = 0, failed = 0, late_ms = -1, took_ms = -1, late = '', took = ''")
			slide(t, s, now)
			requireWeeks(t, s, 1)
			rows, _ := weekRows(t, s)
			require.EqualValues(t, 3, rows[30].failed)

			change("ended = 0, failed = 0")
			slide(t, s, now.Add(24*time.Hour)) // takes out one of none
			requireWeeks(t, s, 1)
			rows, _ = weekRows(t, s)
			require.EqualValues(t, 2, rows[30].failed)

			slide(t, s, now.Add(40*24*time.Hour))
			rows, _ = weekRows(t, s)
			require.Empty(t, rows, "there is no such job")
		})
	}
}

// TestWeeksUseIndexes: a week moves on with one seek for each job and time.
func TestWeeksUseIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			var ends []domain.RunEnd
			now := time.Now()
			for job := range 2000 {
				ends = append(ends, domain.RunEnd{Tenant: 1, Executor: 2, Job: domain.JobID(job + 1), State: domain.Failed, Minute: now.Add(-time.Duration(job%160)*time.Hour).UnixMilli() / 60_000, Late: 5, Took: 7})
			}
			insertEnds(t, s, ends)
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE statistics, job_weeks")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, tables: map[string]bool{"statistics": true, "job_weeks": true}}
			e.explain(t.Context(), week.Hours(s.Dialect, 1, 5, 1<<60, 7, 8))
			e.explain(t.Context(), week.First(s.Dialect, 1, 7, 5))
			e.explain(t.Context(), "SELECT job_id FROM job_weeks"+week.Old(s.Dialect, now.UnixMilli(), 10))
		})
	}
}

// weekEnd is how a run of a job ended some time ago.
func (w *world) weekEnd(i int, state domain.State, ago, late, took time.Duration) domain.RunEnd {
	return domain.RunEnd{Tenant: w.tenant, Executor: w.executor, Job: w.jobs[i], State: state, Minute: time.Now().Add(-ago).UnixMilli() / 60_000, Late: late.Milliseconds(), Took: took.Milliseconds()}
}

// TestJobsByTheirWeek: orders, pages, states and counts of jobs say the same of the same ends.
func TestJobsByTheirWeek(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 12, domain.BlockParallel)
			var ends []domain.RunEnd
			for i := range 8 { // jobs 8 to 11 have no run
				for n := range i/2 + 1 {
					ends = append(ends, w.weekEnd(i, domain.Failed, time.Duration(n+2)*time.Hour, time.Duration(i%3)*30*time.Second, time.Duration(8-i)*time.Minute))
				}
				if i < 4 { // 4 to 7 fail
					ends = append(ends, w.weekEnd(i, domain.Succeeded, 0, 0, time.Second))
				}
			}
			insertEnds(t, s, ends)
			state := func(i int, to domain.JobState) {
				_, err := s.SetJobState(t.Context(), store.SetJobStateParams{Tenant: w.tenant, ID: w.jobs[i], State: to, By: "ann", Next: func(time.Time, *domain.JobSpec) time.Time { return domain.Never }})
				require.NoError(t, err)
			}
			state(7, domain.JobPaused)

			list := func(p store.ListJobsParams) (found []int) {
				t.Helper()
				p.Tenant = w.tenant
				index := map[domain.JobID]int{}
				for i, id := range w.jobs {
					index[id] = i
				}
				for p.Limit = 3; ; {
					views, err := s.ListJobs(t.Context(), p)
					require.NoError(t, err)
					for i := range views {
						found = append(found, index[views[i].ID])
					}
					if len(views) < p.Limit {
						return found
					}
					last := &views[len(views)-1]
					p.Cursor = store.JobCursor{ID: last.ID, Rank: last.Rank, Name: last.Spec.Name}
				}
			}
			without := []int{10, 11, 8, 9} // by name: "job 10" is before "job 8"
			require.Equal(t, append([]int{7, 6, 5, 4, 3, 2, 1, 0}, without...), list(store.ListJobsParams{Sort: store.SortByFailures}))
			require.Equal(t, append([]int{0, 1, 2, 3, 4, 5, 6, 7}, without...), list(store.ListJobsParams{Sort: store.SortByP95}))
			byLateness := list(store.ListJobsParams{Sort: store.SortByLateness})
			require.ElementsMatch(t, []int{2, 5}, byLateness[:2])
			require.Equal(t, without, byLateness[8:])
			require.Equal(t, []int{6, 5, 4}, list(store.ListJobsParams{Sort: store.SortByFailures, Health: store.JobFailing}))
			require.Equal(t, []int{4, 5, 6}, list(store.ListJobsParams{Health: store.JobFailing}))
			require.Equal(t, []int{4, 5}, list(store.ListJobsParams{Health: store.JobLate}))
			require.Equal(t, []int{7}, list(store.ListJobsParams{Sort: store.SortByP95, State: domain.JobPaused}))
			require.Empty(t, list(store.ListJobsParams{Sort: store.SortByP95, NeverFires: true}), "they have no schedule of that kind")

			counts, err := s.CountJobHealth(t.Context(), store.ListJobsParams{Tenant: w.tenant, State: domain.JobPaused})
			require.NoError(t, err)
			require.Equal(t, store.JobCounts{All: 12, Paused: 1, Failing: 3, Late: 2}, counts)
			counts, err = s.CountJobHealth(t.Context(), store.ListJobsParams{Tenant: w.tenant, Executor: w.executor, Query: "job 5"})
			require.NoError(t, err)
			require.Equal(t, store.JobCounts{All: 1, Failing: 1, Late: 1}, counts)
			counts, err = s.CountJobHealth(t.Context(), store.ListJobsParams{Tenant: w.tenant + 1})
			require.NoError(t, err)
			require.Zero(t, counts)

			groups, more, err := s.GroupJobs(t.Context(), store.ListJobsParams{Tenant: w.tenant, Health: store.JobFailing}, store.JobsByExecutor, 1)
			require.NoError(t, err)
			require.Equal(t, []store.JobGroup{{Executor: w.executor, Name: "world", Jobs: 3}}, groups)
			require.False(t, more)

			insertEnds(t, s, []domain.RunEnd{w.weekEnd(5, domain.Succeeded, 0, 0, time.Second)})
			require.Equal(t, []int{4, 6}, list(store.ListJobsParams{Health: store.JobFailing}))
			undone := w.weekEnd(4, domain.Failed, 2*time.Hour, 30*time.Second, 4*time.Minute)
			undone.Undone = true
			insertEnds(t, s, []domain.RunEnd{undone, w.weekEnd(4, domain.Succeeded, 2*time.Hour, 30*time.Second, 4*time.Minute)})
			require.Equal(t, []int{6}, list(store.ListJobsParams{Health: store.JobFailing}), "it succeeded after all")
		})
	}
}

// TestJobsInGroups: by owner and label.
func TestJobsInGroups(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 0, domain.BlockParallel)
			for i := range 6 {
				_, err := s.CreateJob(t.Context(), domain.Job{ID: domain.JobID(w.ids.Next()), TenantID: w.tenant, Executor: w.executor, Source: domain.SourceConsole, Spec: domain.JobSpec{
					Name: fmt.Sprint("job ", i), Handler: "h", Owner: domain.Owner{Name: []string{"ann", "joann", ""}[min(i/2, 2)]},
					Labels: map[string]string{"team": []string{"a", "b"}[i%2], "env": "prod"},
				}}, func(time.Time, *domain.JobSpec) time.Time { return domain.Never })
				require.NoError(t, err)
			}
			p := store.ListJobsParams{Tenant: w.tenant}
			groups, more, err := s.GroupJobs(t.Context(), p, store.JobsByOwner, 2)
			require.NoError(t, err)
			require.Equal(t, []store.JobGroup{{Name: "", Jobs: 2}, {Name: "ann", Jobs: 2}}, groups)
			require.True(t, more)
			groups, _, err = s.GroupJobs(t.Context(), p, store.JobsByLabel, 9)
			require.NoError(t, err)
			require.Equal(t, []store.JobGroup{{Name: "env=prod", Jobs: 6}, {Name: "team=a", Jobs: 3}, {Name: "team=b", Jobs: 3}}, groups)
			for owner, want := range map[string]int{"=ann": 2, "ann": 4, "=": 2, "=nobody": 0} {
				p.Owner = owner
				total, err := s.TotalJobs(t.Context(), p)
				require.NoError(t, err)
				require.Equal(t, want, total.Count, owner)
			}
		})
	}
}
