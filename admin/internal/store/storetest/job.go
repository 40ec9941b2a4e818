package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func at(when time.Time) store.NextFireFunc {
	return func(time.Time, *domain.JobSpec) time.Time { return when }
}

func testJobLifecycle(t *testing.T, f *fixture) {
	next := f.now().Add(time.Hour)
	j := f.jobFiring(next, nil)
	require.Equal(t, domain.JobEnabled, j.State)
	require.Equal(t, next, j.NextFireAt)
	require.Equal(t, "shop", j.ExecutorName)
	require.EqualValues(t, 1, j.Revision)
	require.Equal(t, domain.PartitionOf(j.ID), j.Partition)
	require.Equal(t, "anna", j.CreatedBy)
	require.Nil(t, j.LastRun)
	found, err := f.s.FindJobByName(f.ctx, f.tenant, j.Spec.Name)
	f.ok(err)
	require.Equal(t, j, found)

	spec := j.Spec
	spec.Name, spec.Timeout = "renamed "+spec.Name, time.Minute
	edit := store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, IfRevision: 1, Spec: spec, Source: domain.SourceCode, DeclarationHash: "h", By: "ben", Next: at(next.Add(time.Hour))}
	j, err = f.s.UpdateJob(f.ctx, edit)
	f.ok(err)
	require.EqualValues(t, 2, j.Revision)
	require.Equal(t, spec, j.Spec)
	require.Equal(t, next.Add(time.Hour), j.NextFireAt)
	require.Equal(t, domain.SourceCode, j.Source)
	require.Equal(t, "ben", j.UpdatedBy)
	_, err = f.s.UpdateJob(f.ctx, edit)
	f.code(domain.CodeRevisionMismatch, err)

	old, err := f.s.JobSpec(f.ctx, f.tenant, j.ID, 1)
	f.ok(err)
	require.NotEqual(t, spec.Name, old.Name)
	_, err = f.s.JobSpec(f.ctx, f.tenant, j.ID, 3)
	f.code(domain.CodeNotFound, err)
	revisions, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Limit: 10})
	f.ok(err)
	require.Len(t, revisions.Items, 2)
	require.EqualValues(t, 2, revisions.Items[0].Revision)
	require.Equal(t, "ben", revisions.Items[0].CreatedBy)

	set := func(state domain.JobState, note string) store.JobView {
		t.Helper()
		view, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: state, Note: note, By: "cleo", Next: at(next)})
		f.ok(err)
		return view
	}
	j = set(domain.JobPaused, "holiday")
	require.Equal(t, domain.Never, j.NextFireAt)
	require.Equal(t, domain.Pause{By: "cleo", At: j.UpdatedAt, Note: "holiday"}, j.Pause)
	written := store.Authorship{At: revisions.Items[0].CreatedAt, By: "ben"}
	require.Equal(t, written, j.Written, "a pause writes no revision")
	found, err = f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Equal(t, []any{written, "cleo"}, []any{found.Written, found.UpdatedBy})
	wholes, _, err := f.s.ListWholeJobs(f.ctx, store.ListWholeJobsParams{Tenant: f.tenant})
	f.ok(err)
	require.Len(t, wholes, 1)
	require.Equal(t, written, wholes[0].Written)
	enabled, paused, err := f.s.CountJobs(f.ctx, f.tenant, domain.Reach{})
	f.ok(err)
	require.Equal(t, []int{0, 1}, []int{enabled, paused})
	edit.IfRevision = 0
	j, err = f.s.UpdateJob(f.ctx, edit)
	f.ok(err)
	require.Equal(t, domain.Never, j.NextFireAt, "an edit does not resume")
	require.Equal(t, []any{"ben", "cleo"}, []any{j.UpdatedBy, j.Pause.By}, "an edit does not change who paused it")
	j = set(domain.JobEnabled, "")
	require.Equal(t, []any{next, domain.Pause{}}, []any{j.NextFireAt, j.Pause})
	fires, err := f.s.ListNextFires(f.ctx, f.tenant, domain.Reach{}, 5)
	f.ok(err)
	require.Len(t, fires, 1)

	require.Equal(t, domain.JobDeleted, set(domain.JobDeleted, "").State)
	_, err = f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.UpdateJob(f.ctx, edit)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobEnabled, Next: at(next)})
	f.code(domain.CodeNotFound, err)
}

