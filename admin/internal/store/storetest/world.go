package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// World is a tenant with an executor, for tests of rooms that work on a store.
// Its methods do what planner, API and gateway do before those rooms' turn.
// Safe for concurrent use, but its methods fail the test and so belong to the
// goroutines of the test.
type World struct {
	T        testing.TB
	S        store.Store
	Tenant   domain.TenantID
	Executor domain.ExecutorID
}

// NewWorld makes the tenant and the executor.
func NewWorld(t testing.TB, s store.Store) *World {
	t.Helper()
	w := &World{T: t, S: s, Tenant: domain.TenantID(ids.Next()), Executor: domain.ExecutorID(ids.Next())}
	require.NoError(t, s.CreateTenant(t.Context(), domain.Tenant{ID: w.Tenant, Name: "tenant " + w.Tenant.String(), CreatedAt: time.Now()}))
	require.NoError(t, s.CreateExecutor(t.Context(), domain.Executor{ID: w.Executor, TenantID: w.Tenant, Name: "shop"}))
	return w
}

// Job creates a job that never fires by itself: parallel without a limit, one
// attempt, never repeated when lost. change may alter its spec.
func (w *World) Job(change func(*domain.JobSpec)) domain.Job {
	w.T.Helper()
	return w.JobFiring(domain.Never, change)
}

// JobFiring is Job with a next fire time.
func (w *World) JobFiring(at time.Time, change func(*domain.JobSpec)) domain.Job {
	w.T.Helper()
	spec := domain.JobSpec{
		Name: fmt.Sprintf("job %06d", jobNumber.Add(1)), Handler: "close-day", Blocking: domain.BlockParallel,
		Schedule: domain.ScheduleSpec{Kind: domain.ScheduleNone}, OnLost: domain.OnLostFail,
		Retry: domain.Retry{MaxAttempts: 1}, Routing: domain.RouteBusyOver,
	}
	if change != nil {
		change(&spec)
	}
	view, err := w.S.CreateJob(w.T.Context(), domain.Job{
		ID: domain.JobID(ids.Next()), TenantID: w.Tenant, Executor: w.Executor, State: domain.JobEnabled,
		Source: domain.SourceConsole, Spec: spec, CreatedBy: "anna",
	}, func(time.Time, *domain.JobSpec) time.Time { return at })
	require.NoError(w.T, err)
	return view.Job
}

// Run creates a run of the job that is due at an instant.
func (w *World) Run(j domain.Job, at time.Time) domain.Execution {
	w.T.Helper()
	return w.RunBy(domain.CauseManual, j, at)
}

// RunBy is Run with the cause.
func (w *World) RunBy(cause domain.Cause, j domain.Job, at time.Time) domain.Execution {
	w.T.Helper()
	now, err := w.S.Now(w.T.Context())
	require.NoError(w.T, err)
	e := planned(&j, at, now)
	e.Cause, e.OccurrenceKey = cause, "key "+e.ID.String()
	run, created, err := w.S.CreateExecution(w.T.Context(), e)
	require.NoError(w.T, err)
	require.True(w.T, created)
	return run
}

// Instance registers a process of the executor whose lease lasts for ttl.
func (w *World) Instance(boot string, ttl time.Duration) domain.InstanceID {
	w.T.Helper()
	i, err := RegisterInstance(w.T.Context(), w.S, store.RegisterInstanceParams{
		Instance: domain.Instance{
			ID: domain.InstanceID(ids.Next()), TenantID: w.Tenant, Executor: w.Executor, BootID: boot, Name: boot,
			Handlers: []string{"close-day"}, Slots: 10, StartedAt: time.Now(),
		},
		TTL: ttl,
	})
	require.NoError(w.T, err)
	return i.ID
}

// Start brings runs to running on an instance.
func (w *World) Start(instance domain.InstanceID, runs ...domain.Execution) []domain.Execution {
	w.T.Helper()
	offers := make([]store.Offer, len(runs))
	for i, e := range runs {
		offers[i] = store.Offer{Tenant: w.Tenant, ID: e.ID, Node: 1, Instance: instance}
	}
	offered, err := w.S.OfferExecutions(w.T.Context(), offers)
	require.NoError(w.T, err)
	grants := make([]store.GrantRequest, len(runs))
	for i, r := range offered {
		require.Equal(w.T, store.OfferMade, r.Status)
		grants[i] = store.GrantRequest{Tenant: w.Tenant, ID: r.Execution.ID, Fence: r.Execution.Fence, Instance: instance}
	}
	granted, err := w.S.GrantOffers(w.T.Context(), grants)
	require.NoError(w.T, err)
	out := make([]domain.Execution, len(runs))
	for i, g := range granted {
		require.True(w.T, g.Granted)
		out[i] = g.Execution
	}
	return out
}

// Report is what an executor says of a running execution.
func (w *World) Report(e domain.Execution, outcome domain.Outcome) store.AttemptReport {
	return store.AttemptReport{Tenant: w.Tenant, Executor: w.Executor, Report: domain.Report{
		ExecutionID: e.ID, Fence: e.Fence, Outcome: outcome, StartedAt: e.GrantedAt, LogLines: 3,
	}}
}

// Find reads a run as it is now.
func (w *World) Find(id domain.ExecutionID) domain.Execution {
	w.T.Helper()
	view, err := w.S.FindExecution(w.T.Context(), w.Tenant, id)
	require.NoError(w.T, err)
	return view.Execution
}

// Alerts takes the events that are new, and returns this tenant's.
func (w *World) Alerts() []domain.AlertEvent {
	w.T.Helper()
	return takeEvents(w.T, w.S, w.Tenant)
}
