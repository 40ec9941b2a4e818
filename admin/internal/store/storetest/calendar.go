package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/resource/calendar"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// calendar creates a calendar with one holiday.
func (f *fixture) calendar(name, holiday string) domain.Calendar {
	f.t.Helper()
	c, err := f.makeCalendar(domain.CalendarSpec{Name: name, Holidays: []domain.CalendarDay{{Date: holiday, Name: "a day"}}})
	f.ok(err)
	return c
}

func (f *fixture) makeCalendar(spec domain.CalendarSpec) (domain.Calendar, error) {
	row := resource.Row{Meta: resource.Meta{ID: ids.Next(), Tenant: f.tenant, Name: spec.Name, CreatedBy: "anna", UpdatedBy: "anna"}, Spec: f.json(spec)}
	row, err := f.s.CalendarTable().Create(f.ctx, row)
	if err != nil {
		return domain.Calendar{}, err
	}
	return calendar.Of(&row)
}

func (f *fixture) json(value any) []byte {
	f.t.Helper()
	raw, err := json.Marshal(value)
	f.ok(err)
	return raw
}

func use(c domain.Calendar) domain.CalendarUse {
	return domain.CalendarUse{ID: c.ID, Version: c.Version, Content: &c.Spec}
}

func (f *fixture) edit(c domain.Calendar, holiday string) domain.Calendar {
	f.t.Helper()
	spec := c.Spec
	spec.Holidays = []domain.CalendarDay{{Date: holiday}}
	c, err := f.replaceCalendar(c, spec)
	f.ok(err)
	return c
}

func (f *fixture) replaceCalendar(c domain.Calendar, spec domain.CalendarSpec) (domain.Calendar, error) {
	row, err := f.s.CalendarTable().Find(f.ctx, f.tenant, int64(c.ID))
	if err == nil {
		row.Name, row.Version, row.Spec, row.UpdatedBy = spec.Name, c.Version, f.json(spec), "bob"
		row, err = f.s.CalendarTable().Replace(f.ctx, row)
	}
	if err != nil {
		return domain.Calendar{}, err
	}
	return calendar.Of(&row)
}

func (f *fixture) deleteCalendar(id domain.CalendarID) error {
	return f.s.CalendarTable().Delete(f.ctx, f.tenant, int64(id), 0, "bob")
}

func testCalendars(t *testing.T, f *fixture) {
	moment := time.UnixMilli(1800000000123).UTC()
	want := domain.CalendarSpec{
		Name: "节假日", Description: "d", Zone: "Asia/Shanghai", Weekend: []domain.Weekday{domain.Weekday(time.Friday)},
		Holidays:   []domain.CalendarDay{{Date: "2026-10-01", Name: "国庆节"}, {Date: "2026-10-02"}},
		MakeUpDays: []domain.CalendarDay{{Date: "2026-10-10", Name: "补班"}},
		Blackouts:  []domain.Blackout{{From: moment, To: moment.Add(time.Hour), Name: "freeze"}},
	}
	c, err := f.makeCalendar(want)
	f.ok(err)
	require.Equal(t, int64(1), c.Version)
	require.Equal(t, want, c.Spec)
	_, err = f.makeCalendar(want)
	f.code(domain.CodeConflict, err)
	found, err := f.s.FindCalendarByName(f.ctx, f.tenant, want.Name)
	f.ok(err)
	require.Equal(t, c, found)

	next := want
	next.Name, next.Weekend, next.Holidays = "holidays", []domain.Weekday{}, nil
	_, err = f.replaceCalendar(domain.Calendar{ID: c.ID, Version: 7}, next)
	f.code(domain.CodeRevisionMismatch, err)
	c, err = f.replaceCalendar(c, next)
	f.ok(err)
	require.Equal(t, int64(2), c.Version)
	require.Equal(t, next, c.Spec, "no weekend is not the default")
	rows, more, err := f.s.CalendarTable().ListVersions(f.ctx, f.tenant, int64(c.ID), 0, 10)
	f.ok(err)
	require.False(t, more)
	versions, err := domain.TryCollect(rows, calendar.Of)
	f.ok(err)
	require.Equal(t, []domain.CalendarSpec{next, want}, []domain.CalendarSpec{versions[0].Spec, versions[1].Spec})
	require.Equal(t, []string{"bob", "anna"}, []string{rows[0].CreatedBy, rows[1].CreatedBy})

	other := f.calendar("a first one", "2026-01-01")
	list := func(after string, limit int) (out []domain.Calendar) {
		rows, _, err := f.s.CalendarTable().List(f.ctx, f.tenant, after, limit)
		f.ok(err)
		out, err = domain.TryCollect(rows, calendar.Of)
		f.ok(err)
		return out
	}
	require.Equal(t, []domain.Calendar{other, c}, list("", 10))
	require.Equal(t, []domain.Calendar{c}, list(other.Spec.Name, 0))

	f.ok(f.deleteCalendar(c.ID))
	f.code(domain.CodeNotFound, f.deleteCalendar(c.ID))
	_, err = f.s.FindCalendar(f.ctx, f.tenant, c.ID)
	f.code(domain.CodeNotFound, err)
	back, err := f.s.CalendarTable().Restore(f.ctx, f.tenant, int64(c.ID), "carl")
	f.ok(err)
	restored, err := calendar.Of(&back)
	f.ok(err)
	require.Equal(t, domain.Calendar{ID: c.ID, TenantID: f.tenant, Version: 3, Spec: next}, restored)
	f.ok(f.deleteCalendar(c.ID))
	f.calendar("holidays", "2026-01-01") // the name is free again
}