func testJobNames(t *testing.T, f *fixture) {
	name := "Nightly"
	named := func(n string) func(*domain.JobSpec) { return func(s *domain.JobSpec) { s.Name = n } }
	j := f.job(named(name))
	f.job(named("nightly")) // names compare by bytes
	other := f.job(nil)
	create := func() error {
		_, err := f.s.CreateJob(f.ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, Spec: j.Spec, Source: domain.SourceConsole}, at(domain.Never))
		return err
	}
	f.code(domain.CodeConflict, create())
	spec := other.Spec
	spec.Name = name
	_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: other.ID, Spec: spec, Next: at(domain.Never)})
	f.code(domain.CodeConflict, err)
	unchanged, err := f.s.FindJob(f.ctx, f.tenant, other.ID)
	f.ok(err)
	require.EqualValues(t, 1, unchanged.Revision, "a refused edit leaves nothing behind")
	newFixture(t, f.s).job(named(name)) // another tenant

	for range 2 { // a name is free again after a deletion, more than once
		found, err := f.s.FindJobByName(f.ctx, f.tenant, name)
		f.ok(err)
		_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: found.ID, State: domain.JobDeleted})
		f.ok(err)
		f.ok(create())
	}
	_, err = f.s.CreateJob(f.ctx, domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: 1, Spec: other.Spec}, at(domain.Never))
	f.code(domain.CodeNotFound, err)
}

// A revision comes back as it was written.
func testJobSpecRoundTrip(t *testing.T, f *fixture) {
	moment := time.UnixMilli(1800000000123).UTC()
	want := domain.JobSpec{
		Name: "全部 🎵", Description: "d", Labels: map[string]string{"team": "pay", "k": "v=w"}, Handler: "h", Input: []byte("{ \"a\":1 }"),
		Schedule: domain.ScheduleSpec{
			Kind: domain.ScheduleCron, Expr: "0 0 2 * * *", Dialect: "quartz", Every: time.Second, Anchor: moment, At: moment, Zone: "Asia/Shanghai", StartAt: moment, EndAt: moment,
			Instants: []time.Time{moment, moment.Add(time.Hour)}, WindowFrom: "09:00", WindowTo: "17:30:30", Gap: "skip", Overlap: "both", JitterMax: time.Minute,
		},
		Misfire: domain.Misfire{Policy: domain.MisfireAll, Threshold: time.Minute, Window: time.Hour, MaxRuns: 7},
		Routing: domain.RouteConsistentHash, RoutingKey: "/customer/id", Require: selector(t, "zone in (eu, us), !spot"), Prefer: selector(t, "gpu=a100"),
		SendRetry: domain.SendRetry{MaxSends: 5, Delay: time.Second, Backoff: 2.5, MaxDelay: time.Minute},
		Blocking:  domain.BlockParallel, Parallelism: 3, MaxWaiting: 77,
		Retry: domain.Retry{MaxAttempts: 4, Delay: time.Second, Backoff: 1.5, MaxDelay: time.Hour}, Timeout: time.Minute, DispatchTimeout: time.Hour,
		OnLost: domain.OnLostRetry, Priority: -3, LogLevel: "WARN", Owner: domain.Owner{Name: "Anna", Email: "anna@example.com"},
		Alert:     domain.Alert{OnFailure: true, IncludeNoExecutor: true, Emails: []string{"a@example.com"}, WebhookURL: "https://x", WebhookSecret: []byte{0, 255}},
		OnSuccess: domain.FollowUp{Handler: "told"}, OnFailure: domain.FollowUp{Handler: "http", Executor: f.executor, Request: `{"url":"https://x"}`, Connection: 7}, CodeSays: domain.CodeSays{"labels.team", "owner"},
	}
	j := f.job(func(s *domain.JobSpec) { *s = want })
	require.Equal(t, want, j.Spec)
	revisions, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Limit: 1}) // from the database, not from the cache
	f.ok(err)
	require.Equal(t, want, revisions.Items[0].Spec)
	for _, says := range []domain.CodeSays{nil, {}} { // which are not the same
		j := f.job(func(s *domain.JobSpec) { s.CodeSays = says })
		revisions, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Limit: 1})
		f.ok(err)
		require.Equal(t, says, revisions.Items[0].Spec.CodeSays)
	}
}

