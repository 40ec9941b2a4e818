package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func (f *fixture) executorScope() domain.MaintenanceScope {
	return domain.MaintenanceScope{Tenant: f.tenant, Executor: f.executor}
}

// maintain switches maintenance on.
func (f *fixture) maintain(s domain.MaintenanceScope, mode domain.MaintenanceMode, until time.Time) domain.Maintenance {
	f.t.Helper()
	m, err := f.s.StartMaintenance(f.ctx, domain.Maintenance{MaintenanceScope: s, Mode: mode, Reason: "new disks", By: "alice", EndsAt: until})
	f.ok(err)
	return m
}

func (f *fixture) maintained(s domain.MaintenanceScope) {
	f.t.Helper()
	_, err := f.s.EndMaintenance(f.ctx, s, "bob")
	f.ok(err)
}

// entries are those of this tenant.
func (f *fixture) entries(ended bool) (out []store.MaintenanceEntry) {
	f.t.Helper()
	list, err := f.s.ListMaintenance(f.ctx, store.ListMaintenanceParams{Tenant: f.tenant, Ended: ended, Limit: 100})
	f.ok(err)
	for _, e := range list {
		if e.Tenant == f.tenant {
			out = append(out, e)
		}
	}
	return out
}

// asked creates a run that exists for a cause.
func (f *fixture) asked(cause domain.Cause, j store.JobView, at time.Time) domain.Execution {
	f.t.Helper()
	e := planned(&j.Job, at, f.now())
	e.Cause, e.OccurrenceKey = cause, "key "+e.ID.String()
	run, _, err := f.s.CreateExecution(f.ctx, e)
	f.ok(err)
	return run
}

func testMaintenance(t *testing.T, f *fixture) {
	whole := domain.MaintenanceScope{Tenant: f.tenant}
	first := f.maintain(whole, domain.MaintenanceWait, time.Time{})
	require.Equal(t, domain.Never, first.EndsAt, "until it is switched off")
	mine := f.maintain(f.executorScope(), domain.MaintenanceSkip, f.now().Add(time.Hour))

	list := f.entries(false)
	require.Len(t, list, 2)
	require.Equal(t, mine, list[0].Maintenance, "the newest first")
	require.True(t, list[0].Active)
	require.NotEmpty(t, list[0].TenantName)
	require.NotEmpty(t, list[0].ExecutorName)
	require.Empty(t, list[1].ExecutorName)

	for !f.now().After(mine.Since) { // or one would be replaced in the millisecond in which it began
	}
	// What is on is replaced, and what is off is not switched off.
	second := f.maintain(whole, domain.MaintenanceContinue, time.Time{})
	require.Equal(t, []int64{second.ID, mine.ID}, []int64{f.entries(false)[0].ID, f.entries(false)[1].ID})
	all := f.entries(true)
	require.Len(t, all, 3)
	require.Equal(t, second.Since, all[2].EndsAt, "without a gap")
	require.Equal(t, "alice", all[2].EndedBy)
	f.maintained(whole)
	f.maintained(f.executorScope())
	require.Empty(t, f.entries(false))
	require.Equal(t, "bob", f.entries(true)[0].EndedBy)
	_, err := f.s.EndMaintenance(f.ctx, whole, "bob")
	f.code(domain.CodeNotFound, err)

	known, err := f.s.Maintenances(f.ctx)
	f.ok(err)
	require.NotNil(t, known.Covers(domain.MaintenanceSkip, f.tenant, f.executor, mine.Since), "it is remembered for a while")
	require.NotNil(t, f.s.KnownMaintenances().Covers(domain.MaintenanceWait, f.tenant, f.executor, first.Since))

	for _, s := range []domain.MaintenanceScope{{Tenant: domain.TenantID(ids.Next())}, {Tenant: f.tenant, Executor: domain.ExecutorID(ids.Next())}} {
		_, err := f.s.StartMaintenance(f.ctx, domain.Maintenance{MaintenanceScope: s, Mode: domain.MaintenanceWait})
		f.code(domain.CodeNotFound, err)
	}
	_, err = f.s.StartMaintenance(f.ctx, domain.Maintenance{MaintenanceScope: whole, Mode: "stop"})
	f.code(domain.CodeInvalid, err)
	_, err = f.s.StartMaintenance(f.ctx, domain.Maintenance{MaintenanceScope: whole, Mode: domain.MaintenanceWait, EndsAt: f.now().Add(-time.Second)})
	f.code(domain.CodeInvalid, err)

	n, err := f.s.DeleteMaintenanceBefore(f.ctx, f.now().Add(-time.Hour), 100)
	f.ok(err)
	require.Zero(t, n)
	require.Len(t, f.entries(true), 3)
}

