package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func testWholeJobs(t *testing.T, f *fixture) {
	at := f.now().Add(time.Hour).Truncate(time.Second)
	c := f.calendar("holidays", "2026-10-01")
	var names []string
	var jobs []store.JobView
	for i := range 5 {
		j := f.jobFiring(at.Add(time.Duration(i/3)*time.Second), func(s *domain.JobSpec) {
			s.Name, s.Input = fmt.Sprintf("whole %d", i), []byte(`{"number":12345678901234567890}`)
			s.Schedule.Calendars = []domain.CalendarUse{use(c)}
		})
		names, jobs = append(names, j.Spec.Name), append(jobs, j)
	}
	found, err := f.s.FindJobsByName(f.ctx, f.tenant, append(names, "nobody"))
	f.ok(err)
	require.Len(t, found, 5)
	require.Equal(t, jobs[1].Spec, found["whole 1"].Spec)
	require.Equal(t, "shop", found["whole 1"].ExecutorName)
	require.Equal(t, at.UnixMilli(), found["whole 1"].NextFireAt.UnixMilli())
	byID, err := f.s.FindJobsByID(f.ctx, f.tenant, []domain.JobID{jobs[0].ID, 12345})
	f.ok(err)
	require.Len(t, byID, 1)
	other, err := f.s.FindJobsByName(f.ctx, f.tenant+1, names)
	f.ok(err)
	require.Empty(t, other)

	page, more, err := f.s.ListWholeJobs(f.ctx, store.ListWholeJobsParams{Tenant: f.tenant, After: "whole 0", Limit: 3})
	f.ok(err)
	require.True(t, more)
	require.Equal(t, []string{"whole 1", "whole 2", "whole 3"}, domain.Collect(page, func(v *store.JobView) string { return v.Spec.Name }))
	require.JSONEq(t, `{"number":12345678901234567890}`, string(page[0].Spec.Input))
	require.Equal(t, "holidays", page[0].Spec.Schedule.Calendars[0].Content.Name)
	page, _, err = f.s.ListWholeJobs(f.ctx, store.ListWholeJobsParams{Tenant: f.tenant, Within: domain.Within(f.executor + 1), Limit: 3})
	f.ok(err)
	require.Empty(t, page)

	counts, err := f.s.CountFires(f.ctx, f.tenant, []int64{at.Unix(), at.Unix() + 1, at.Unix() + 2}, 10)
	f.ok(err)
	require.Equal(t, map[int64]int{at.Unix(): 3, at.Unix() + 1: 2, at.Unix() + 2: 0}, counts)
	counts, err = f.s.CountFires(f.ctx, f.tenant, []int64{at.Unix()}, 2)
	f.ok(err)
	require.Equal(t, 2, counts[at.Unix()], "no more than asked for")

	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: jobs[0].ID, State: domain.JobDeleted, IfRevision: 7})
	f.code(domain.CodeRevisionMismatch, err)
}

func testDocumentSets(t *testing.T, f *fixture) {
	members := []resource.SetMember{{Kind: "Calendar", ID: 9}, {Kind: "Job", ID: 7}, {Kind: "Job", ID: 8}}
	list := func(set string) []resource.SetMember {
		got, err := f.s.ListDocumentSet(f.ctx, f.tenant, set)
		f.ok(err)
		return got
	}
	f.ok(f.s.SaveDocumentSet(f.ctx, f.tenant, "shop", members, nil))
	f.ok(f.s.SaveDocumentSet(f.ctx, f.tenant, "shop", members[:1], nil))
	require.Equal(t, members, list("shop"))
	f.ok(f.s.SaveDocumentSet(f.ctx, f.tenant, "other", members[:1], members[1:]))
	require.Equal(t, members[1:], list("shop"), "one leaves its own set only")
	require.Equal(t, members[:1], list("other"))
	f.ok(f.s.SaveDocumentSet(f.ctx, f.tenant, "shop", nil, members[1:2]))
	require.Equal(t, members[2:], list("shop"))
	got, err := f.s.ListDocumentSet(f.ctx, f.tenant+1, "shop")
	f.ok(err)
	require.Empty(t, got)
	names, err := f.s.ListDocumentSetNames(f.ctx, f.tenant)
	f.ok(err)
	require.Equal(t, []string{"other", "shop"}, names)
	names, err = f.s.ListDocumentSetNames(f.ctx, f.tenant+1)
	f.ok(err)
	require.Empty(t, names)
}

// testChangeJobs: many jobs are changed in few transactions. One that is refused does not undo
// the others.
func testChangeJobs(t *testing.T, f *fixture) {
	jobs := make([]store.JobView, 60)
	for i := range jobs {
		jobs[i] = f.job(nil)
	}
	list := domain.Collect(jobs, func(v *store.JobView) domain.JobID { return v.ID })
	list = append(list, 12345)
	update := func(to int, from int64) []error {
		return f.s.ChangeJobs(f.ctx, f.tenant, list, func(i int, job *store.LockedJob) error {
			if i == 59 {
				return job.SetState(store.SetJobStateParams{Tenant: f.tenant, ID: job.ID, State: domain.JobDeleted, IfRevision: job.Revision, By: "ann"})
			}
			spec := job.Spec
			if spec.Priority = to; i == 30 {
				spec.Name = jobs[0].Spec.Name
			}
			p := store.UpdateJobParams{Tenant: f.tenant, ID: job.ID, IfRevision: from, Spec: spec, Source: domain.SourceConsole, By: "ann", Next: at(domain.Never)}
			if i == 3 {
				p.IfRevision = 7
			}
			return job.Update(p)
		})
	}
	errs := update(5, 1)
	for i, err := range errs {
		switch i {
		case 3:
			f.code(domain.CodeRevisionMismatch, err)
		case 30:
			f.code(domain.CodeConflict, err)
		case 60:
			f.code(domain.CodeNotFound, err)
		default:
			f.ok(err)
		}
	}
	found, err := f.s.FindJobsByID(f.ctx, f.tenant, list)
	f.ok(err)
	require.Len(t, found, 59, "one was deleted")
	for _, v := range found {
		want := []int64{2, 5}
		if v.ID == list[3] || v.ID == list[30] {
			want = []int64{1, 0}
		}
		require.Equal(t, want, []int64{v.Revision, int64(v.Spec.Priority)})
	}
	for _, err := range f.s.ChangeJobs(f.ctx, f.tenant+1, list, func(int, *store.LockedJob) error { panic("of another tenant") }) {
		f.code(domain.CodeNotFound, err)
	}
}
