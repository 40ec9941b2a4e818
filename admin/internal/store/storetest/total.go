package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testTotals(t *testing.T, f *fixture) {
	var jobs []store.JobView
	for i := range 4 {
		jobs = append(jobs, f.jobFiring(f.now().Add(time.Hour), func(s *domain.JobSpec) {
			s.Name, s.Labels, s.Owner.Name = fmt.Sprintf("total %d", i), map[string]string{"part": fmt.Sprint(i % 2)}, "Ann"
		}))
	}
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: jobs[1].ID, State: domain.JobPaused})
	f.ok(err)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: jobs[2].ID, State: domain.JobDeleted})
	f.ok(err)
	count := func(want int, p store.ListJobsParams) {
		t.Helper()
		p.Tenant = f.tenant
		got, err := f.s.TotalJobs(f.ctx, p)
		f.ok(err)
		require.Equal(t, store.Total{Count: want}, got)
		p.Limit = 100
		listed, err := f.s.ListJobs(f.ctx, p)
		f.ok(err)
		require.Len(t, listed, want)
	}
	count(3, store.ListJobsParams{})
	count(3, store.ListJobsParams{AllKinds: true})
	count(1, store.ListJobsParams{State: domain.JobPaused})
	count(2, store.ListJobsParams{Label: "part=1", Owner: "ann"})
	count(3, store.ListJobsParams{Executor: f.executor, Query: "total"})
	count(0, store.ListJobsParams{Within: domain.Within(f.executor + 1)})
	count(0, store.ListJobsParams{NeverFires: true})

	for i := range 5 {
		e := f.start(f.runAt(jobs[0], f.now().Add(-time.Duration(i+1)*time.Minute)))
		if i < 3 {
			f.finish(e, domain.OutcomeFailed)
		}
	}
	f.runAt(jobs[3], f.now().Add(-time.Minute))
	runs := func(want int, p store.ListExecutionsParams) {
		t.Helper()
		p.Tenant = f.tenant
		got, err := f.s.TotalExecutions(f.ctx, p)
		f.ok(err)
		require.Equal(t, store.Total{Count: want}, got)
		p.Limit = 100
		listed, err := f.s.ListExecutions(f.ctx, p)
		f.ok(err)
		require.Len(t, listed, want)
	}
	runs(6, store.ListExecutionsParams{})
	runs(3, store.ListExecutionsParams{States: []domain.State{domain.Failed}})
	runs(5, store.ListExecutionsParams{Job: jobs[0].ID})
	runs(2, store.ListExecutionsParams{Job: jobs[0].ID, States: []domain.State{domain.Running}})
	runs(6, store.ListExecutionsParams{Executor: f.executor})
	runs(6, store.ListExecutionsParams{Within: domain.Within(f.executor, f.executor+1)})
	runs(0, store.ListExecutionsParams{Within: domain.Within(f.executor + 1)})
	runs(5, store.ListExecutionsParams{Instance: f.instance, Within: domain.Within(f.executor)})
	runs(6, store.ListExecutionsParams{From: f.now().Add(-time.Hour), To: f.now().Add(time.Hour)})
	runs(0, store.ListExecutionsParams{To: f.now().Add(-time.Hour)})
	runs(1, store.ListExecutionsParams{Label: "part=1"})
	runs(0, store.ListExecutionsParams{Cause: domain.CauseTimer})
	f.calendar("holidays", "2026-10-01")
	f.calendar("weekends", "2026-10-03")
	calendars, err := f.s.CalendarTable().Count(f.ctx, f.tenant, 10)
	f.ok(err)
	require.Equal(t, 2, calendars)
	calendars, err = f.s.CalendarTable().Count(f.ctx, f.tenant, 1)
	f.ok(err)
	require.Equal(t, 1, calendars, "no more than asked for")
	none, err := f.s.TotalExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant + 1})
	f.ok(err)
	require.Zero(t, none)
}
