package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// deleteJob deletes a job in another millisecond than the one before.
func (f *fixture) deleteJob(id domain.JobID) {
	f.t.Helper()
	f.tick()
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: id, State: domain.JobDeleted, By: "ann"})
	f.ok(err)
}

func (f *fixture) restoreJob(v store.JobView, since time.Time) (store.JobView, error) {
	return f.s.RestoreJob(f.ctx, store.RestoreJobParams{Since: since, UpdateJobParams: store.UpdateJobParams{
		Tenant: v.TenantID, ID: v.ID, IfRevision: v.Revision, Executor: v.Executor, Spec: v.Spec, Source: domain.SourceConsole, By: "bob", Next: at(domain.Never.Add(-time.Hour)),
	}})
}

// testJobRestore: a job comes back with its id, its runs and its revisions.
func testJobRestore(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	long := f.now().Add(-time.Hour)
	j := f.job(nil)
	run := f.start(f.run(j))
	f.finish(run, domain.OutcomeSucceeded)
	paused := f.job(nil)
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: paused.ID, State: domain.JobPaused, By: "ann", Note: "wait"})
	f.ok(err)
	_, err = f.s.FindDeletedJob(f.ctx, f.tenant, j.ID, long)
	f.code(domain.CodeNotFound, err)
	_, err = f.restoreJob(j, long)
	f.code(domain.CodeNotFound, err)
	f.deleteJob(j.ID)
	f.deleteJob(paused.ID)

	gone, err := f.s.ListDeletedJobs(f.ctx, store.ListDeletedParams{Tenant: f.tenant, Since: long, Limit: 10})
	f.ok(err)
	require.Len(t, gone, 2)
	require.Equal(t, []any{int64(paused.ID), int64(j.ID), j.Spec.Name, int64(1), "ann"}, []any{gone[0].ID, gone[1].ID, gone[1].Name, gone[1].Version, gone[1].By}, "the last deleted first")
	for name, p := range map[string]store.ListDeletedParams{
		"other tenant":   {Tenant: b.tenant, Since: long, Limit: 10},
		"too long ago":   {Tenant: f.tenant, Since: f.now().Add(time.Hour), Limit: 10},
		"other executor": {Tenant: f.tenant, Since: long, Limit: 10, Within: domain.Within(b.executor)},
	} {
		rows, err := f.s.ListDeletedJobs(f.ctx, p)
		f.ok(err)
		require.Empty(t, rows, name)
	}
	found, err := f.s.FindDeletedJob(f.ctx, f.tenant, j.ID, long)
	f.ok(err)
	require.Equal(t, j.Spec, found.Spec)
	for _, wrong := range []struct {
		tenant domain.TenantID
		since  time.Time
	}{{b.tenant, long}, {f.tenant, f.now().Add(time.Hour)}} {
		_, err = f.s.FindDeletedJob(f.ctx, wrong.tenant, j.ID, wrong.since)
		f.code(domain.CodeNotFound, err)
		other := found
		other.TenantID = wrong.tenant
		_, err = f.restoreJob(other, wrong.since)
		f.code(domain.CodeNotFound, err)
	}
	older := found
	older.Revision = 7
	_, err = f.restoreJob(older, long)
	f.code(domain.CodeRevisionMismatch, err)
	nowhere := found
	nowhere.Executor = domain.ExecutorID(ids.Next())
	_, err = f.restoreJob(nowhere, long)
	f.code(domain.CodeNotFound, err)

	// Another job has its name.
	taker := f.job(func(s *domain.JobSpec) { s.Name = j.Spec.Name })
	_, err = f.restoreJob(found, long)
	f.code(domain.CodeConflict, err)
	f.deleteJob(taker.ID)

	f.tick()
	back, err := f.restoreJob(found, long)
	f.ok(err)
	require.Equal(t, []any{j.ID, int64(2), domain.JobEnabled, j.Spec.Name, "bob", f.executor}, []any{back.ID, back.Revision, back.State, back.Spec.Name, back.UpdatedBy, back.Executor})
	require.Equal(t, domain.Never.Add(-time.Hour).UnixMilli(), back.NextFireAt.UnixMilli())
	view, err := f.s.FindExecution(f.ctx, f.tenant, run.ID)
	f.ok(err)
	require.Equal(t, j.ID, view.JobID, "it has its runs")
	revisions, err := f.s.ListRevisions(f.ctx, store.ListRevisionsParams{Tenant: f.tenant, Job: j.ID, Limit: 10})
	f.ok(err)
	require.Len(t, revisions.Items, 2)
	changes, err := f.s.ListJobChanges(f.ctx, f.tenant, j.ID, 10)
	f.ok(err)
	deeds := domain.Collect(changes, func(c *store.JobChange) store.JobDeed { return c.What })
	require.ElementsMatch(t, []store.JobDeed{store.JobRestored, store.JobEdited, store.JobRemoved, store.JobCreated}, deeds)
	_, err = f.restoreJob(back, long)
	f.code(domain.CodeNotFound, err)
	f.finish(f.start(f.run(back)), domain.OutcomeSucceeded)

	stays, err := f.s.FindDeletedJob(f.ctx, f.tenant, paused.ID, long)
	f.ok(err)
	back, err = f.restoreJob(stays, long)
	f.ok(err)
	require.Equal(t, []any{domain.JobPaused, "bob"}, []any{back.State, back.Pause.By})
	require.Equal(t, domain.Never.UnixMilli(), back.NextFireAt.UnixMilli())
	gone, err = f.s.ListDeletedJobs(f.ctx, store.ListDeletedParams{Tenant: f.tenant, Since: long, Limit: 10})
	f.ok(err)
	require.Len(t, gone, 1)
}