// A job names a version; an edit of the calendar is an edit of the job.
func testJobCalendars(t *testing.T, f *fixture) {
	c := f.calendar("holidays", "2026-10-01")
	j := f.jobFiring(f.now().Add(-time.Second), func(s *domain.JobSpec) {
		s.Schedule.Calendars, s.Schedule.Days = []domain.CalendarUse{use(c)}, "workdays"
	})
	require.Equal(t, []domain.CalendarUse{use(c)}, j.Spec.Schedule.Calendars, "with its contents")
	require.Equal(t, "workdays", j.Spec.Schedule.Days)
	_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Next: at(domain.Never), Spec: func() domain.JobSpec {
		s := j.Spec
		s.Schedule.Calendars = []domain.CalendarUse{{ID: 12345, Version: 1, Content: &c.Spec}}
		return s
	}()})
	f.code(domain.CodeInvalid, err)
	f.code(domain.CodeConflict, f.deleteCalendar(c.ID))
	jobs, err := f.s.ListCalendarJobs(f.ctx, f.tenant, c.ID, 10)
	f.ok(err)
	require.Equal(t, []store.JobRef{{Tenant: f.tenant, ID: j.ID, Name: j.Spec.Name}}, jobs)

	// A planned run, and a fire time that is excluded ahead of its time.
	now := f.now()
	got, err := f.s.ClaimDueTriggers(f.ctx, store.ClaimDueTriggersParams{
		Partitions: f.held[j.Partition : j.Partition+1], Limit: 1000,
		Plan: func(now time.Time, t domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
			if t.JobID != j.ID {
				return store.TriggerPlan{NextFireAt: t.NextFireAt.Add(time.Hour), LastFireAt: t.LastFireAt}
			}
			ahead, out, past := planned(&j.Job, now.Add(time.Hour), now), planned(&j.Job, now.Add(2*time.Hour), now), planned(&j.Job, now.Add(-time.Hour), now)
			for _, e := range []*domain.Execution{&out, &past} {
				e.State, e.Reason, e.WakeAt, e.FinishedAt = domain.Excluded, domain.ReasonCalendar, time.Time{}, now
			}
			return store.TriggerPlan{Executions: []domain.Execution{ahead, out, past}, NextFireAt: now.Add(3 * time.Hour), LastFireAt: now}
		},
	})
	f.ok(err)
	mine := f.mine(got.Executions)
	require.Len(t, mine, 3)
	require.Equal(t, domain.Excluded, f.find(mine[1]).State)
	counts, err := f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, now.Add(-time.Minute))
	f.ok(err)
	require.Equal(t, []int64{2, 0}, []int64{counts[domain.Excluded], counts[domain.Missed]})
	for state, want := range map[domain.State]int{domain.Excluded: 2, domain.Missed: 0} {
		rows, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID, States: []domain.State{state}, Limit: 10})
		f.ok(err)
		require.Len(t, rows, want, state)
	}

	behind := func() []store.JobRef {
		list, err := f.s.ListJobsBehind(f.ctx, c.ID, 10)
		f.ok(err)
		return list
	}
	require.Empty(t, behind())
	c = f.edit(c, "2027-10-01")
	require.Equal(t, []store.JobRef{{Tenant: f.tenant, ID: j.ID}}, behind())
	follow := func() bool {
		did, err := f.s.FollowCalendars(f.ctx, store.FollowCalendarsParams{Tenant: f.tenant, Job: j.ID, Next: at(now.Add(time.Hour))})
		f.ok(err)
		return did
	}
	require.True(t, follow())
	require.False(t, follow(), "it is up to date")
	require.Empty(t, behind())
	view := f.view(j)
	require.Equal(t, int64(2), view.Revision)
	require.Equal(t, []domain.CalendarUse{use(c)}, view.Spec.Schedule.Calendars)
	require.Equal(t, now.Add(time.Hour), view.NextFireAt)
	require.Equal(t, "bob, because calendar "+c.Spec.Name+" changed", view.UpdatedBy)
	for _, e := range mine[:2] {
		_, err = f.s.FindExecution(f.ctx, f.tenant, e.ID)
		f.code(domain.CodeNotFound, err)
	}
	require.Equal(t, domain.Excluded, f.find(mine[2]).State, "what has passed stays")
	revisions, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Limit: 10})
	f.ok(err)
	require.Equal(t, "2027-10-01", revisions.Items[0].Spec.Schedule.Calendars[0].Content.Holidays[0].Date)
	require.Equal(t, "2026-10-01", revisions.Items[1].Spec.Schedule.Calendars[0].Content.Holidays[0].Date)

	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	f.ok(f.deleteCalendar(c.ID))
	did, err := f.s.FollowCalendars(f.ctx, store.FollowCalendarsParams{Tenant: f.tenant, Job: j.ID, Next: at(domain.Never)})
	f.ok(err)
	require.False(t, did)
}

