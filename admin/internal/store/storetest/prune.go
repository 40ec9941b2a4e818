package storetest

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const day = 24 * time.Hour

// firedRun makes a run that fired and ended that long ago, with a line of log.
func (f *fixture) firedRun(j store.JobView, ago time.Duration, key string) domain.Execution {
	f.t.Helper()
	e := f.livingRun(j, ago, key)
	f.finish(e, domain.OutcomeSucceeded)
	f.age(e, ago)
	return e
}

// oldIDs tells apart the ids of runs of one instant.
var oldIDs atomic.Int64

// livingRun fired that long ago and has not ended. So has its id: a store looks for the
// young ones that it has moved (db.rollbackDetector).
func (f *fixture) livingRun(j store.JobView, ago time.Duration, key string) domain.Execution {
	f.t.Helper()
	e := planned(&j.Job, f.now().Add(-ago), f.now())
	e.ID = domain.ExecutionID(domain.IDFloor(time.Now().Add(-ago)) + 8192 + oldIDs.Add(1))
	e.Cause, e.OccurrenceKey = domain.CauseManual, key
	run, created, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	require.True(f.t, created)
	run = f.start(run)
	require.Zero(f.t, f.appendLogs(f.executor, chunk(run, 1, 1, 1)))
	return run
}

// kept is which of some runs are there, and which have logs.
func (f *fixture) kept(list ...domain.Execution) (runs, logs []bool) {
	f.t.Helper()
	for _, e := range list {
		_, err := f.s.FindExecution(f.ctx, f.tenant, e.ID)
		if err != nil {
			f.code(domain.CodeNotFound, err)
		}
		runs = append(runs, err == nil)
		page, err := f.s.ReadLog(f.ctx, store.ReadLogParams{Tenant: f.tenant, Execution: e.ID, Attempt: 1})
		f.ok(err)
		logs = append(logs, len(page.Lines) > 0)
	}
	return runs, logs
}

func (f *fixture) retain(j domain.JobID, r domain.Retention) store.RetentionView {
	f.t.Helper()
	v, err := f.s.SetRetention(f.ctx, store.SetRetentionParams{Tenant: f.tenant, Job: j, Retention: r, By: "alice"})
	f.ok(err)
	return v
}

func (f *fixture) applyRules() {
	f.t.Helper()
	_, _, err := f.s.ApplyRetentionRules(f.ctx, 2)
	f.ok(err)
}

