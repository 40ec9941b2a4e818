package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// attended is a wait that the caller's node looks after until its end.
func (f *fixture) attended(list ...domain.Execution) {
	waits := make([]store.Wait, len(list))
	for i, e := range list {
		waits[i] = store.Wait{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "full"}
	}
	f.wait(waits)
}

// A run that waits for an instance keeps its deadline when a run of its job that
// waits beside it gives up.
func testDeadlineIsKept(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { serial(s); s.DispatchTimeout = 10 * time.Second })
	first, second := f.runAt(j, f.now().Add(-time.Second)), f.run(j)
	f.attended(first, second)
	before := f.find(first)
	require.Equal(t, before.ExpireAt, before.WakeAt, "nobody has to look before its wait is over")
	f.age(second, 10*time.Second)
	require.Empty(t, identify(f.sweep().Dispatch), "who waits for an instance is woken by room there")
	require.Equal(t, domain.Missed, f.find(second).State)
	require.Equal(t, before, f.find(first))

	f.age(first, 10*time.Second)
	require.Equal(t, store.OfferDiscarded, f.offerTo(f.instance, first)[0].Status, "an offer that comes too late is none")
	ended := f.find(first)
	require.Equal(t, domain.Missed, ended.State)
	require.Equal(t, domain.ReasonNoExecutor, ended.Reason)
	f.start(f.run(j))
}

// What waits in the database alone can be loaded, and a node can ask whether what
// it has in memory still waits.
func testWaiting(t *testing.T, f *fixture) {
	j := f.job(nil)
	late, soon, polled, running := f.run(j), f.run(j), f.run(j), f.start(f.run(j))
	f.age(soon, time.Minute)
	f.attended(late, soon)
	f.wait([]store.Wait{{Tenant: f.tenant, ID: polled.ID, Reason: domain.ReasonWaitLimit, For: time.Minute}})
	list := func(p store.ListWaitingParams) []domain.ExecutionID {
		p.Partitions = allPartitions
		got, err := f.s.ListWaiting(f.ctx, p)
		f.ok(err)
		if len(p.Executors) > 0 {
			require.Equal(t, len(got.Executions) == p.Limit, got.More)
			require.Empty(t, got.Executors)
		}
		return identify(f.mine(got.Executions))
	}
	require.Equal(t, []domain.ExecutionID{soon.ID, late.ID}, list(store.ListWaitingParams{Limit: 1000}), "the soonest end first")
	require.Empty(t, list(store.ListWaitingParams{Limit: 1000, Executors: []domain.ExecutorID{f.executor + 1}}))
	require.Equal(t, []domain.ExecutionID{late.ID}, list(store.ListWaitingParams{
		Limit: 1000, Executors: []domain.ExecutorID{f.executor},
		Unattended: func(ids []domain.ExecutionID) (out []domain.ExecutionID) {
			for _, id := range ids {
				if id != soon.ID {
					out = append(out, id)
				}
			}
			return out
		},
	}))
	require.Equal(t, []domain.ExecutionID{soon.ID}, list(store.ListWaitingParams{Limit: 1, Executors: []domain.ExecutorID{f.executor}}))

	// Where a node cannot take on all, it is told for whom runs wait.
	some, err := f.s.ListWaiting(f.ctx, store.ListWaitingParams{Partitions: allPartitions, Limit: 1})
	f.ok(err)
	require.True(t, some.More)
	require.Contains(t, some.Executors, store.ExecutorOf{Tenant: f.tenant, Executor: f.executor})
	// A row that drops out between the two reads takes nothing from that.
	dropped, err := f.s.ListWaiting(f.ctx, store.ListWaitingParams{
		Partitions: allPartitions, Executors: []domain.ExecutorID{f.executor}, Limit: 1,
		Unattended: func(ids []domain.ExecutionID) []domain.ExecutionID {
			if slices.Contains(ids, soon.ID) {
				f.start(soon)
			}
			return ids
		},
	})
	f.ok(err)
	require.Empty(t, f.mine(dropped.Executions))
	require.True(t, dropped.More)

	due, err := f.s.StillDue(f.ctx, []domain.ExecutionID{late.ID, running.ID, 4711})
	f.ok(err)
	require.Equal(t, map[domain.ExecutionID]int64{late.ID: 0}, due)

	other := f.job(nil)
	f.run(other)
	jobs, err := f.s.ListWaitingJobs(f.ctx, f.tenant, f.executor)
	f.ok(err)
	require.Equal(t, []store.WaitingJob{{Job: j.ID, Revision: 1}, {Job: other.ID, Revision: 1}}, jobs)
}