func testJobLists(t *testing.T, f *fixture) {
	now := f.now()
	second := domain.ExecutorID(ids.Next())
	f.ok(f.s.CreateExecutor(f.ctx, domain.Executor{ID: second, TenantID: f.tenant, Name: "other"}))
	var views []store.JobView
	for i := range 7 {
		views = append(views, f.jobFiring(now.Add(time.Duration(10-i)*time.Hour), func(s *domain.JobSpec) {
			s.Name = fmt.Sprintf("n%d 100%%_done", i/2*2) + fmt.Sprint(i)
			s.Handler = []string{"even", "odd"}[i%2]
			s.Labels = map[string]string{"team": []string{"pay", "pa"}[i%2]}
			s.Owner.Email = fmt.Sprintf("Owner%d@example.com", i)
		}))
	}
	f.tick()
	_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: views[3].ID, Executor: second, Spec: views[3].Spec, Next: at(now.Add(7 * time.Hour))})
	f.ok(err)
	f.tick()
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: views[4].ID, State: domain.JobPaused})
	f.ok(err)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: views[5].ID, State: domain.JobDeleted})
	f.ok(err)
	list := func(p store.ListJobsParams) (out []int) {
		t.Helper()
		p.Tenant = f.tenant
		for { // through all pages
			page, err := f.s.ListJobs(f.ctx, p)
			f.ok(err)
			if len(page) == 0 {
				return out
			}
			for _, v := range page {
				for i := range views {
					if views[i].ID == v.ID {
						out = append(out, i)
					}
				}
			}
			last := page[len(page)-1]
			p.Cursor = store.JobCursor{Name: last.Spec.Name, At: last.NextFireAt, ID: last.ID}
			if p.Sort == store.SortByUpdated {
				p.Cursor.At = last.UpdatedAt
			}
		}
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 6}, list(store.ListJobsParams{Limit: 2}))
	require.Equal(t, []int{6, 3, 2, 1, 0, 4}, list(store.ListJobsParams{Sort: store.SortByNextFire, Limit: 2}))
	// 4 is paused; 5 is deleted; of the new ones two have a schedule that is over, one has none.
	for i := range 3 {
		views = append(views, f.jobFiring(domain.Never, func(s *domain.JobSpec) {
			s.Name = fmt.Sprintf("over %d", i)
			s.Schedule = domain.ScheduleSpec{Kind: []domain.ScheduleKind{domain.ScheduleOnce, domain.ScheduleNone, domain.ScheduleFixedDelay}[i], Every: time.Hour}
		}))
	}
	for _, sort := range []store.JobSort{store.SortByName, store.SortByNextFire, store.SortByUpdated} {
		require.ElementsMatch(t, []int{7, 9}, list(store.ListJobsParams{NeverFires: true, Sort: sort, Limit: 1}), sort)
	}
	require.Empty(t, list(store.ListJobsParams{NeverFires: true, Handler: "none such"}))
	for _, over := range views[7:] {
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: over.ID, State: domain.JobDeleted})
		f.ok(err)
	}
	require.Equal(t, []int{4, 3}, list(store.ListJobsParams{Sort: store.SortByUpdated, Limit: 4})[:2])
	require.Len(t, list(store.ListJobsParams{Sort: store.SortByUpdated, Limit: 1}), 6)
	require.Equal(t, []int{4}, list(store.ListJobsParams{State: domain.JobPaused}))
	require.Equal(t, []int{3}, list(store.ListJobsParams{Executor: second}))
	require.Equal(t, []int{1, 3}, list(store.ListJobsParams{Handler: "odd"}))
	require.Equal(t, []int{1, 3}, list(store.ListJobsParams{Label: "team=pa"}))
	require.Len(t, list(store.ListJobsParams{Label: "team"}), 6)
	require.Empty(t, list(store.ListJobsParams{Label: "tea"}))
	require.Equal(t, []int{2}, list(store.ListJobsParams{Owner: "owner2@"}))
	require.Len(t, list(store.ListJobsParams{Query: "100%_DONE"}), 6)
	require.Empty(t, list(store.ListJobsParams{Query: "1%0"}), "a wildcard is a character")
	testFoldedQueries(t, f)
	_, err = f.s.ListJobs(f.ctx, store.ListJobsParams{Tenant: f.tenant, Sort: "name; DROP TABLE jobs"})
	f.code(domain.CodeInvalid, err)

	e := f.start(f.run(views[0]))
	f.finish(e, domain.OutcomeFailed)
	f.runAt(views[0], now.Add(time.Hour)) // not yet: not the last run
	view, err := f.s.FindJob(f.ctx, f.tenant, views[0].ID)
	f.ok(err)
	ended := f.find(e)
	last := *view.LastRun
	require.Equal(t, []any{e.ID, domain.Failed, e.FireAt, ended.FinishedAt}, []any{last.ID, last.State, last.FireAt, last.FinishedAt})
}

