package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) setExecutor(state domain.ExecutorState, note string) domain.Executor {
	f.t.Helper()
	e, err := f.s.SetExecutorState(f.ctx, store.SetExecutorStateParams{Tenant: f.tenant, ID: f.executor, State: state, Note: note})
	f.ok(err)
	return e
}

// toHold are the jobs of the fixture's tenant that are to be paused or resumed.
func (f *fixture) toHold() (hold, release []domain.JobID) {
	f.t.Helper()
	h, r, err := f.s.ListJobsToHold(f.ctx, 1000)
	f.ok(err)
	ids := func(list []store.HeldJob) (out []domain.JobID) {
		for _, j := range list {
			if j.Tenant == f.tenant {
				out = append(out, j.ID)
			}
		}
		return out
	}
	return ids(h), ids(r)
}

func (f *fixture) stateOfJob(j store.JobView) domain.JobState {
	f.t.Helper()
	view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	return view.State
}

func testExecutorDisable(t *testing.T, f *fixture) {
	soon := f.now().Add(time.Hour)
	j, byHand, paused, deleted := f.jobFiring(soon, nil), f.jobFiring(soon, nil), f.job(nil), f.job(nil)
	set := func(j store.JobView, p store.SetJobStateParams) error {
		p.Tenant, p.ID, p.Next = f.tenant, j.ID, at(soon)
		_, err := f.s.SetJobState(f.ctx, p)
		return err
	}
	f.ok(set(paused, store.SetJobStateParams{State: domain.JobPaused, Note: "people"}))
	due := f.fire(j, f.now())[0]
	before := f.setExecutor(domain.ExecutorEnabled, "")
	e := f.setExecutor(domain.ExecutorDisabled, "why")
	require.Equal(t, []any{domain.ExecutorDisabled, "why", before.Version + 1}, []any{e.State, e.Note, e.Version})
	require.Equal(t, e, f.setExecutor(domain.ExecutorDisabled, "why"), "nothing changes")
	_, err := f.s.SetExecutorState(f.ctx, store.SetExecutorStateParams{Tenant: f.tenant, ID: f.executor, IfVersion: before.Version, State: domain.ExecutorEnabled})
	f.code(domain.CodeRevisionMismatch, err)
	list, err := f.s.ListDisabled(f.ctx)
	f.ok(err)
	require.True(t, list.Executors[f.executor])
	require.False(t, list.Tenants[f.tenant])

	hold, release := f.toHold()
	require.ElementsMatch(t, []domain.JobID{j.ID, byHand.ID, deleted.ID}, hold)
	require.Empty(t, release)
	by := int64(f.executor)
	for _, one := range []store.JobView{j, byHand, paused, deleted} {
		f.ok(set(one, store.SetJobStateParams{State: domain.JobPaused, Hold: by, Note: "disabled"}))
		require.Equal(t, domain.JobPaused, f.stateOfJob(one))
	}
	view, err := f.s.FindJob(f.ctx, f.tenant, paused.ID)
	f.ok(err)
	require.Equal(t, "people", view.Pause.Note, "who had paused it already did")
	hold, _ = f.toHold()
	require.Empty(t, hold)

	require.Equal(t, domain.Due, f.find(due).State, "what is due waits for the enabling")
	// Nobody resumes it meanwhile; who pauses it, or deletes it, is not overruled.
	f.code(domain.CodeExecutorDisabled, set(j, store.SetJobStateParams{State: domain.JobEnabled}))
	f.ok(set(byHand, store.SetJobStateParams{State: domain.JobPaused, Note: "people"}))
	f.ok(set(deleted, store.SetJobStateParams{State: domain.JobDeleted}))
	f.ok(set(j, store.SetJobStateParams{State: domain.JobEnabled, Release: by}))
	require.Equal(t, domain.JobPaused, f.stateOfJob(j), "it is disabled still, or again")

	f.setExecutor(domain.ExecutorEnabled, "")
	enabled := f.now()
	for f.now().Sub(enabled) < 10*time.Millisecond {
	}
	f.ok(set(paused, store.SetJobStateParams{State: domain.JobEnabled}))
	f.ok(set(paused, store.SetJobStateParams{State: domain.JobPaused, Hold: by, Note: "listed before"}))
	require.Equal(t, domain.JobEnabled, f.stateOfJob(paused), "it has been enabled since")
	f.ok(set(paused, store.SetJobStateParams{State: domain.JobPaused}))
	hold, release = f.toHold()
	require.Empty(t, hold)
	require.Equal(t, []domain.JobID{j.ID}, release)
	var from time.Time
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobEnabled, Release: by, Next: func(now time.Time, _ *domain.JobSpec) time.Time {
		from = now
		return soon
	}})
	f.ok(err)
	require.False(t, from.After(enabled), "what is due since then is not lost")
	for _, one := range []store.JobView{j, byHand, paused} {
		f.ok(set(one, store.SetJobStateParams{State: domain.JobEnabled, Release: by}))
	}
	require.Equal(t, []domain.JobState{domain.JobEnabled, domain.JobPaused, domain.JobPaused}, []domain.JobState{f.stateOfJob(j), f.stateOfJob(byHand), f.stateOfJob(paused)})
	_, release = f.toHold()
	require.Empty(t, release)
	view, err = f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	require.Equal(t, []any{soon, ""}, []any{view.NextFireAt, view.Pause.Note})
}

func testBusyBoots(t *testing.T, f *fixture) {
	busy, idle, gone := f.register("busy", time.Minute), f.register("idle", time.Minute), f.register("gone", time.Minute)
	_, renewed, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: busy.ID, Running: 1}, {ID: idle.ID}, {ID: gone.ID, Running: 1}}, time.Minute)
	f.ok(err)
	require.Len(t, renewed, 3)
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "stopped"))
	found, err := f.s.ListBusyBoots(f.ctx, f.tenant, f.executor, []string{"busy", "idle", "gone", "unknown"})
	f.ok(err)
	require.Equal(t, map[string]bool{"busy": true}, found)
}
