package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// ledgerJob reads one job out of the ledger.
func ledgerJob(f *fixture, id domain.JobID) store.LedgerJob {
	f.t.Helper()
	var found store.LedgerJob
	f.ok(f.s.ReadLedger(f.ctx, func(r store.LedgerReader) error {
		jobs, err := r.Jobs(f.ctx, id-1, 1)
		require.Len(f.t, jobs, 1)
		found = jobs[0]
		return err
	}))
	require.Equal(f.t, id, found.ID)
	return found
}

func testLedgerJobs(t *testing.T, f *fixture) {
	next := f.now().Add(time.Hour)
	j := f.jobFiring(next, nil)
	began := f.now()
	set := func(state domain.JobState, note ...string) {
		f.tick()
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: state, Next: at(next), Note: strings.Join(note, "")})
		f.ok(err)
	}
	set(domain.JobEnabled) // no change
	set(domain.JobPaused)
	set(domain.JobPaused)          // no change
	set(domain.JobPaused, "later") // no change
	spec := j.Spec
	spec.Timeout = time.Minute
	_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: spec, Next: at(next)})
	f.ok(err)
	set(domain.JobEnabled)
	resumed := ledgerJob(f, j.ID)
	require.Equal(t, next, resumed.NextFireAt)
	set(domain.JobDeleted)

	l := ledgerJob(f, j.ID)
	require.Equal(t, f.tenant, l.TenantID)
	require.Equal(t, domain.Never, l.NextFireAt)
	require.Len(t, l.Revisions, 2)
	require.Equal(t, j.Spec, l.Revisions[0].Spec)
	require.Equal(t, spec, l.Revisions[1].Spec)
	var states []domain.JobState
	for i, e := range l.Events {
		states = append(states, e.State)
		require.True(t, i == 0 || e.At.After(l.Events[i-1].At))
	}
	require.Equal(t, []domain.JobState{domain.JobEnabled, domain.JobPaused, domain.JobEnabled, domain.JobDeleted}, states)
	require.Equal(t, j.CreatedAt, l.Events[0].At)
	require.False(t, l.Events[1].At.Before(began))
	require.False(t, l.Revisions[1].CreatedAt.Before(l.Events[1].At))
	require.False(t, l.Revisions[1].CreatedAt.After(l.Events[2].At))

	paused, err := f.s.CreateJob(f.ctx, domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: f.tenant, Executor: f.executor, State: domain.JobPaused, Source: domain.SourceConsole, Spec: domain.JobSpec{Name: "born paused"},
	}, at(next))
	f.ok(err)
	require.Equal(t, domain.JobPaused, ledgerJob(f, paused.ID).Events[0].State)
}

// testJobChanges: what people did to a job is read in one list, its edits and the
// notes too; so many events are kept, however often a program pauses it.
func testJobChanges(t *testing.T, f *fixture) {
	next := f.now().Add(time.Hour)
	j := f.jobFiring(next, nil)
	set := func(state domain.JobState, by, note string) {
		t.Helper()
		f.tick()
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: state, Next: at(next), By: by, Note: note})
		f.ok(err)
	}
	set(domain.JobPaused, "anna", "moved")
	paused, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	for _, note := range []string{"moved", "moved until Monday", ""} {
		set(domain.JobPaused, "ben", note)
		kept, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
		f.ok(err)
		require.Equal(t, paused, kept, "a pause of a paused job changes nothing")
	}
	f.tick()
	_, err = f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Next: at(next), By: "cleo"})
	f.ok(err)
	set(domain.JobEnabled, "dan", "")

	list := func(limit int) []store.JobChange {
		t.Helper()
		changes, err := f.s.ListJobChanges(f.ctx, f.tenant, j.ID, limit)
		f.ok(err)
		for i := range changes {
			require.True(t, i == 0 || changes[i].At.Before(changes[i-1].At))
		}
		for i := range changes {
			changes[i].At = time.Time{}
		}
		return changes
	}
	want := []store.JobChange{
		{What: store.JobResumed, State: domain.JobEnabled, By: "dan"},
		{What: store.JobEdited, By: "cleo", Revision: 2},
		{What: store.JobPaused, State: domain.JobPaused, By: "anna", Note: "moved"},
		{What: store.JobCreated, State: domain.JobEnabled, By: j.CreatedBy, Revision: 1},
	}
	require.Equal(t, want, list(10))
	require.Equal(t, want[:3], list(3))
	others, err := f.s.ListJobChanges(f.ctx, f.tenant+1, j.ID, 10)
	f.ok(err)
	require.Empty(t, others)

	for i := range 1000 {
		state := []domain.JobState{domain.JobPaused, domain.JobEnabled}[i%2]
		_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: state, By: "program", Next: at(next)})
		f.ok(err)
	}
	events := ledgerJob(f, j.ID).Events
	require.Len(t, events, 1000)
	require.Equal(t, domain.JobPaused, events[0].State)
}