// A text is found as it is written, whatever letters the database folds; those of
// ASCII in any case.
func testFoldedQueries(t *testing.T, f *fixture) {
	for _, name := range []string{"CAFÉ", "Ausführung", "İSTANBUL", "\u212aELVIN", "СЧЁТ", "ẞ und ß"} {
		executor := domain.Executor{ID: domain.ExecutorID(ids.Next()), TenantID: f.tenant, Name: name}
		f.ok(f.s.CreateExecutor(f.ctx, executor))
		j := f.job(func(s *domain.JobSpec) { s.Name, s.Owner.Name = name, name+" & sons" })
		e := f.run(j)
		ascii := strings.Map(func(r rune) rune {
			if 'A' <= r && r <= 'Z' {
				return r + 'a' - 'A'
			}
			return r
		}, name)
		for _, query := range []string{name, name[1 : len(name)-1], ascii} {
			if !utf8.ValidString(query) {
				continue
			}
			jobs, err := f.s.ListJobs(f.ctx, store.ListJobsParams{Tenant: f.tenant, Query: query})
			f.ok(err)
			require.Len(t, jobs, 1, "%q", query)
			require.Equal(t, name, jobs[0].Spec.Name)
			jobs, err = f.s.ListJobs(f.ctx, store.ListJobsParams{Tenant: f.tenant, Owner: query})
			f.ok(err)
			require.Len(t, jobs, 1, "%q", query)
			runs, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, JobQuery: query})
			f.ok(err)
			require.Len(t, runs, 1, "%q", query)
			require.Equal(t, e.ID, runs[0].ID)
			executors, err := f.s.ListExecutors(f.ctx, store.ListExecutorsParams{Tenant: f.tenant, Query: query})
			f.ok(err)
			require.Len(t, executors, 1, "%q", query)
			require.Equal(t, name, executors[0].Name)
		}
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
		f.ok(err)
	}
}

func testEditReplans(t *testing.T, f *fixture) {
	j := f.job(nil)
	now := f.now()
	es := f.fire(j, now.Add(-time.Second), now.Add(time.Hour))
	spec := j.Spec
	spec.Timeout = time.Minute
	_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, Next: at(now.Add(-time.Second))})
	f.ok(err)
	got := f.offerTo(f.instance, es...)
	require.Equal(t, store.OfferMade, got[0].Status)
	require.Zero(t, got[0].Spec.Timeout, "it keeps its revision")
	require.Equal(t, store.OfferGone, got[1].Status)
	j.Revision = 2
	planned2 := f.claim(func(now2 time.Time, tr domain.Trigger, spec *domain.JobSpec) store.TriggerPlan {
		require.Equal(t, time.Minute, spec.Timeout)
		return store.TriggerPlan{Executions: []domain.Execution{planned(&j.Job, now.Add(time.Hour), now2)}, NextFireAt: domain.Never}
	})
	require.Len(t, planned2, 1, "the instant is free for the new revision")
	require.EqualValues(t, 2, planned2[0].Revision)
}

