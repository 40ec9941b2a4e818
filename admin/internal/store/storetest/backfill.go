package storetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// hourly are the full hours, as a job's fire times.
func hourly(_ *domain.JobSpec, from, to time.Time, limit int) []time.Time {
	var out []time.Time
	for at := from.Truncate(time.Hour); at.Before(to) && len(out) < limit; at = at.Add(time.Hour) {
		if !at.Before(from) {
			out = append(out, at)
		}
	}
	return out
}

// drive does one step of all backfills and returns this tenant's runs.
func (f *fixture) drive() []domain.Execution {
	f.t.Helper()
	got, err := f.s.DriveBackfills(f.ctx, store.DriveBackfillsParams{Limit: 100, Fires: hourly, NewID: ids.Next})
	f.ok(err)
	return f.mine(got.Runs)
}

func (f *fixture) backfill(j store.JobView, from, to time.Time, change func(*domain.Backfill)) domain.Backfill {
	f.t.Helper()
	b := domain.Backfill{
		ID: domain.BackfillID(ids.Next()), TenantID: f.tenant, JobID: j.ID, Scope: domain.BackfillMissing, From: from, To: to,
		Concurrency: 2, Planned: 5, Note: "after the outage", CreatedBy: "anna",
	}
	if change != nil {
		change(&b)
	}
	b, err := f.s.CreateBackfill(f.ctx, b)
	f.ok(err)
	return b
}

func (f *fixture) stateOf(b domain.Backfill) domain.Backfill {
	f.t.Helper()
	b, err := f.s.FindBackfill(f.ctx, f.tenant, b.ID)
	f.ok(err)
	return b
}

// A backfill writes a few runs at a time, passes over what has run, and ends
// when its last run has.
func testBackfill(t *testing.T, f *fixture) {
	j := f.job(nil)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return day.Add(time.Duration(n) * time.Hour) }
	done := f.start(f.fire(j, hour(1))[0])
	f.finish(done, domain.OutcomeSucceeded)

	b := f.backfill(j, day, hour(5), nil)
	require.Equal(t, domain.BackfillRunning, b.State)
	require.Equal(t, int64(1), b.Revision)
	first := f.drive()
	require.Len(t, first, 2, "as many as may run at once")
	require.Equal(t, []time.Time{hour(0), hour(2)}, []time.Time{first[0].FireAt, first[1].FireAt}, "hour 1 has run")
	for _, e := range first {
		require.Equal(t, domain.CauseBackfill, e.Cause)
		require.Equal(t, "anna", e.RequestedBy)
		require.False(t, e.NotBefore.After(f.now()))
	}
	require.Empty(t, f.drive(), "no room")
	f.finish(f.start(first[1]), domain.OutcomeFailed)
	second := f.drive()
	require.Len(t, second, 1)
	require.Equal(t, hour(3), second[0].FireAt)
	f.finish(f.start(first[0]), domain.OutcomeSucceeded)
	f.finish(f.start(second[0]), domain.OutcomeSucceeded)
	last := f.drive()
	require.Equal(t, hour(4), last[0].FireAt)
	require.Empty(t, f.drive())
	require.Equal(t, domain.BackfillRunning, f.stateOf(b).State, "its last run goes on")
	f.finish(f.start(last[0]), domain.OutcomeSucceeded)
	require.Empty(t, f.drive())
	b = f.stateOf(b)
	require.Equal(t, domain.BackfillDone, b.State)
	require.Equal(t, []int{4, 1, 3, 1}, []int{b.Created, b.Skipped, b.Succeeded, b.Failed})
	require.False(t, b.FinishedAt.IsZero())
	require.True(t, b.WakeAt.IsZero())

	// The same range again: nothing is doubled, whatever the scope.
	again := f.backfill(j, day, hour(5), func(b *domain.Backfill) { b.Scope, b.Concurrency = domain.BackfillAll, 10 })
	got := f.drive()
	require.Len(t, got, 1)
	require.Equal(t, hour(1), got[0].FireAt)
	known, err := f.s.ListOccurred(f.ctx, f.tenant, j.ID, day, hour(5))
	f.ok(err)
	require.Equal(t, domain.Occurred{Scheduled: domain.Succeeded, Backfill: true}, known[hour(1).UnixMilli()])
	require.Equal(t, domain.Occurred{Backfill: true}, known[hour(2).UnixMilli()])

	_, err = f.s.CancelBackfill(f.ctx, f.tenant, again.ID, "enough")
	f.ok(err)
	_, err = f.s.CancelBackfill(f.ctx, f.tenant, again.ID, "enough")
	f.code(domain.CodeAlreadyFinished, err)
	require.Equal(t, domain.BackfillCancelled, f.stateOf(again).State)
	list, err := f.s.ListBackfills(f.ctx, store.ListBackfillsParams{Tenant: f.tenant, Job: j.ID})
	f.ok(err)
	require.Equal(t, []domain.BackfillID{again.ID, b.ID}, []domain.BackfillID{list[0].ID, list[1].ID})

	other := newFixture(t, f.s)
	_, err = other.s.FindBackfill(f.ctx, other.tenant, b.ID)
	f.code(domain.CodeNotFound, err)
	_, err = other.s.CancelBackfill(f.ctx, other.tenant, b.ID, "")
	f.code(domain.CodeNotFound, err)
	_, err = other.s.CreateBackfill(f.ctx, domain.Backfill{ID: domain.BackfillID(ids.Next()), TenantID: other.tenant, JobID: j.ID, From: day, To: hour(1)})
	f.code(domain.CodeNotFound, err)
	known, err = other.s.ListOccurred(f.ctx, other.tenant, j.ID, day, hour(5))
	f.ok(err)
	require.Empty(t, known)
}

