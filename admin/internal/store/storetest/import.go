package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// imported makes a run of yesterday that failed after a lost attempt, and one that succeeded.
func (f *fixture) imported(j store.JobView, instance domain.InstanceID, at time.Time) []store.ImportedRun {
	source := domain.NewIDSource(domain.ImportNode, func() time.Time { return at })
	run := func(after time.Duration, state domain.State) store.ImportedRun {
		fire := at.Add(after)
		return store.ImportedRun{Execution: domain.Execution{
			ID: domain.ExecutionID(source.Next()), JobID: j.ID, Cause: domain.CauseImport, RequestedBy: "sample data", FireAt: fire, PlannedAt: fire,
			State: state, Attempt: 1, MaxAttempts: 2, Fence: 1, Instance: instance,
			OfferedAt: fire, GrantedAt: fire, StartedAt: fire.Add(20 * time.Millisecond), FinishedAt: fire.Add(2 * time.Second), Took: 1900 * time.Millisecond,
		}}
	}
	good, bad := run(0, domain.Succeeded), run(time.Minute, domain.Failed)
	bad.Attempt, bad.Fence, bad.LostAttempts = 2, 2, 1
	bad.Reason, bad.ErrorKind, bad.Error = domain.ReasonHandlerFailed, "error", "the bank answers 503"
	bad.Earlier = []domain.Attempt{{Number: 1, Fence: 1, Instance: instance, State: domain.Lost, Reason: domain.ReasonLeaseExpired, StartedAt: bad.StartedAt, FinishedAt: bad.StartedAt.Add(time.Second)}}
	return []store.ImportedRun{good, bad}
}

// testImport: imported runs are in all lists, sums and counts, however often they are imported.
// They cause nothing.
func testImport(t *testing.T, f *fixture) {
	j := f.timerJob(func(s *domain.JobSpec) { s.Alert.OnFailure = true })
	_ = takeEvents(t, f.s, f.tenant)
	at := f.now().Add(-24 * time.Hour).Truncate(time.Minute)
	dead := domain.Instance{
		ID: domain.InstanceID(domain.IDFloor(at.Add(-time.Hour)) + int64(f.tenant)&0xfff), Executor: f.executor, BootID: "gone " + f.tenant.String(), Name: "shop-2", Slots: 4,
		StartedAt: at.Add(-time.Hour), ConnectedAt: at.Add(-time.Hour), LastSeenAt: at, GoneAt: at.Add(time.Minute), GoneReason: domain.LeaseRanOut,
	}
	p := store.ImportRunsParams{Tenant: f.tenant, Instances: []domain.Instance{dead}, Runs: f.imported(j, dead.ID, at)}
	for _, want := range []int{2, 0} {
		n, err := f.s.ImportRuns(f.ctx, p)
		f.ok(err)
		require.Equal(t, want, n)
	}

	found, err := f.s.FindExecution(f.ctx, f.tenant, p.Runs[1].ID)
	f.ok(err)
	require.Equal(t, []any{domain.CauseImport, "sample data", domain.Failed, f.executor, domain.PartitionOf(j.ID), int64(1)},
		[]any{found.Cause, found.RequestedBy, found.State, found.Executor, found.Partition, found.Revision})
	require.Equal(t, at.Add(time.Minute), found.FireAt)
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, found.ID)
	f.ok(err)
	require.Len(t, attempts, 2)
	require.Equal(t, domain.ReasonLeaseExpired, attempts[0].Reason)
	recent, err := f.s.ListRecentRuns(f.ctx, f.tenant, j.ID, 10)
	f.ok(err)
	require.Len(t, recent, 2)
	require.Equal(t, found.ID, recent[0].ID)

	sums := f.jobSums(j)
	require.Equal(t, []int64{1, 1}, []int64{sums[domain.Succeeded].Runs, sums[domain.Failed].Runs})
	require.Equal(t, int64(1900), sums[domain.Succeeded].Took.MaxMS, "the duration that the executor measured")
	f.countAll()
	require.Equal(t, sums, f.jobSums(j))
	failures, err := f.s.ListFailures(f.ctx, store.ListFailuresParams{Tenant: f.tenant, By: store.FailuresByError, From: at.Add(-2 * time.Hour), To: f.now(), Limit: 5})
	f.ok(err)
	require.Len(t, failures, 1)
	require.Contains(t, failures[0].Name, "the bank answers")
	require.Empty(t, takeEvents(t, f.s, f.tenant))

	var entries []store.LedgerEntry
	f.ok(f.s.ReadLedger(f.ctx, func(r store.LedgerReader) error {
		return r.Executions(context.WithoutCancel(f.ctx), p.Runs[0].ID-1, p.Runs[1].ID, func(e *store.LedgerEntry) error {
			entries = append(entries, *e)
			return nil
		})
	}))
	require.Len(t, entries, 2)
	require.Equal(t, domain.CauseImport, entries[0].Cause)

	f.refusesImports(t, p)
}

// refusesImports: a mistake in one run keeps out the others as well.
func (f *fixture) refusesImports(t *testing.T, p store.ImportRunsParams) {
	for name, c := range map[string]struct {
		code   domain.Code
		change func(*store.ImportedRun)
	}{
		"running":       {domain.CodeInvalid, func(r *store.ImportedRun) { r.State = domain.Running }},
		"of the future": {domain.CodeInvalid, func(r *store.ImportedRun) { r.FinishedAt = f.now().Add(time.Hour) }},
		"of a schedule": {domain.CodeInvalid, func(r *store.ImportedRun) { r.Cause = domain.CauseSchedule }},
		"id of a node":  {domain.CodeInvalid, func(r *store.ImportedRun) { r.ID = domain.ExecutionID(ids.Next()) }},
		"no such job":   {domain.CodeNotFound, func(r *store.ImportedRun) { r.JobID = domain.JobID(ids.Next()) }},
		"other run":     {domain.CodeConflict, func(r *store.ImportedRun) { r.FireAt = r.FireAt.Add(time.Hour) }},
		"twice":         {domain.CodeConflict, func(r *store.ImportedRun) { r.ID += 100 }},
	} {
		runs := append([]store.ImportedRun(nil), p.Runs...)
		c.change(&runs[1])
		_, err := f.s.ImportRuns(f.ctx, store.ImportRunsParams{Tenant: p.Tenant, Runs: runs})
		require.Equal(t, c.code, domain.CodeOf(err), "%s: %v", name, err)
	}
	_, err := f.s.ImportRuns(f.ctx, store.ImportRunsParams{Tenant: p.Tenant, Runs: make([]store.ImportedRun, store.MaxImport+1)})
	require.Equal(t, domain.CodeInvalid, domain.CodeOf(err))
}
