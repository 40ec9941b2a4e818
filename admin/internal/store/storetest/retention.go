package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// oldRun makes a run whose id is as old as that.
func (f *fixture) oldRun(j store.JobView, age time.Duration, key string) domain.Execution {
	e := planned(&j.Job, f.now(), f.now())
	e.Cause, e.OccurrenceKey = domain.CauseManual, key
	e.ID = domain.ExecutionID(domain.IDFloor(time.Now().Add(-age)) + ids.Next()%4096)
	run, created, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	require.True(f.t, created)
	return run
}

// testRunRetention works with ids of months ago: other tests share the tables.
func testRunRetention(t *testing.T, f *fixture) {
	const month = 30 * 24 * time.Hour
	j := f.job(func(s *domain.JobSpec) { s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Minute} })
	ended, waits, young := f.oldRun(j, 5*month, domain.RequestKey("ended", "one")), f.oldRun(j, 5*month, "waits"), f.oldRun(j, month, "young")
	for _, e := range []domain.Execution{ended, young} {
		f.finish(f.start(e), domain.OutcomeFailed) // leaves an archived attempt
		f.age(e, time.Minute)
		f.finish(f.start(e), domain.OutcomeSucceeded)
	}

	n, err := f.s.DeleteRunsBefore(f.ctx, time.Now().Add(-4*month), 10)
	f.ok(err)
	require.EqualValues(t, 1, n)
	_, err = f.s.FindExecution(f.ctx, f.tenant, ended.ID)
	f.code(domain.CodeNotFound, err)
	_, err = f.s.ListAttempts(f.ctx, f.tenant, ended.ID)
	f.code(domain.CodeNotFound, err)
	require.Equal(t, domain.Due, f.find(waits).State, "a run that has not ended stays")
	require.Equal(t, domain.Succeeded, f.find(young).State)
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, young.ID)
	f.ok(err)
	require.Len(t, attempts, 2)

	again := f.oldRun(j, time.Minute, domain.RequestKey("ended", "another"))
	require.NotEqual(t, ended.ID, again.ID, "its request key is free again")
	require.Equal(t, store.FinishNotFound, f.finish(ended, domain.OutcomeSucceeded).Code)
	for _, e := range []domain.Execution{waits, again} { // leave nothing due behind
		_, err := f.s.RequestCancel(f.ctx, f.tenant, e.ID, domain.ReasonKilled, "")
		f.ok(err)
	}
}

func testAlertRetention(t *testing.T, f *fixture) {
	event := func(age time.Duration) domain.AlertEvent {
		return domain.AlertEvent{
			ID: domain.IDFloor(time.Now().Add(-age)) + ids.Next()%4096, TenantID: f.tenant, Kind: domain.AlertRunFailed,
			DedupeKey: age.String(), CreatedAt: f.now(),
		}
	}
	const month = 30 * 24 * time.Hour
	takeEvents(t, f.s, f.tenant) // of other tests
	f.callbacks()
	_, err := f.s.CountEnds(f.ctx, 0)
	f.ok(err)
	for _, age := range []time.Duration{7 * month, 6 * month, 0} {
		f.ok(f.s.RecordAlerts(f.ctx, []domain.AlertEvent{event(age)}))
		f.ok(f.s.AgeOutbox(f.ctx, age))
	}
	for _, want := range []int64{1, 1, 0} {
		n, err := f.s.DeleteOutboxBefore(f.ctx, time.Now().Add(-5*month), 1)
		f.ok(err)
		require.Equal(t, want, n)
	}
	require.Len(t, takeEvents(t, f.s, f.tenant), 1)
}

func testInstanceRetention(t *testing.T, f *fixture) {
	old, young := f.register("old", time.Minute), f.register("young", time.Minute)
	for _, i := range []domain.Instance{old, young} {
		f.ok(LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
	}
	const year = 365 * 24 * time.Hour
	f.ok(f.s.AgeInstance(f.ctx, old.ID, 2*year))
	n, err := f.s.DeleteInstancesBefore(f.ctx, f.now().Add(-year), 1)
	f.ok(err)
	require.EqualValues(t, 1, n)
	n, err = f.s.DeleteInstancesBefore(f.ctx, f.now().Add(-year), 1)
	f.ok(err)
	require.Zero(t, n)
	left, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, IncludeGone: true})
	f.ok(err)
	require.Len(t, left, 2, "the one that lives and the one that went just now")
}