// Nothing is offered or granted in maintenance; what was granted goes on.
func testMaintenanceHolds(t *testing.T, f *fixture) {
	serial := f.job(func(s *domain.JobSpec) { s.Blocking = domain.BlockSerial })
	j := f.job(nil)
	runs := f.seconds(j, 4)
	running := f.start(runs[0])
	offered := f.offer(store.OfferMade, runs[1])
	turns := f.seconds(serial, 2)
	f.tick()

	f.maintain(f.executorScope(), domain.MaintenanceWait, time.Time{})
	results, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.False(t, results[0].Granted)
	back := f.find(runs[1])
	require.Equal(t, []any{domain.Due, domain.ReasonMaintenance, domain.InstanceID(0), 0}, []any{back.State, back.Reason, back.Instance, back.Attempt})
	require.Equal(t, "maintenance of the executor: new disks", back.Message)
	require.Zero(t, back.Sends().Failed(), "that was no failed send")

	f.offer(store.OfferBlocked, runs[2])
	f.offer(store.OfferBlocked, turns[1])
	ended, err := f.s.RecordWaits(f.ctx, []store.Wait{{Tenant: f.tenant, ID: runs[3].ID, Reason: domain.ReasonWaitInstance, For: time.Second}})
	f.ok(err)
	require.Empty(t, ended)
	for _, e := range []domain.Execution{runs[2], runs[3], turns[1]} {
		e = f.find(e)
		require.Equal(t, []any{domain.Due, domain.ReasonMaintenance}, []any{e.State, e.Reason})
		require.True(t, e.WakeAt.After(f.now().Add(time.Minute)), "the sweep leaves it alone")
		require.False(t, e.Expired(f.now().Add(24*time.Hour)), "it waits for as long as it takes")
	}
	f.finish(running, domain.OutcomeSucceeded)

	// A person's own run starts, if he asked for it meanwhile.
	now := f.now()
	f.finish(f.start(f.asked(domain.CauseManual, j, now)), domain.OutcomeSucceeded)
	f.offer(store.OfferBlocked, f.asked(domain.CauseAPI, j, now))

	f.maintained(f.executorScope())
	waiting := f.listWaiting()
	for _, e := range []domain.Execution{runs[2], runs[3], turns[1]} {
		require.Contains(t, waiting, e.ID)
	}
	for _, e := range runs[1:] {
		f.finish(f.start(e), domain.OutcomeSucceeded)
	}
	f.offer(store.OfferMade, turns[1])
}

// listWaiting are the runs of this tenant that wait for a start.
func (f *fixture) listWaiting() (all []domain.ExecutionID) {
	f.t.Helper()
	for _, l := range f.lines() {
		list, err := f.s.ListWaiting(f.ctx, store.ListWaitingParams{Line: l.Line, Partitions: allPartitions, Read: 1000, Limit: 1000})
		f.ok(err)
		all = append(all, identify(list)...)
	}
	return all
}

// A maintenance that skips excludes what a schedule fires in it, and nothing else.
func testMaintenanceSkips(t *testing.T, f *fixture) {
	j := f.job(nil)
	before := f.asked(domain.CauseSchedule, j, f.now().Add(-time.Second))
	m := f.maintain(f.executorScope(), domain.MaintenanceSkip, time.Time{})
	in := f.asked(domain.CauseSchedule, j, m.Since)
	waits := f.asked(domain.CauseSchedule, j, m.Since.Add(time.Millisecond))
	asked := f.asked(domain.CauseAPI, j, m.Since)
	f.tick()
	f.offer(store.OfferBlocked, before)
	f.offer(store.OfferDiscarded, in)
	f.offer(store.OfferBlocked, asked)
	ended, err := f.s.RecordWaits(f.ctx, []store.Wait{{Tenant: f.tenant, ID: waits.ID, Reason: domain.ReasonWaitInstance, For: time.Second}})
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{waits.ID}, identify(ended))
	for _, e := range []domain.Execution{in, waits} {
		e = f.find(e)
		require.Equal(t, []any{domain.Excluded, domain.ReasonMaintenance, "maintenance of the executor: new disks"}, []any{e.State, e.Reason, e.Message})
	}
	f.maintained(f.executorScope())
	after := f.asked(domain.CauseSchedule, j, f.now())
	for _, e := range []domain.Execution{before, asked, after} {
		f.finish(f.start(e), domain.OutcomeSucceeded)
	}
	require.Empty(t, takeEvents(t, f.s, f.tenant), "nobody is told")
}
