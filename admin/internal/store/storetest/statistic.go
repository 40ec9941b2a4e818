package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// sums are all sums of jobs, executors or the tenant, whatever the step.
func (f *fixture) sums(kind domain.StatisticKind, step domain.StatisticStep, subjects ...int64) map[domain.State]domain.RunSum {
	f.t.Helper()
	got, err := f.s.SumRuns(f.ctx, store.SumRunsParams{
		Tenant: f.tenant, Kind: kind, Subjects: subjects, Step: step, From: f.now().Add(-300 * 24 * time.Hour).Truncate(24 * time.Hour), To: f.now().Add(time.Hour),
	})
	f.ok(err)
	out := map[domain.State]domain.RunSum{}
	for at, sum := range got {
		require.Zero(f.t, at.At%step.Length().Milliseconds())
		all := out[at.State]
		all.Add(sum)
		out[at.State] = all
	}
	return out
}

func (f *fixture) jobSums(jobs ...store.JobView) map[domain.State]domain.RunSum {
	return f.sums(domain.StatisticsOfJob, domain.StepHour, domain.Collect(jobs, func(j *store.JobView) int64 { return int64(j.ID) })...)
}

// countAll empties the journal.
func (f *fixture) countAll() {
	f.t.Helper()
	for more := true; more; {
		var err error
		more, err = f.s.CountEnds(f.ctx, 0)
		f.ok(err)
	}
}

func testStatistics(t *testing.T, f *fixture) {
	once := func(s *domain.JobSpec) { s.Retry.MaxAttempts = 1 }
	j, other := f.timerJob(once), f.timerJob(once)
	for _, timer := range []store.SetTimer{
		f.timer(j, "late", f.now().Add(-3*time.Second), domain.TimerKeep), f.timer(j, "failed", f.now(), domain.TimerKeep), f.timer(j, "moved", f.now(), domain.TimerKeep),
		f.timer(j, "killed", f.now(), domain.TimerKeep), f.timer(other, "late", f.now().Add(-time.Second), domain.TimerKeep),
	} {
		f.setOK(domain.TimerCreated, timer)
	}
	last := domain.IDFloor(time.Now().Add(-150*day)) + 4096
	claimed, err := f.s.ClaimDueTimers(f.ctx, store.ClaimDueTimersParams{Partitions: f.held, Limit: 500, NewID: func() int64 { last++; return last }})
	f.ok(err)
	var ended []domain.ExecutionID
	for _, e := range f.mine(claimed.Executions) {
		switch _, key, _ := domain.SplitTimerOccurrence(e.OccurrenceKey); key {
		case "late":
			f.finish(f.start(e), domain.OutcomeSucceeded)
		case "failed":
			f.finish(f.start(e), domain.OutcomeFailed)
		case "killed":
			f.cancelTimers(j, key)
		case "moved": // it has not ended: a pending timer took its place
			_, err := f.s.RescheduleTimer(f.ctx, store.RescheduleTimerParams{Tenant: f.tenant, Job: j.ID, Key: key, FireAt: f.now().Add(time.Hour)})
			f.ok(err)
			continue
		}
		ended = append(ended, e.ID)
	}

	one := f.jobSums(j)
	require.Len(t, one, 3)
	require.Equal(t, []int64{1, 1, 1}, []int64{one[domain.Succeeded].Runs, one[domain.Failed].Runs, one[domain.Cancelled].Runs})
	require.Equal(t, []int64{1, 0}, []int64{one[domain.Succeeded].Late.N, one[domain.Cancelled].Late.N})
	require.GreaterOrEqual(t, one[domain.Succeeded].Late.MaxMS, int64(3000))
	require.Equal(t, []int64{1, 0}, []int64{one[domain.Succeeded].Took.N, one[domain.Cancelled].Took.N})
	both := f.jobSums(j, other)
	require.Equal(t, int64(2), both[domain.Succeeded].Runs)
	require.Equal(t, both[domain.Succeeded].Late.MaxMS, one[domain.Succeeded].Late.MaxMS)
	require.Greater(t, both[domain.Succeeded].Late.SumMS, one[domain.Succeeded].Late.SumMS)
	require.Empty(t, f.jobSums())
	executor := func() map[domain.State]domain.RunSum {
		return f.sums(domain.StatisticsOfExecutor, domain.StepDay, int64(f.executor))
	}
	require.Equal(t, both, executor())
	require.Equal(t, both, f.sums(domain.StatisticsOfTenant, domain.StepMinute))

	// The same before and after they are counted, when their runs are gone, and when
	// minutes became hours and hours days.
	f.countAll()
	require.Equal(t, both, f.jobSums(j, other))
	for _, id := range ended { // the others' are left alone
		f.ok(f.s.Age(f.ctx, id, 150*day))
	}
	n, err := f.s.DeleteTimersBefore(f.ctx, f.now().Add(-120*day), 100)
	f.ok(err)
	require.GreaterOrEqual(t, n, int64(4))
	require.Equal(t, "none", f.timerState(j, "late"))
	require.Equal(t, both, f.jobSums(j, other))
	widen := func(keep store.StatisticsKept) {
		for n := 1; n > 0; {
			n, err = f.s.WidenStatistics(f.ctx, keep, 3)
			f.ok(err)
		}
	}
	const ever = 1000 * 24 * time.Hour
	widen(store.StatisticsKept{Minutes: -time.Hour, Hours: ever, Days: ever})
	require.Empty(t, f.sums(domain.StatisticsOfJob, domain.StepMinute, int64(j.ID)))
	require.Equal(t, one, f.jobSums(j))
	require.Equal(t, both, executor())
	widen(store.StatisticsKept{Minutes: ever, Hours: -24 * time.Hour, Days: ever})
	require.Empty(t, f.jobSums(j))
	require.Equal(t, both, executor())
	require.Equal(t, both, f.sums(domain.StatisticsOfTenant, domain.StepDay))

	theirs := newFixture(t, f.s)
	require.Empty(t, theirs.jobSums(j))
	require.Empty(t, theirs.sums(domain.StatisticsOfTenant, domain.StepDay))
	got, err := f.s.SumRuns(f.ctx, store.SumRunsParams{
		Tenant: f.tenant, Kind: domain.StatisticsOfTenant, Step: domain.StepDay, From: f.now().Add(-48 * time.Hour).Truncate(24 * time.Hour), To: f.now().Truncate(24 * time.Hour),
	})
	f.ok(err)
	require.Empty(t, got, "what ended after the bounds")
	widen(store.StatisticsKept{Minutes: ever, Hours: ever, Days: -24 * time.Hour})
	require.Empty(t, executor())
}