func testRetentionRules(t *testing.T, f *fixture) {
	j := f.job(nil)
	v, err := f.s.FindRetention(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Equal(t, store.RetentionView{RetentionRule: domain.RetentionRule{TenantID: f.tenant, JobID: j.ID}, JobName: j.Spec.Name}, v)
	v = f.retain(0, domain.Retention{RunDays: 30, LogDays: 7})
	require.Equal(t, domain.Retention{RunDays: 30, LogDays: 7}, v.Effective)
	require.EqualValues(t, 1, v.Version)
	require.Equal(t, "alice", v.ChangedBy)
	require.EqualValues(t, 1, f.retain(0, domain.Retention{RunDays: 30, LogDays: 7}).Version, "nothing changed")
	v = f.retain(j.ID, domain.Retention{RunDays: 60, LogDays: 10, RunCount: 5})
	require.Equal(t, domain.Retention{RunDays: 60, LogDays: 7, RunCount: 5}, v.Effective, "more runs than the tenant, but no more logs")
	set := func(version int64, r domain.Retention) error {
		_, err := f.s.SetRetention(f.ctx, store.SetRetentionParams{Tenant: f.tenant, Job: j.ID, Retention: r, IfVersion: version})
		return err
	}
	f.code(domain.CodeRevisionMismatch, set(2, domain.Retention{RunDays: 1}))
	f.ok(set(1, domain.Retention{RunCount: 3}))
	list, err := f.s.ListRetention(f.ctx, f.tenant, 0, 10)
	f.ok(err)
	require.Len(t, list, 2)
	require.Equal(t, []domain.JobID{0, j.ID}, []domain.JobID{list[0].JobID, list[1].JobID})
	require.Equal(t, j.Spec.Name, list[1].JobName)
	require.Equal(t, domain.Retention{RunDays: 30, LogDays: 7, RunCount: 3}, list[1].Effective)
	list, err = f.s.ListRetention(f.ctx, f.tenant, j.ID, 10)
	f.ok(err)
	require.Empty(t, list)
	f.ok(set(2, domain.Retention{}))
	list, err = f.s.ListRetention(f.ctx, f.tenant, 0, 10)
	f.ok(err)
	require.Len(t, list, 1, "one that says nothing is none")

	foreign := newFixture(t, f.s)
	_, err = f.s.SetRetention(f.ctx, store.SetRetentionParams{Tenant: foreign.tenant, Job: j.ID, Retention: domain.Retention{RunDays: 1}})
	f.code(domain.CodeNotFound, err)
	list, err = f.s.ListRetention(f.ctx, foreign.tenant, 0, 10)
	f.ok(err)
	require.Empty(t, list)
}

func testRetentionByDays(t *testing.T, f *fixture) {
	j, other := f.job(nil), f.job(nil)
	old, older, young := f.firedRun(j, 3*day, "a"), f.firedRun(j, 9*day, "b"), f.firedRun(j, time.Hour, "c")
	long := f.livingRun(j, 9*day, "long")
	f.finish(long, domain.OutcomeSucceeded) // it took long, and ended just now
	runs := f.livingRun(j, 9*day, "runs")
	asked := f.firedRun(j, 9*day, domain.RequestKey("k", "b"))
	f.age(asked, -9*day+12*time.Hour) // ended half a day ago
	kept := f.firedRun(other, 9*day, "d")
	foreign := newFixture(t, f.s)
	elsewhere := foreign.firedRun(foreign.job(nil), 9*day, "e")

	f.retain(0, domain.Retention{RunDays: 2})
	f.retain(other.ID, domain.Retention{RunDays: 30})
	f.applyRules()
	all := []domain.Execution{old, older, young, long, runs, asked, kept}
	have, logs := f.kept(all...)
	require.Equal(t, []bool{false, false, true, true, true, true, true}, have)
	require.Equal(t, have, logs, "logs go with their run")
	have, _ = foreign.kept(elsewhere)
	require.Equal(t, []bool{true}, have)
	v, err := f.s.FindRetention(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Equal(t, old.FireAt.Add(time.Millisecond), v.RunsFrom)
	require.Equal(t, v.RunsFrom, ledgerJob(f, j.ID).RunsFrom)
	require.Zero(t, ledgerJob(f, other.ID).RunsFrom)
	again := f.firedRun(j, 9*day, "b")
	require.NotEqual(t, older.ID, again.ID, "its key is free")
	f.finish(runs, domain.OutcomeSucceeded)
}

func testRetentionByCount(t *testing.T, f *fixture) {
	j, other := f.job(nil), f.job(nil)
	var all []domain.Execution
	for i := range 7 {
		all = append(all, f.firedRun(j, 2*time.Hour+time.Duration(i)*time.Minute, time.Duration(i).String()))
	}
	just := f.firedRun(j, 30*time.Minute, "just")
	few := f.firedRun(other, 9*day, "few")
	f.retain(0, domain.Retention{RunCount: 3})
	f.applyRules()
	have, _ := f.kept(append(all, just, few)...)
	require.Equal(t, []bool{true, true, false, false, false, false, false, true, true}, have)
	f.retain(j.ID, domain.Retention{RunCount: 1})
	f.applyRules()
	have, _ = f.kept(append(all, just)...)
	require.Equal(t, []bool{false, false, false, false, false, false, false, true}, have)
	f.firedRun(j, time.Minute, "newest")
	f.applyRules()
	have, _ = f.kept(just)
	require.Equal(t, []bool{true}, have, "it ended within the last hour")
}

func testRetentionOfLogs(t *testing.T, f *fixture) {
	j, other := f.job(nil), f.job(nil)
	old, young, lives := f.firedRun(j, 3*day, "a"), f.firedRun(j, 2*time.Hour, "b"), f.livingRun(j, 3*day, "c")
	kept := f.firedRun(other, 3*day, "d")
	f.retain(j.ID, domain.Retention{LogDays: 1})
	for range 2 {
		f.applyRules()
		have, logs := f.kept(old, young, lives, kept)
		require.Equal(t, []bool{true, true, true, true}, have)
		require.Equal(t, []bool{false, true, true, true}, logs)
	}
	f.finish(lives, domain.OutcomeSucceeded)

	// Of a tenant they go by when the run was planned.
	planned := f.oldRun(other, 3*day, "planned")
	require.Zero(t, f.appendLogs(f.executor, chunk(f.start(planned), 1, 1, 1)))
	f.finish(f.find(planned), domain.OutcomeSucceeded)
	f.retain(0, domain.Retention{LogDays: 2})
	f.applyRules()
	have, logs := f.kept(planned, young, kept)
	require.Equal(t, []bool{true, true, true}, have)
	require.Equal(t, []bool{false, true, false}, logs)
}

// Parts of a run stay as long as the run does, and a run whose callback is to come stays.
func testRetentionOfFamilies(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		broadcast(domain.GoneMiss)(s)
		s.OnSuccess.Handler = "yes"
	})
	parent := planned(&j.Job, f.now().Add(-9*day), f.now())
	parent, _, err := f.s.CreateExecution(f.ctx, parent)
	f.ok(err)
	parts := f.spread(parent)
	require.Len(t, parts, 1)
	part := f.start(parts[0])
	f.retain(j.ID, domain.Retention{RunDays: 1})
	f.finish(part, domain.OutcomeSucceeded)
	for _, id := range f.settled(parent) {
		f.ok(f.s.Age(f.ctx, id, 9*day))
	}
	f.applyRules()
	have, _ := f.kept(parent, part)
	require.Equal(t, []bool{true, true}, have, "its callback has no run yet")
	require.Len(t, f.callbacks(), 1)
	f.ok(f.s.Age(f.ctx, parent.ID, -9*day))
	f.applyRules()
	have, _ = f.kept(parent, part)
	require.Equal(t, []bool{true, true}, have, "the parent has ended just now")
	f.ok(f.s.Age(f.ctx, parent.ID, 9*day))
	f.applyRules()
	have, _ = f.kept(parent, part)
	require.Equal(t, []bool{false, false}, have)
}