// testHandlerRetention: a handler stays while an instance lists it, also one that
// has gone and is kept, and while a job has it.
func testHandlerRetention(t *testing.T, f *fixture) {
	const year = 365 * 24 * time.Hour
	known := func() (names []string) {
		list, err := listHandlers(f, f.executor)
		f.ok(err)
		for _, h := range list {
			names = append(names, h.Name)
		}
		return names
	}
	remove := func(limit int) int64 {
		n, err := f.s.DeleteHandlersBefore(f.ctx, f.now().Add(-year), limit)
		f.ok(err)
		return n
	}
	of := func(name string) func(*domain.JobSpec) { return func(s *domain.JobSpec) { s.Handler = name } }
	var handlers []domain.Handler
	for _, name := range []string{"close-day", "gone", "left", "scheduled", "unscheduled"} {
		handlers = append(handlers, domain.Handler{Name: name})
	}
	again := f.register("again", time.Minute, handlers...) // it lists close-day, as all do here
	f.job(of("scheduled"))
	unscheduled, elsewhere := f.job(of("unscheduled")), newFixture(t, f.s)
	elsewhere.job(of("gone"))
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: unscheduled.ID, State: domain.JobDeleted})
	f.ok(err)
	require.Zero(t, remove(10), "they are young")

	f.ok(f.s.AgeHandlers(f.ctx, f.executor, 2*year))
	f.register("new", time.Minute, domain.Handler{Name: "young"})
	require.EqualValues(t, 1, remove(1))
	require.EqualValues(t, 2, remove(10))
	require.Zero(t, remove(10))
	require.Equal(t, []string{"close-day", "scheduled", "young"}, known())

	instances, err := f.s.ListInstances(f.ctx, store.ListInstancesParams{Tenant: f.tenant, Executor: f.executor})
	f.ok(err)
	require.Len(t, instances, 3)
	for _, i := range instances {
		f.ok(LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
		if i.ID != again.ID {
			f.ok(f.s.AgeInstance(f.ctx, i.ID, 2*year))
		}
	}
	_, err = f.s.DeleteInstancesBefore(f.ctx, f.now().Add(-year), 100)
	f.ok(err)
	require.Zero(t, remove(10), "an instance that went just now lists it")
	f.ok(f.s.AgeInstance(f.ctx, again.ID, 2*year))
	_, err = f.s.DeleteInstancesBefore(f.ctx, f.now().Add(-year), 100)
	f.ok(err)
	require.EqualValues(t, 1, remove(10))
	require.Equal(t, []string{"scheduled", "young"}, known())
	f.register("back", time.Minute, domain.Handler{Name: "gone"})
	require.Equal(t, []string{"gone", "scheduled", "young"}, known())
}

// testJoinTokenBootRetention: the table says whom a token has let in, so that a
// process counts once. That holds for as long as its instance is known.
func testJoinTokenBootRetention(t *testing.T, f *fixture) {
	token := domain.JoinToken{ID: ids.Next(), TenantID: f.tenant, Executor: f.executor, Name: "boots", Hash: hash(f, "boots"), MaxUses: 4}
	f.ok(f.s.CreateJoinToken(f.ctx, token))
	use := func(boot string) error {
		return useTokens(f, store.JoinTokenUse{Hash: token.Hash, BootID: boot})[0].Err
	}
	living, gone := f.register("living", time.Minute), f.register("gone", time.Minute)
	for _, boot := range []string{living.BootID, gone.BootID, "never registered"} {
		f.ok(use(boot))
	}
	const year = 365 * 24 * time.Hour
	forget := func(limit int) int64 {
		n, err := f.s.DeleteJoinTokenBootsBefore(f.ctx, f.now().Add(-year), limit)
		f.ok(err)
		return n
	}
	require.Zero(t, forget(10), "they are young")
	f.ok(f.s.AgeJoinTokenBoots(f.ctx, token.ID, 2*year))
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "stopped"))
	require.EqualValues(t, 1, forget(10), "who never registered")
	f.ok(f.s.AgeInstance(f.ctx, gone.ID, 2*year))
	_, err := f.s.DeleteInstancesBefore(f.ctx, f.now().Add(-year), 100)
	f.ok(err)
	require.EqualValues(t, 1, forget(1), "its instance is forgotten")
	require.Zero(t, forget(1), "it lives")

	f.ok(use(living.BootID))
	all, err := f.s.ListJoinTokens(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, 3, all[0].Uses, "who lives is not counted again")
	f.ok(use(gone.BootID))
	f.code(domain.CodeUnauthenticated, use("never registered"))
}

func testLogRetention(t *testing.T, f *fixture) {
	j := f.job(nil)
	e := planned(&j.Job, f.now(), f.now())
	e.Cause = domain.CauseManual
	// An id of a day ago.
	e.ID = domain.ExecutionID(domain.IDFloor(time.Now().Add(-24*time.Hour)) + ids.Next()%4096)
	_, _, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	young := f.run(j)
	for attempt := 1; attempt <= 3; attempt++ { // a chunk each
		require.Zero(t, f.appendLogs(f.executor, chunk(e, attempt, 1, 1)))
	}
	require.Zero(t, f.appendLogs(f.executor, chunk(young, 1, 1, 1)))
	n, err := f.s.DeleteLogsBefore(f.ctx, time.Now().Add(-time.Hour), 2)
	f.ok(err)
	require.EqualValues(t, 2, n)
	n, err = f.s.DeleteLogsBefore(f.ctx, time.Now().Add(-time.Hour), 10)
	f.ok(err)
	require.EqualValues(t, 1, n)
	page, err := f.s.ReadLog(f.ctx, store.ReadLogParams{Tenant: f.tenant, Execution: young.ID, Attempt: 1})
	f.ok(err)
	require.Len(t, page.Lines, 1)
}

