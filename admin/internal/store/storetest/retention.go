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
	f.ok(f.s.RecordAlerts(f.ctx, []domain.AlertEvent{event(7 * month), event(6 * month), event(0)}))
	for _, want := range []int64{1, 1, 0} {
		n, err := f.s.DeleteAlertsBefore(f.ctx, time.Now().Add(-5*month), 1)
		f.ok(err)
		require.Equal(t, want, n)
	}
	left := f.expand(func(store.AlertContext) []domain.Delivery { return nil })
	require.Len(t, left, 1)
}

func testInstanceRetention(t *testing.T, f *fixture) {
	old, young := f.register("old", time.Minute), f.register("young", time.Minute)
	for _, i := range []domain.Instance{old, young} {
		f.ok(store.LeaveInstance(f.ctx, f.s, f.tenant, i.ID, "stopped"))
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
	f.ok(store.LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "stopped"))
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
