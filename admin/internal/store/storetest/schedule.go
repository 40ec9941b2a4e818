package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testSchedules(t *testing.T, f *fixture) {
	at := f.now().Add(time.Hour)
	c := f.calendar("holidays", "2026-10-01")
	var jobs []store.JobView
	for i := range 5 {
		jobs = append(jobs, f.jobFiring(at, func(s *domain.JobSpec) {
			s.Name, s.Input, s.Labels = fmt.Sprintf("job %d", i), []byte(`{"s":"`+strings.Repeat("x", 5000)+`"}`), map[string]string{"part": fmt.Sprint(i % 2)}
			s.Schedule = domain.ScheduleSpec{Kind: domain.ScheduleCron, Expr: fmt.Sprintf("%d 2 * * *", i), Dialect: "standard", Zone: "Asia/Shanghai", Calendars: []domain.CalendarUse{use(c)}}
		}))
	}
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: jobs[1].ID, State: domain.JobPaused})
	f.ok(err)
	list := func(p store.ListJobsParams, after domain.JobID) (names []string) {
		t.Helper()
		found, err := f.s.ListScheduled(f.ctx, p, after)
		f.ok(err)
		for i := range found {
			require.Equal(t, []any{"shop", f.executor, int64(1)}, []any{found[i].ExecutorName, found[i].Executor, found[i].Revision})
			names = append(names, found[i].Name)
		}
		return names
	}
	require.Equal(t, []string{"job 0", "job 2", "job 3", "job 4"}, list(store.ListJobsParams{Tenant: f.tenant}, 0))
	require.Equal(t, []string{"job 3"}, list(store.ListJobsParams{Tenant: f.tenant, Limit: 1}, jobs[2].ID))
	require.Equal(t, []string{"job 3"}, list(store.ListJobsParams{Tenant: f.tenant, Label: "part=1", Within: domain.Within(f.executor)}, 0))
	require.Empty(t, list(store.ListJobsParams{Tenant: f.tenant, Within: domain.Within(f.executor + 1)}, 0))
	require.Empty(t, list(store.ListJobsParams{Tenant: f.tenant + 1}, 0))

	keys := domain.Collect(jobs, func(v *store.JobView) store.JobRevision { return store.JobRevision{Job: v.ID, Revision: v.Revision} })
	found, err := f.s.FindSchedules(f.ctx, f.tenant, append(keys, store.JobRevision{Job: jobs[0].ID, Revision: 9}))
	f.ok(err)
	require.Len(t, found, 5)
	want := jobs[3].Spec.Schedule
	want.Calendars = []domain.CalendarUse{{ID: c.ID, Version: c.Version}}
	require.Equal(t, want, found[keys[3]])
	other, err := f.s.FindSchedules(f.ctx, f.tenant+1, keys)
	f.ok(err)
	require.Empty(t, other)

	f.ok(f.s.FillCalendar(f.ctx, f.tenant, &want.Calendars[0]))
	require.Equal(t, "holidays", want.Calendars[0].Content.Name)
	missing := domain.CalendarUse{ID: c.ID, Version: 9}
	f.ok(f.s.FillCalendar(f.ctx, f.tenant, &missing))
	require.Nil(t, missing.Content)

	// A page of long lists ends early.
	instants := make([]time.Time, 9000)
	for i := range instants {
		instants[i] = at.Add(time.Duration(i) * time.Minute).Truncate(time.Millisecond).UTC()
	}
	keys = nil
	for i := range 10 {
		v := f.jobFiring(at, func(s *domain.JobSpec) {
			s.Name, s.Schedule = fmt.Sprintf("long %d", i), domain.ScheduleSpec{Kind: domain.ScheduleInstants, Instants: instants}
		})
		keys = append(keys, store.JobRevision{Job: v.ID, Revision: v.Revision})
	}
	found, err = f.s.FindSchedules(f.ctx, f.tenant, keys)
	f.ok(err)
	require.Less(t, len(found), 10)
	require.NotEmpty(t, found)
	for _, s := range found {
		require.Equal(t, instants, s.Instants)
	}
}