// testJobRetention: a job that was deleted goes with all that is stored of it
// when no run of it is kept.
func testJobRetention(t *testing.T, f *fixture) {
	const year = 365 * 24 * time.Hour
	before := func() time.Time { return f.now().Add(-4 * year) }
	rows := func(j store.JobView) int {
		n, err := f.s.RowsOf(f.ctx, int64(j.ID))
		f.ok(err)
		return n
	}
	c := f.calendar("holidays", "2026-10-01")
	old := f.jobFiring(f.now().Add(year), func(s *domain.JobSpec) {
		s.Schedule.Calendars, s.Schedule.Days = []domain.CalendarUse{use(c)}, "workdays"
	})
	for range 4 {
		_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: old.ID, Spec: old.Spec, Next: at(domain.Never)})
		f.ok(err)
	}
	hasRun, young, lives := f.job(nil), f.job(nil), f.job(nil)
	run := f.oldRun(hasRun, time.Minute, "kept")
	f.finish(f.start(run), domain.OutcomeSucceeded)
	for _, j := range []store.JobView{old, hasRun, young} {
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
		f.ok(err)
	}
	for _, j := range []store.JobView{old, hasRun, lives} {
		f.ok(f.s.AgeDeleted(f.ctx, 5*year, int64(j.ID)))
	}
	require.Equal(t, 10, rows(old), "job, trigger, slot, five revisions, made and deleted")
	kept := []int{rows(hasRun), rows(young), rows(lives)}

	declared := f.job(nil) // that somebody deleted it lasts as long as the executor
	f.ok(f.s.WriteDeclared(f.ctx, f.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: declared.ID, Declared: domain.Declared{By: f.executor, Name: "as declared"}}}}))
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: declared.ID, State: domain.JobDeleted})
	f.ok(err)
	f.ok(f.s.AgeDeleted(f.ctx, 5*year, int64(declared.ID)))
	kept = append(kept, rows(declared))

	n, err := f.s.DeleteJobsBefore(f.ctx, before(), 3)
	f.ok(err)
	require.EqualValues(t, 3, n, "in steps: its revisions first")
	require.Equal(t, 7, rows(old))
	n, err = f.s.DeleteJobsBefore(f.ctx, before(), 1000)
	f.ok(err)
	require.EqualValues(t, 7, n)
	require.Zero(t, rows(old))
	n, err = f.s.DeleteJobsBefore(f.ctx, before(), 1000)
	f.ok(err)
	require.Zero(t, n)
	require.Equal(t, kept, []int{rows(hasRun), rows(young), rows(lives), rows(declared)}, "runs show their job")
	view, err := f.s.FindExecution(f.ctx, f.tenant, run.ID)
	f.ok(err)
	require.Equal(t, hasRun.Spec.Name, view.JobName)
}

func testScriptRetention(t *testing.T, f *fixture) {
	const year = 365 * 24 * time.Hour
	old, young, lives := f.script("old", "shell", "echo 1\n"), f.script("young", "shell", "echo 1\n"), f.script("lives", "shell", "echo 1\n")
	f.revise(old, "echo 2\n", "")
	for _, s := range []domain.Script{old, young} {
		f.ok(f.deleteScript(s))
	}
	for _, s := range []domain.Script{old, lives} {
		f.ok(f.s.AgeDeleted(f.ctx, 5*year, int64(s.ID)))
	}
	for limit, want := range []int64{0, 1, 2} { // a version; the other one and the script
		n, err := f.s.DeleteDocumentsBefore(f.ctx, f.now().Add(-4*year), limit)
		f.ok(err)
		require.Equal(t, want, n)
	}
	for i, want := range []int{0, 2, 2} {
		s := []domain.Script{old, young, lives}[i]
		n, err := f.s.RowsOf(f.ctx, int64(s.ID))
		f.ok(err)
		require.Equal(t, want, n, s.Name)
	}
}

func testTokenRetention(t *testing.T, f *fixture) {
	const year = 365 * 24 * time.Hour
	token := func(name string, expires time.Duration) domain.RefreshToken {
		r := domain.RefreshToken{Hash: hash(f, name), Family: ids.Next(), UserID: 5, TenantID: f.tenant, ExpiresAt: f.now().Add(expires)}
		f.ok(f.s.CreateRefreshToken(f.ctx, r))
		return r
	}
	token("older", -6*year)
	token("old", -5*year)
	young := token("young", -3*year)
	for _, want := range []int64{1, 1, 0} {
		n, err := f.s.DeleteRefreshTokensBefore(f.ctx, f.now().Add(-4*year), 1)
		f.ok(err)
		require.Equal(t, want, n)
	}
	_, err := f.s.UseRefreshToken(f.ctx, young.Hash, 0)
	f.code(domain.CodeTokenExpired, err)
}
