package gormstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/console"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/db"
	"github.com/carillon-sched/carillon/admin/internal/store/gormstore/record"
)

// jobEnd is what runs are counted by.
type jobEnd struct {
	job   int64
	state domain.State
}

// endsOf counts the rows of ended runs, and what statistics say of them.
func endsOf(t *testing.T, w *world) (rows, counted map[jobEnd]int64) {
	t.Helper()
	rows, counted = map[jobEnd]int64{}, map[jobEnd]int64{}
	require.NoError(t, db.Query(t.Context(), w.s.Read, func(r *sql.Rows) error {
		var e jobEnd
		var n int64
		err := r.Scan(&e.job, &e.state, &n)
		rows[e] = n
		return err
	}, "SELECT job_id, state, COUNT(*) FROM executions WHERE tenant_id = ? AND parent_id = 0 AND state >= ? GROUP BY job_id, state", int64(w.tenant), int64(domain.Succeeded)))
	all := map[domain.State]int64{}
	for _, job := range w.jobs {
		sums, err := w.s.SumRuns(t.Context(), wideSum(w, domain.StatisticsOfJob, int64(job)))
		require.NoError(t, err)
		for at, sum := range sums {
			counted[jobEnd{int64(job), at.State}] += sum.Runs
			all[at.State] += sum.Runs
		}
	}
	for kind, subject := range map[domain.StatisticKind]int64{domain.StatisticsOfTenant: 0, domain.StatisticsOfExecutor: int64(w.executor)} {
		sums, err := w.s.SumRuns(t.Context(), wideSum(w, kind, subject))
		require.NoError(t, err)
		same := map[domain.State]int64{}
		for at, sum := range sums {
			same[at.State] += sum.Runs
		}
		require.Equal(t, all, same)
	}
	return rows, counted
}

func wideSum(w *world, kind domain.StatisticKind, subject int64) store.SumRunsParams {
	now := time.Now()
	return store.SumRunsParams{
		Tenant: w.tenant, Kind: kind, Subjects: []int64{subject}, Step: domain.StepDay,
		From: now.Add(-48 * time.Hour).Truncate(24 * time.Hour), To: now.Add(48 * time.Hour).Truncate(24 * time.Hour),
	}
}

var errDied = errors.New("the node died")

// However runs end, and wherever nodes die, statistics say what the rows say.
func TestStatisticsEqualTheRows(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			w := newWorld(t, s, 4, domain.BlockParallel)
			random := rand.New(rand.NewPCG(20, 85))
			died := map[string]int{}
			// dies lets a part of the transactions end with their node, before or after
			// the commit, or loses the answer of a commit.
			dies := func() {
				s.Commit = func(tx *sql.Tx) error {
					switch random.IntN(8) {
					case 0:
						died["before"]++
						return errors.Join(tx.Rollback(), errDied)
					case 1:
						died["after"]++
						return errors.Join(tx.Commit(), errDied)
					case 2:
						died["answer"]++
						return errors.Join(tx.Commit(), driver.ErrBadConn)
					}
					return tx.Commit()
				}
			}
			lives := func() { s.Commit = (*sql.Tx).Commit }
			outcomes := []domain.Outcome{domain.OutcomeSucceeded, domain.OutcomeSucceeded, domain.OutcomeFailed, domain.OutcomeTimedOut, domain.OutcomeCancelled, domain.OutcomeUnknown}
			for range 40 {
				lives()
				claimed := w.plan(2)
				offered, err := s.OfferExecutions(t.Context(), w.offers(claimed))
				require.NoError(t, err)
				granted, err := s.GrantOffers(t.Context(), w.grants(offered))
				require.NoError(t, err)
				reports := w.reports(granted)
				dies()
				for _, first := range []bool{true, false} { // a late result may change the end
					for i := range reports {
						reports[i].Report.Outcome = outcomes[random.IntN(len(outcomes))]
						if !first && random.IntN(2) == 0 {
							_, _ = s.RequestCancel(t.Context(), w.tenant, reports[i].Report.ExecutionID, domain.ReasonKilled, "")
						}
					}
					_, _ = s.FinishAttempts(t.Context(), reports[:random.IntN(len(reports))+1])
					if random.IntN(2) == 0 {
						_, _ = s.CountEnds(t.Context(), 0)
					}
				}
				if random.IntN(5) == 0 {
					_, _ = s.WidenStatistics(t.Context(), store.StatisticsKept{Minutes: -time.Hour, Hours: 48 * time.Hour, Days: 48 * time.Hour}, 3)
				}
				lives()
				rows, counted := endsOf(t, w)
				require.NotEmpty(t, rows)
				require.Equal(t, rows, counted)
			}
			for range 3 {
				_, err := s.CountEnds(t.Context(), 0)
				require.NoError(t, err)
			}
			rows, counted := endsOf(t, w)
			require.Equal(t, rows, counted)
			require.GreaterOrEqual(t, len(rows), 4*4, "all kinds of ends came up")
			errors := map[int64]int64{}
			for end, n := range rows {
				if domain.FailedState(end.state) {
					errors[end.job] += n
				}
			}
			for _, row := range failureRows(t, s, "1 = 1") {
				errors[row.job] -= row.runs
			}
			for job, n := range errors {
				require.Zero(t, n, "failures of job %d", job)
			}
			require.Len(t, died, 3, "in all ways")
			var left int
			require.NoError(t, s.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM outbox WHERE topic = 1").Scan(&left))
			require.Zero(t, left)
		})
	}
}