// testLateEndCounted: a run that counted as lost comes to succeed, and counts once.
func testLateEndCounted(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.OnLost = domain.OnLostFail })
	e := f.start(f.run(j))
	require.Equal(t, domain.Lost, f.finish(e, domain.OutcomeUnknown).Execution.State)
	require.Equal(t, int64(1), f.jobSums(j)[domain.Lost].Runs)
	f.countAll()
	f.finish(e, domain.OutcomeSucceeded)
	for range 2 {
		got := f.jobSums(j)
		require.Len(t, got, 1)
		require.Equal(t, int64(1), got[domain.Succeeded].Runs)
		f.countAll()
	}
}

// testOverdue: what has not begun by its time, with and without a run.
func testOverdue(t *testing.T, f *fixture) {
	list := func(by time.Duration, limit int) (out []store.Overdue, more bool) {
		out, more, err := f.s.ListOverdue(f.ctx, store.ListOverdueParams{Tenant: f.tenant, By: by, Limit: limit})
		f.ok(err)
		return out, more
	}
	now := f.now()
	never, soon := f.jobFiring(now.Add(-10*time.Minute), nil), f.jobFiring(now.Add(time.Hour), nil)
	j := f.job(nil)
	waits, runs, done, young := f.runAt(j, now.Add(-5*time.Minute)), f.runAt(j, now.Add(-6*time.Minute)), f.runAt(j, now.Add(-7*time.Minute)), f.run(j)
	f.start(runs)
	f.finish(f.start(done), domain.OutcomeSucceeded)
	got, more := list(time.Minute, 10)
	require.False(t, more)
	require.Len(t, got, 2)
	require.Equal(t, []any{never.ID, domain.ExecutionID(0), never.Spec.Name, "shop"}, []any{got[0].Job, got[0].Run, got[0].JobName, got[0].ExecutorName})
	require.Equal(t, []any{j.ID, waits.ID}, []any{got[1].Job, got[1].Run})
	require.GreaterOrEqual(t, got[1].By, 5*time.Minute)
	got, more = list(time.Minute, 1)
	require.True(t, more)
	require.Len(t, got, 1)
	got, _ = list(8*time.Minute, 10)
	require.Len(t, got, 1)
	require.NotEqual(t, soon.ID, got[0].Job)
	theirs := newFixture(t, f.s)
	none, _, err := f.s.ListOverdue(f.ctx, store.ListOverdueParams{Tenant: theirs.tenant, By: time.Second, Limit: 10})
	f.ok(err)
	require.Empty(t, none)
	f.setNext(never, domain.Never)
	for _, e := range []domain.Execution{waits, young} {
		_, err := f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
		f.ok(err)
	}
}