// testPlanEndsAtOneInstant: what a job's plan holds up to the instant at which
// the job changes is kept, and nothing beyond, however long the change takes;
// the ledger says that instant.
func testPlanEndsAtOneInstant(t *testing.T, f *fixture) {
	for name, change := range map[string]func(domain.Job, store.PlanFunc) error{
		"pause": func(j domain.Job, plan store.PlanFunc) error {
			_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused, Plan: plan})
			return err
		},
		"delete": func(j domain.Job, plan store.PlanFunc) error {
			_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted, Plan: plan})
			return err
		},
		"edit": func(j domain.Job, plan store.PlanFunc) error {
			j.Spec.Timeout = time.Minute
			_, err := f.s.UpdateJob(f.ctx, store.UpdateJobParams{Tenant: f.tenant, ID: j.ID, Spec: j.Spec, Next: at(domain.Never), Plan: plan})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := f.now()
			j := f.jobFiring(now, nil)
			soon, later, untold := planned(&j.Job, now.Add(200*time.Millisecond), now), planned(&j.Job, now.Add(time.Hour), now), now.Add(100*time.Millisecond)
			got := f.claim(func(_ time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
				if tr.JobID != j.ID {
					return store.TriggerPlan{NextFireAt: domain.Never, LastFireAt: tr.LastFireAt}
				}
				return store.TriggerPlan{Executions: []domain.Execution{soon, later}, NextFireAt: now}
			})
			require.Len(t, got, 2)
			f.ok(change(j.Job, func(_ time.Time, tr domain.Trigger, _ *domain.JobSpec) store.TriggerPlan {
				if tr.NextFireAt.Equal(untold) { // asked for once it has come
					return store.TriggerPlan{Executions: []domain.Execution{planned(&j.Job, untold, f.now())}, NextFireAt: domain.Never}
				}
				for !f.now().After(soon.FireAt) { // the change takes this long
				}
				return store.TriggerPlan{NextFireAt: untold}
			}))
			l := ledgerJob(f, j.ID)
			ended := l.Events[len(l.Events)-1].At
			if name == "edit" {
				ended = l.Revisions[1].CreatedAt
			}
			require.True(t, ended.After(soon.FireAt))
			runs, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Job: j.ID, Limit: 10})
			f.ok(err)
			var fired []time.Time
			for _, r := range runs {
				fired = append(fired, r.FireAt)
			}
			require.ElementsMatch(t, []time.Time{untold, soon.FireAt}, fired)
		})
	}
}

func testLedgerExecutions(t *testing.T, f *fixture) {
	j, other := f.job(nil), f.job(nil)
	t0 := f.now().Truncate(time.Second)
	fired := f.fire(j, t0.Add(-3*time.Second), t0.Add(-2*time.Second))
	asked := f.runAt(j, t0.Add(-2*time.Second))
	foreign := f.fire(other, t0.Add(-time.Second))
	started := f.start(asked)
	listed, unlisted := f.run(other), f.run(other)
	f.attended(listed, unlisted)
	f.ok(f.s.Unlist(f.ctx, unlisted.ID))

	f.ok(f.s.ReadLedger(f.ctx, func(r store.LedgerReader) error {
		require.WithinDuration(t, f.now(), r.Now(), 5*time.Second)
		var seen []store.Occurrence
		collect := func(o store.Occurrence) error { seen = append(seen, o); return nil }
		err := r.Occurrences(f.ctx, []domain.JobID{j.ID, other.ID}, t0.Add(-2*time.Second), t0, collect)
		require.Equal(t, []store.Occurrence{
			{JobID: j.ID, ID: fired[1].ID, FireAt: t0.UnixMilli() - 2000, Scheduled: true},
			{JobID: j.ID, ID: asked.ID, FireAt: t0.UnixMilli() - 2000},
			{JobID: other.ID, ID: foreign[0].ID, FireAt: t0.UnixMilli() - 1000, Scheduled: true},
		}, seen)
		return err
	}))
	entries := map[domain.ExecutionID]store.LedgerEntry{}
	var order []domain.ExecutionID
	f.ok(f.s.ReadLedger(f.ctx, func(r store.LedgerReader) error {
		return r.Executions(f.ctx, fired[0].ID, domain.ExecutionID(ids.Next()), func(e *store.LedgerEntry) error {
			entries[e.ID] = *e
			order = append(order, e.ID)
			return nil
		})
	}))
	require.IsIncreasing(t, order)
	require.NotContains(t, entries, fired[0].ID, "after is excluded")
	require.Equal(t, store.LedgerEntry{
		ID: fired[1].ID, JobID: j.ID, TenantID: f.tenant, Cause: domain.CauseSchedule, FireAt: t0.UnixMilli() - 2000, State: domain.Due,
		WakeAt: fired[1].WakeAt.UnixMilli(), NotBefore: t0.UnixMilli() - 2000, PlannedAt: fired[1].PlannedAt.UnixMilli(),
	}, entries[fired[1].ID])
	run := entries[asked.ID]
	require.Equal(t, domain.Running, run.State)
	require.Equal(t, domain.CauseManual, run.Cause)
	require.EqualValues(t, 1, run.Attempt)
	require.Equal(t, started.OfferedAt.UnixMilli(), run.OfferedAt)
	require.Equal(t, started.GrantedAt.UnixMilli(), run.GrantedAt)

	require.False(t, entries[listed.ID].Unlisted)
	require.True(t, entries[unlisted.ID].Unlisted)

	boom := errors.New("boom")
	err := f.s.ReadLedger(f.ctx, func(r store.LedgerReader) error {
		return r.Executions(f.ctx, 0, domain.ExecutionID(ids.Next()), func(*store.LedgerEntry) error { return boom })
	})
	require.ErrorIs(t, err, boom)
	ended, cancel := context.WithCancel(f.ctx)
	cancel()
	require.Error(t, f.s.ReadLedger(ended, func(store.LedgerReader) error { return nil }))
}