// Nothing is counted where statistics are off.
func TestNoStatistics(t *testing.T) {
	s := openStore(t, bothDatabases["sqlite"](t))
	w := newWorld(t, s, 2, domain.BlockParallel)
	s.Unread = domain.TopicEnds
	w.finishAll(w.plan(1))
	rows, counted := endsOf(t, w)
	require.NotEmpty(t, rows)
	require.Empty(t, counted)
}

// finishAll runs executions to their end.
func (w *world) finishAll(claimed []domain.Execution) {
	w.tb.Helper()
	offered, err := w.s.OfferExecutions(w.tb.Context(), w.offers(claimed))
	require.NoError(w.tb, err)
	granted, err := w.s.GrantOffers(w.tb.Context(), w.grants(offered))
	require.NoError(w.tb, err)
	_, err = w.s.FinishAttempts(w.tb.Context(), w.reports(granted))
	require.NoError(w.tb, err)
}

// What is read of statistics is read by an index, however many there are.
func TestStatisticsUseIndexes(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
				for i := range 2000 {
					_, err := x.Exec(x.Ctx, fmt.Sprintf("INSERT INTO statistics (tenant_id, kind, subject_id, at, step, state, runs, started, late_ms, max_late_ms, late, ran, ran_ms, max_ran_ms, took)"+
						" VALUES (%d, 3, %d, %d, 1, 10, 1, 0, 0, 0, '', 0, 0, 0, '')", i%3, i%40, i*60_000))
					if err != nil {
						return err
					}
				}
				return nil
			}))
			if name == "mysql" {
				_, err := s.Write.ExecContext(t.Context(), "ANALYZE TABLE statistics")
				require.NoError(t, err)
			}
			e := &explainer{t: t, s: s, tables: map[string]bool{"statistics": true}}
			e.explain(t.Context(), console.RunSums(s.Dialect, store.SumRunsParams{Tenant: 1, Kind: 3, Subjects: []int64{4, 5}, Step: domain.StepHour, From: time.UnixMilli(0), To: time.UnixMilli(60_000_000)}))
			e.explain(t.Context(), "SELECT * FROM statistics"+console.OldStatistics(s.Dialect, domain.StepMinute, time.UnixMilli(600_000), 10))
		})
	}
}