// testRecentRuns: with each job of a list its newest runs, and no other one's.
func testRecentRuns(t *testing.T, f *fixture) {
	j, other, none := f.job(nil), f.job(nil), f.job(nil)
	var want []domain.ExecutionID
	for i := range store.RecentRuns + 3 {
		e := f.runAt(j, f.now().Add(time.Duration(i-20)*time.Minute))
		f.finish(f.start(e), domain.OutcomeSucceeded)
		want = append([]domain.ExecutionID{e.ID}, want...)
	}
	one := f.runAt(other, f.now().Add(-time.Minute))
	f.finish(f.start(one), domain.OutcomeFailed)
	ids := func(list []store.LastRun) []domain.ExecutionID {
		return domain.Collect(list, func(r *store.LastRun) domain.ExecutionID { return r.ID })
	}
	list := func(recent int) map[domain.JobID][]store.LastRun {
		views, err := f.s.ListJobs(f.ctx, store.ListJobsParams{Tenant: f.tenant, Limit: 50, Recent: recent})
		f.ok(err)
		found := map[domain.JobID][]store.LastRun{}
		for _, v := range views {
			found[v.ID] = v.Recent
			if len(v.Recent) > 0 {
				require.Equal(t, v.Recent[0], *v.LastRun)
			}
		}
		return found
	}
	for recent, n := range map[int]int{0: store.RecentRuns, 3: 3, store.MostRecentRuns: len(want)} {
		found := list(recent)
		require.Equal(t, want[:n], ids(found[j.ID]))
		require.Equal(t, domain.Failed, found[other.ID][0].State)
		require.Len(t, found[other.ID], 1)
		require.Empty(t, found[none.ID])
	}
	of, err := f.s.ListRecentRuns(f.ctx, f.tenant, j.ID, store.MostRecentRuns)
	f.ok(err)
	require.Equal(t, list(store.MostRecentRuns)[j.ID], of)
	theirs := newFixture(t, f.s)
	of, err = f.s.ListRecentRuns(f.ctx, theirs.tenant, j.ID, 5)
	f.ok(err)
	require.Empty(t, of)
}

// testRecentRunsMeasured: durations, starts and messages are those of the runs themselves.
func testRecentRunsMeasured(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { s.Retry.MaxAttempts = 2; s.Retry.Delay = time.Millisecond })
	newest := func() store.LastRun {
		list, err := f.s.ListRecentRuns(f.ctx, f.tenant, j.ID, 1)
		f.ok(err)
		require.Len(t, list, 1)
		return list[0]
	}
	e := f.runAt(j, f.now().Add(-3*time.Minute))
	require.Equal(t, []any{time.Duration(-1), time.Time{}}, []any{newest().Took, newest().FirstStartAt})
	f.finish(f.start(e), domain.OutcomeSucceeded)
	same := func(r store.LastRun) {
		t.Helper()
		view, err := f.s.FindExecution(f.ctx, f.tenant, r.ID)
		f.ok(err)
		took, ok := view.Duration()
		require.True(t, ok)
		first := view.FirstStartAt
		if first.IsZero() {
			first = view.StartedAt
		}
		require.Equal(t, []any{took, first, view.Cause, view.JitterMax}, []any{r.Took, r.FirstStartAt, r.Cause, r.JitterMax})
	}
	same(newest())
	require.Empty(t, newest().Message)

	fail := func(e domain.Execution) {
		r := f.report(f.start(e), domain.OutcomeFailed)
		r.Report.Error = "\n  cannot pay: " + strings.Repeat("käse ", 300)
		_, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{r})
		f.ok(err)
	}
	failed := f.runAt(j, f.now().Add(-2*time.Minute))
	fail(failed)
	require.Equal(t, domain.RetryWait, newest().State)
	require.Empty(t, newest().Message, "it has not ended")
	fail(f.find(failed))
	r := newest()
	require.Equal(t, domain.Failed, r.State)
	same(r)
	require.Equal(t, domain.ShortError(f.find(failed).Error), r.Message)
	require.True(t, strings.HasPrefix(r.Message, "cannot pay: käse"))
	require.LessOrEqual(t, len(r.Message), domain.ShortErrorBytes)
}