// Fires that passed before an edit belong to the old revision.
func testEditSettles(t *testing.T, f *fixture) {
	now := f.now().Truncate(time.Second)
	j := f.jobFiring(now.Add(-time.Second), nil)
	plan := func(now2 time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan { // one at a time, every half minute
		return store.TriggerPlan{Executions: []domain.Execution{planned(&j.Job, tr.NextFireAt, now2)}, NextFireAt: tr.NextFireAt.Add(30 * time.Second), LastFireAt: tr.NextFireAt}
	}
	view, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Next: at(now.Add(2 * time.Hour)), Plan: plan})
	f.ok(err)
	require.Equal(t, now.Add(2*time.Hour), view.NextFireAt)
	runs, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID})
	f.ok(err)
	require.Len(t, runs, 1)
	require.EqualValues(t, 1, runs[0].Revision)
	require.Equal(t, domain.Due, runs[0].State)

	f.setNext(j, now.Add(-time.Minute))
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused, Plan: plan})
	f.ok(err)
	runs, err = f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID, States: []domain.State{domain.Cancelled}})
	f.ok(err)
	require.Len(t, runs, 4, "each fire that passed has a row with its reason")
	require.Equal(t, domain.ReasonPaused, runs[0].Reason)
}

// testCreateJobs: many jobs at once are written like single ones, and one that is
// refused leaves the others alone.
func testCreateJobs(t *testing.T, f *fixture) {
	there := f.job(nil)
	first := f.now().Add(time.Hour)
	job := func(name string, change func(*domain.Job)) store.NewJob {
		j := domain.Job{ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, Source: domain.SourceConsole, CreatedBy: "ann",
			Spec: domain.JobSpec{Name: name, Handler: "h", Schedule: domain.ScheduleSpec{Kind: domain.ScheduleFixedRate, Every: time.Hour}}}
		if change != nil {
			change(&j)
		}
		return store.NewJob{Job: j, Next: at(first)}
	}
	var jobs []store.NewJob
	for i := range 120 {
		jobs = append(jobs, job(fmt.Sprintf("many %d", i), nil))
	}
	jobs[3].State = domain.JobPaused
	jobs = append(jobs, job(there.Spec.Name, nil), job("many 7", nil), job("nowhere", func(j *domain.Job) { j.Executor++ }), job("last", nil))
	errs := f.s.CreateJobs(f.ctx, f.tenant, jobs)
	require.Len(t, errs, len(jobs))
	for i, err := range errs {
		switch jobs[i].Spec.Name {
		case there.Spec.Name:
			f.code(domain.CodeConflict, err)
		case "nowhere":
			f.code(domain.CodeNotFound, err)
		default:
			if i == 121 { // the second of that name
				f.code(domain.CodeConflict, err)
				continue
			}
			f.ok(err)
		}
	}
	for i, want := range map[int]time.Time{0: first, 3: domain.Never, 119: first, 123: first} {
		view, err := f.s.FindJob(f.ctx, f.tenant, jobs[i].ID)
		f.ok(err)
		require.Equal(t, []any{jobs[i].Spec.Name, int64(1), want, "ann"}, []any{view.Spec.Name, view.Revision, view.NextFireAt, view.CreatedBy})
		n, err := f.s.RowsOf(f.ctx, int64(view.ID))
		f.ok(err)
		require.Equal(t, 5, n, "job, revision, event, trigger, slot")
	}
	require.Empty(t, f.s.CreateJobs(f.ctx, f.tenant, nil))

	// Of two who write the same names each name is written once.
	both := make(chan []error)
	for range 2 {
		go func() {
			raced := make([]store.NewJob, 100)
			for i := range raced {
				raced[i] = job(fmt.Sprintf("raced %d", i), nil)
			}
			both <- f.s.CreateJobs(f.ctx, f.tenant, raced)
		}()
	}
	one, other := <-both, <-both
	for i := range one {
		require.NotEqual(t, one[i] == nil, other[i] == nil, "name %d: %v, %v", i, one[i], other[i])
		f.code(domain.CodeConflict, errors.Join(one[i], other[i]))
	}
}