// TestOutboxDepths: how much waits for a reader, and for how long.
func TestOutboxDepths(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			waiting := func(most int) (int, time.Duration) {
				depths, err := s.OutboxDepths(t.Context(), most)
				require.NoError(t, err)
				require.Len(t, depths, len(domain.Topics))
				require.Zero(t, depths[domain.TopicEvents], "a topic has its own depth")
				return depths[domain.TopicEnds].Rows, depths[domain.TopicEnds].Age
			}
			rows, age := waiting(10)
			require.Zero(t, rows)
			require.Zero(t, age)
			require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
				now, err := x.Clock()
				for n, ago := range []time.Duration{time.Hour, time.Minute, 0} {
					if err == nil {
						_, err = x.Exec(x.Ctx, "INSERT INTO outbox (topic, id, body) VALUES (1, ?, ?)", domain.IDFloor(now.Add(-ago))+int64(n),
							record.EncodeEnds([]domain.RunEnd{{Tenant: 1, Executor: 2, Job: 3, Minute: 4, State: domain.Succeeded, Late: -1, Took: -1}}))
					}
				}
				return err
			}))
			rows, age = waiting(10)
			require.Equal(t, 3, rows)
			require.GreaterOrEqual(t, age, time.Hour)
			rows, _ = waiting(2)
			require.Equal(t, 2, rows, "no more are counted than that")
			if name == "mysql" { // SQLite calls it a scan, which the LIMIT ends
				(&explainer{t: t, s: s, tables: map[string]bool{"outbox": true}, few: 10}).explain(t.Context(), db.OutboxDepthQuery(s.Dialect, 10))
			}
			_, err := s.CountEnds(t.Context(), 0)
			require.NoError(t, err)
			rows, age = waiting(10)
			require.Zero(t, rows)
			require.Zero(t, age)
		})
	}
}

// TestEndsAreCountedTogether: ends of one job are one row to add to, however many rows
// of the outbox they stand in, and what one transaction adds to has a bound, which is
// halved when it fails.
func TestEndsAreCountedTogether(t *testing.T) {
	for name, options := range bothDatabases {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, options(t))
			// write writes rows of the outbox, each with the ends of some jobs of a tenant.
			write := func(rows, jobs int, job func(row, n int) int) {
				require.NoError(t, s.Run(t.Context(), "fill", func(x *db.Tx) error {
					for row := range rows {
						ends := make([]domain.RunEnd, jobs)
						for n := range ends {
							ends[n] = domain.RunEnd{Tenant: 1, Executor: 2, Job: domain.JobID(job(row, n)), Minute: 4, State: domain.Succeeded, Late: 1, Took: 2}
						}
						if err := record.InsertEnds(x, ends); err != nil {
							return err
						}
					}
					return nil
				}))
			}
			left := func() (n int) {
				require.NoError(t, s.Read.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM outbox WHERE topic = 1").Scan(&n))
				return n
			}
			runs := func(kind domain.StatisticKind) (rows, runs int64) {
				require.NoError(t, s.Read.QueryRowContext(t.Context(), "SELECT COUNT(*), COALESCE(SUM(runs), 0) FROM statistics WHERE kind = ?", int(kind)).Scan(&rows, &runs))
				return rows, runs
			}
			write(1201, 2, func(_, n int) int { return n + 1 })
			more, err := s.CountEnds(t.Context(), 0)
			require.NoError(t, err)
			require.False(t, more)
			require.Zero(t, left(), "three pages of the outbox")
			rows, n := runs(domain.StatisticsOfJob)
			require.Equal(t, []int64{2, 2402}, []int64{rows, n})

			write(50, 500, func(row, n int) int { return 10 + 500*row + n })
			commit := s.Commit
			s.Commit = func(tx *sql.Tx) error { return errors.Join(tx.Rollback(), errDied) }
			for range 2 {
				_, err = s.CountEnds(t.Context(), 0)
				require.ErrorIs(t, err, errDied)
			}
			s.Commit = commit
			more, err = s.CountEnds(t.Context(), 0)
			require.NoError(t, err)
			require.True(t, more)
			require.Equal(t, 40, left(), "5,000 of 20,000 at most after two failures")
			more, err = s.CountEnds(t.Context(), 0)
			require.NoError(t, err)
			require.True(t, more)
			require.Equal(t, 20, left(), "and twice as many again")
			more, err = s.CountEnds(t.Context(), 0)
			require.NoError(t, err)
			require.False(t, more)
			require.Zero(t, left())
			_, n = runs(domain.StatisticsOfTenant)
			require.EqualValues(t, 2402+25_000, n)
			rows, n = runs(domain.StatisticsOfJob)
			require.Equal(t, []int64{2 + 25_000, 2402 + 25_000}, []int64{rows, n})
		})
	}
}