// Another tenant neither sees a calendar nor plans by it.
func testCalendarWall(t *testing.T, f *fixture) {
	c := f.calendar("secret days", "2026-10-01")
	b := newFixture(t, f.s)
	_, err := b.s.FindCalendar(b.ctx, b.tenant, c.ID)
	f.code(domain.CodeNotFound, err)
	_, err = b.s.FindCalendarByName(b.ctx, b.tenant, c.Spec.Name)
	f.code(domain.CodeNotFound, err)
	_, err = b.replaceCalendar(c, c.Spec)
	f.code(domain.CodeNotFound, err)
	f.code(domain.CodeNotFound, b.deleteCalendar(c.ID))
	_, _, err = b.s.CalendarTable().ListVersions(b.ctx, b.tenant, int64(c.ID), 0, 10)
	f.code(domain.CodeNotFound, err)
	list, _, err := b.s.CalendarTable().List(b.ctx, b.tenant, "", 10)
	f.ok(err)
	require.Empty(t, list)
	jobs, err := b.s.ListCalendarJobs(b.ctx, b.tenant, c.ID, 10)
	f.ok(err)
	require.Empty(t, jobs)
	j := b.job(nil)
	spec := j.Spec
	spec.Schedule.Calendars = []domain.CalendarUse{use(c)}
	_, err = b.s.UpdateJob(b.ctx, store.UpdateJobParams{Tenant: b.tenant, ID: j.ID, Spec: spec, Next: at(domain.Never)})
	f.code(domain.CodeInvalid, err)
	did, err := b.s.FollowCalendars(b.ctx, store.FollowCalendarsParams{Tenant: b.tenant, Job: f.job(nil).ID})
	f.ok(err)
	require.False(t, did)
}