// testRestoreKeepsQuotas: a job that comes back counts like a new one.
func testRestoreKeepsQuotas(t *testing.T, f *fixture) {
	j := f.job(nil)
	f.deleteJob(j.ID)
	f.job(nil)
	f.quota(domain.QuotaJobs, 1)
	_, err := f.restoreJob(j, time.Time{})
	f.code(domain.CodeQuotaExceeded, err)
	f.quota(domain.QuotaJobs, 2)
	_, err = f.restoreJob(j, time.Time{})
	f.ok(err)
}

// testRestoreOfDeclared: a job that is declared anew in the place of a deleted one stays the only
// one that its code knows.
func testRestoreOfDeclared(t *testing.T, f *fixture) {
	declared := domain.Declared{By: f.executor, Name: "close", Ownership: domain.OwnedByConsole}
	create := func() store.JobView {
		j := f.job(nil)
		f.ok(f.s.WriteDeclared(f.ctx, f.tenant, []store.DeclaredWrite{{Mark: &store.DeclaredMark{Job: j.ID, Declared: declared}}}))
		return j
	}
	first := create()
	f.deleteJob(first.ID)
	back, err := f.restoreJob(first, time.Time{})
	f.ok(err)
	require.Equal(t, declared.Name, back.Declared.Name, "its code decides again")
	f.deleteJob(first.ID)
	second := create()
	first.Revision = back.Revision
	back, err = f.restoreJob(first, time.Time{})
	f.ok(err)
	require.Zero(t, back.Declared)
	only, err := f.s.FindDeclaredJob(f.ctx, f.tenant, f.executor, "close")
	f.ok(err)
	require.Equal(t, second.ID, only.ID)
}

// testExecutorRestore: an executor comes back with its id and its limit, and jobs after it.
func testExecutorRestore(t *testing.T, f *fixture) {
	b := newFixture(t, f.s)
	long := f.now().Add(-time.Hour)
	id, err := f.newExecutor("doomed")
	f.ok(err)
	limit := domain.Limit{LimitKey: domain.LimitKey{Tenant: f.tenant, Executor: id}, Max: 3}
	f.ok(f.s.SetLimit(f.ctx, limit))
	limits := func() (out []int) {
		views, err := f.s.ListLimits(f.ctx, f.tenant)
		f.ok(err)
		for _, v := range views {
			if v.Executor == id {
				out = append(out, v.Max)
			}
		}
		return out
	}
	of := *f
	of.executor = id
	job := of.job(nil)
	_, err = f.s.RestoreExecutor(f.ctx, f.tenant, id, long)
	f.code(domain.CodeNotFound, err)
	f.deleteJob(job.ID)
	f.ok(f.s.DeleteExecutor(f.ctx, store.DeleteExecutorParams{Tenant: f.tenant, ID: id}))
	require.Empty(t, limits())
	_, err = f.restoreJob(job, long)
	f.code(domain.CodeNotFound, err)

	rows, err := f.s.ListDeletedExecutors(f.ctx, store.ListDeletedParams{Tenant: f.tenant, Since: long, Limit: 10})
	f.ok(err)
	require.Len(t, rows, 1)
	require.Equal(t, []any{int64(id), "doomed"}, []any{rows[0].ID, rows[0].Name})
	for _, p := range []store.ListDeletedParams{{Tenant: b.tenant, Since: long, Limit: 10}, {Tenant: f.tenant, Since: f.now().Add(time.Hour), Limit: 10}} {
		rows, err = f.s.ListDeletedExecutors(f.ctx, p)
		f.ok(err)
		require.Empty(t, rows)
		_, err = f.s.RestoreExecutor(f.ctx, p.Tenant, id, p.Since)
		f.code(domain.CodeNotFound, err)
	}

	taker, err := f.newExecutor("doomed")
	f.ok(err)
	_, err = f.s.RestoreExecutor(f.ctx, f.tenant, id, long)
	f.code(domain.CodeConflict, err)
	f.ok(f.rename(taker, "taker"))
	_, err = f.s.RestoreExecutor(f.ctx, f.tenant, id, long)
	f.code(domain.CodeConflict, err) // it is a former name
	f.ok(f.s.DeleteExecutorAlias(f.ctx, f.tenant, taker, "doomed"))

	back, err := f.s.RestoreExecutor(f.ctx, f.tenant, id, long)
	f.ok(err)
	require.Equal(t, []any{id, "doomed", domain.ExecutorEnabled, int64(3)}, []any{back.ID, back.Name, back.State, back.Version})
	require.Equal(t, []int{3}, limits())
	_, err = of.restoreJob(job, long)
	f.ok(err)
	f.ok(f.s.AgeDeleted(f.ctx, 400*day, int64(id)))
	n, err := f.s.DeleteExecutorsBefore(f.ctx, f.now().Add(-300*day), 10)
	f.ok(err)
	require.Zero(t, n)
}