// settled are the runs of a family, the parent first.
func (f *fixture) settled(parent domain.Execution) []domain.ExecutionID {
	f.t.Helper()
	require.True(f.t, f.find(parent).State.Terminal(), "%+v", f.find(parent))
	out := []domain.ExecutionID{parent.ID}
	parts, _ := f.parts(parent)
	for _, p := range parts {
		out = append(out, p.ID)
	}
	return out
}

func (f *fixture) purge(job domain.JobID, before time.Time) domain.RunPurge {
	f.t.Helper()
	p, err := f.s.CreateRunPurge(f.ctx, domain.RunPurge{ID: domain.RunPurgeID(ids.Next()), TenantID: f.tenant, JobID: job, Before: before, CreatedBy: "alice"})
	f.ok(err)
	return p
}

func (f *fixture) purged(p domain.RunPurge) domain.RunPurge {
	f.t.Helper()
	for !p.Done() {
		f.ok(f.s.DriveRunPurges(f.ctx, 100))
		var err error
		p, err = f.s.FindRunPurge(f.ctx, f.tenant, p.ID)
		f.ok(err)
	}
	return p
}

func testRunPurges(t *testing.T, f *fixture) {
	j, other := f.job(nil), f.job(nil)
	var all []domain.Execution
	for i := range 5 {
		all = append(all, f.firedRun(j, time.Duration(i+1)*day, time.Duration(i).String()))
	}
	lives, kept := f.livingRun(j, 9*day, "lives"), f.firedRun(other, 9*day, "other")
	just := f.firedRun(j, 10*time.Minute, "just")
	before := f.now().Add(-2*day - time.Hour)
	count := func(p domain.RunPurge, most int) int64 {
		n, err := f.s.CountRunPurge(f.ctx, p, most)
		f.ok(err)
		return n
	}
	want := domain.RunPurge{TenantID: f.tenant, JobID: j.ID, Before: before}
	require.EqualValues(t, 3, count(want, 100))
	require.EqualValues(t, 2, count(want, 2))
	require.EqualValues(t, 4, count(domain.RunPurge{TenantID: f.tenant, Before: before}, 100))
	require.Zero(t, count(domain.RunPurge{TenantID: newFixture(t, f.s).tenant, JobID: j.ID, Before: before}, 100))

	p := f.purged(f.purge(j.ID, before))
	require.EqualValues(t, 3, p.Deleted)
	require.Equal(t, "alice", p.CreatedBy)
	have, _ := f.kept(append(slices.Clone(all), lives, kept, just)...)
	require.Equal(t, []bool{true, true, false, false, false, true, true, true}, have)
	p = f.purged(f.purge(0, f.now()))
	require.EqualValues(t, 3, p.Deleted)
	have, _ = f.kept(append(slices.Clone(all), lives, kept, just)...)
	require.Equal(t, []bool{false, false, false, false, false, true, false, true}, have, "what lives, and what ended within the last hour")
	f.finish(lives, domain.OutcomeSucceeded)

	list, err := f.s.ListRunPurges(f.ctx, f.tenant, 0, 10)
	f.ok(err)
	require.Len(t, list, 2)
	require.Equal(t, p, list[0])
	older, err := f.s.ListRunPurges(f.ctx, f.tenant, p.ID, 10)
	f.ok(err)
	require.Equal(t, list[1:], older)
	_, err = f.s.CancelRunPurge(f.ctx, f.tenant, p.ID)
	f.code(domain.CodeConflict, err)

	p = f.purge(j.ID, f.now())
	stopped, err := f.s.CancelRunPurge(f.ctx, f.tenant, p.ID)
	f.ok(err)
	require.True(t, stopped.Done() && stopped.Cancelled)
	f.ok(f.s.DriveRunPurges(f.ctx, 100))
	for range domain.MaxRunPurges {
		f.purge(j.ID, f.now())
	}
	_, err = f.s.CreateRunPurge(f.ctx, domain.RunPurge{ID: domain.RunPurgeID(ids.Next()), TenantID: f.tenant, JobID: j.ID, Before: f.now()})
	f.code(domain.CodeQuotaExceeded, err)
	foreign := newFixture(t, f.s)
	_, err = f.s.CreateRunPurge(f.ctx, domain.RunPurge{ID: domain.RunPurgeID(ids.Next()), TenantID: foreign.tenant, JobID: j.ID, Before: f.now()})
	f.code(domain.CodeNotFound, err)
	_, err = f.s.FindRunPurge(f.ctx, foreign.tenant, p.ID)
	f.code(domain.CodeNotFound, err)
	f.ok(f.s.DriveRunPurges(f.ctx, 100))
	n, err := f.s.DeleteRunPurgesBefore(f.ctx, f.now().Add(time.Hour), 5)
	f.ok(err)
	require.EqualValues(t, 5, n)
}