// A run that a backfill wrote is not dropped by the blocking strategy, and a
// deleted job ends its backfills.
func testBackfillEnds(t *testing.T, f *fixture) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	j := f.job(func(s *domain.JobSpec) { s.Blocking = domain.BlockDiscard })
	f.start(f.run(j))
	b := f.backfill(j, day, day.Add(3*time.Hour), nil)
	runs := f.drive()
	f.offer(store.OfferBlocked, runs[0])
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	require.Equal(t, domain.Cancelled, f.find(runs[0]).State)
	require.Empty(t, f.drive())
	b = f.stateOf(b)
	require.Equal(t, domain.BackfillCancelled, b.State)
	require.NotEmpty(t, b.Message)
}

// Nodes that drive the same backfill write each run once.
func testBackfillRace(t *testing.T, f *fixture) {
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	j := f.job(nil)
	b := f.backfill(j, day, day.Add(50*time.Hour), func(b *domain.Backfill) { b.Concurrency = 7 })
	other := f.backfill(j, day, day.Add(50*time.Hour), func(b *domain.Backfill) { b.Concurrency = 7 })
	for f.stateOf(b).State == domain.BackfillRunning || f.stateOf(other).State == domain.BackfillRunning {
		race(4, func(int) {
			_, _ = f.s.DriveBackfills(f.ctx, store.DriveBackfillsParams{Limit: 100, Fires: hourly, NewID: ids.Next})
		})
		for _, live := range [][]domain.ExecutionID{f.stateOf(b).Live, f.stateOf(other).Live} {
			require.LessOrEqual(t, len(live), 7)
			for _, id := range live {
				if e := f.find(domain.Execution{ID: id}); e.State == domain.Due {
					f.finish(f.start(e), domain.OutcomeSucceeded)
				}
			}
		}
	}
	b, other = f.stateOf(b), f.stateOf(other)
	require.Equal(t, 50, b.Created+other.Created)
	require.Equal(t, 50, b.Succeeded+other.Succeeded)
	known, err := f.s.ListOccurred(f.ctx, f.tenant, j.ID, day, day.Add(50*time.Hour))
	f.ok(err)
	require.Len(t, known, 50)
}
