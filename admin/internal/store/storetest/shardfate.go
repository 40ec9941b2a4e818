package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// testShardsRace: whichever transaction ends the last shard ends the parent.
func testShardsRace(t *testing.T, f *fixture) {
	const shards = 6
	j := f.job(fixedShards(shards))
	for round := range 5 {
		run := f.run(j)
		var running []domain.Execution
		for _, p := range f.spread(run) {
			running = append(running, f.start(p))
		}
		results := make([]store.FinishResult, shards)
		race(shards, func(i int) {
			got, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(running[i], domain.OutcomeSucceeded)})
			if err == nil {
				results[i] = got[0]
			}
		})
		ended := 0
		for i, r := range results {
			require.Equal(t, store.FinishStored, r.Code, "shard %d", i)
			ended += len(r.Ended)
		}
		require.Equal(t, 1, ended, "round %d", round)
		require.Equal(t, domain.Succeeded, f.find(run).State)
	}

	// Two nodes spread the same run: one of them makes the shards.
	run := f.run(j)
	made := make([]store.SpreadResult, 4)
	race(len(made), func(i int) {
		if got, err := f.s.SpreadExecutions(f.ctx, []store.Spread{{Tenant: f.tenant, ID: run.ID}}); err == nil {
			made[i] = got[0]
		}
	})
	n := 0
	for _, r := range made {
		n += len(r.Parts)
	}
	require.Equal(t, shards, n)
	parts, _ := f.parts(run)
	require.Len(t, parts, shards)
}

func testShardsStopped(t *testing.T, f *fixture) {
	j := f.job(fixedShards(2))
	run := f.fire(j, f.now().Add(-time.Second))[0]
	parts := f.spread(run)
	running := f.start(parts[0])
	_, err := f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobPaused})
	f.ok(err)
	require.Equal(t, []any{domain.Cancelled, domain.ReasonPaused}, []any{f.find(parts[1]).State, f.find(parts[1]).Reason})
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, "1 of 2 shards succeeded, 1 cancelled", f.find(run).Message)

	// A deletion that takes all shards back takes the parent with them.
	j = f.job(fixedShards(2))
	run = f.run(j)
	f.spread(run)
	_, err = f.s.SetJobState(f.ctx, store.SetJobStateParams{Tenant: f.tenant, ID: j.ID, State: domain.JobDeleted})
	f.ok(err)
	require.Equal(t, domain.Failed, f.find(run).State)
}

func testShardsCovered(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		fixedShards(2)(s)
		s.Blocking = domain.BlockCover
	})
	runs := f.seconds(j, 2)
	parts := f.spread(runs[0])
	running := f.start(parts[0])
	r := f.spreadTo(store.OfferBlocked, runs[1])
	require.Equal(t, []domain.ExecutionID{runs[0].ID}, identify(r.Covered))
	require.Equal(t, domain.Cancelling, r.Covered[0].State)
	f.cancelParts(r.Covered[0])
	got := f.finish(running, domain.OutcomeCancelled)
	require.Equal(t, domain.ReasonCovered, f.find(runs[0]).Reason)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(got.Woken))
	require.Len(t, f.spread(runs[1]), 2)
}

// testShardsSwept: what a transaction left undone, the sweep finds.
func testShardsSwept(t *testing.T, f *fixture) {
	j := f.job(fixedShards(2))
	run := f.run(j)
	f.age(run, time.Minute)
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(f.sweep().Dispatch), "nobody has spread it")
	parts := f.spread(run)
	f.age(run, time.Minute)
	swept := f.sweep()
	require.Empty(t, swept.Ended)
	require.Equal(t, domain.Running, f.find(run).State)
	for _, p := range parts {
		f.age(p, time.Minute)
	}
	require.ElementsMatch(t, identify(parts), identify(f.sweep().Dispatch))

	// A shard is lost with its instance, and the sweep that says so ends the parent.
	gone := f.register("boot-9", -time.Minute).ID
	for _, p := range parts {
		f.grant(f.offerTo(gone, p)[0].Execution)
		f.age(p, time.Minute)
	}
	require.ElementsMatch(t, append(identify(parts), run.ID), identify(f.sweep().Ended))
	require.Equal(t, "0 of 2 shards succeeded, 2 lost", f.find(run).Message)

	// A cancel that nobody passed on.
	run = f.run(j)
	f.spread(run)
	_, err := f.s.RequestCancel(f.ctx, f.tenant, run.ID, domain.ReasonKilled, "")
	f.ok(err)
	f.age(run, time.Minute)
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(f.sweep().Cancel))
}

func testShardsLinger(t *testing.T, f *fixture) {
	j := f.job(fixedShards(2))
	run := f.run(j)
	parts := f.spread(run)
	f.finish(f.start(parts[0]), domain.OutcomeSucceeded)
	running := f.start(parts[1])
	got := f.stillRunning(running, domain.OutcomeTimedOut)
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(got.Ended))
	parent := f.find(run)
	require.Equal(t, domain.Failed, parent.State)
	require.True(t, parent.Lingers && parent.HoldsSlot, "a handler still runs")
	next := f.run(j)
	f.spreadTo(store.OfferBlocked, next)
	f.age(run, time.Minute)
	f.sweep()
	require.True(t, f.find(run).Lingers)
	got = f.finish(running, domain.OutcomeTimedOut)
	require.Equal(t, store.FinishReturned, got.Code)
	require.Equal(t, []domain.ExecutionID{next.ID}, identify(got.Woken))
	parent = f.find(run)
	require.False(t, parent.Lingers || parent.HoldsSlot)
	require.Equal(t, domain.Failed, parent.State)
}

func testShardsListed(t *testing.T, f *fixture) {
	j := f.job(fixedShards(2))
	run := f.run(j)
	parts := f.spread(run)
	f.finish(f.start(parts[0]), domain.OutcomeSucceeded)
	f.start(parts[1])
	for name, p := range map[string]store.ListExecutionsParams{
		"all": {}, "job": {Job: j.ID}, "executor": {Executor: f.executor}, "states": {States: []domain.State{domain.Running, domain.Succeeded}},
	} {
		p.Tenant, p.Limit = f.tenant, 10
		views, err := f.s.ListExecutions(f.ctx, p)
		f.ok(err)
		require.Len(t, views, 1, name)
		require.Equal(t, run.ID, views[0].ID, name)
	}
	views, err := f.s.ListExecutions(f.ctx, store.ListExecutionsParams{Tenant: f.tenant, Instance: f.instance, Limit: 10})
	f.ok(err)
	require.Equal(t, []domain.ExecutionID{parts[1].ID, parts[0].ID}, []domain.ExecutionID{views[0].ID, views[1].ID}, "what ran there")
	counts, err := f.s.CountExecutions(f.ctx, f.tenant, domain.Reach{}, time.Time{})
	f.ok(err)
	require.Equal(t, map[domain.State]int64{domain.Running: 1}, counts)
	view, err := f.s.FindJob(f.ctx, f.tenant, j.ID)
	f.ok(err)
	jobs, err := f.s.ListJobs(f.ctx, store.ListJobsParams{Tenant: f.tenant, Limit: 10})
	f.ok(err)
	for _, v := range append(jobs, view) {
		require.NotNil(t, v.LastRun)
		require.Equal(t, run.ID, v.LastRun.ID)
	}
	found, family := f.parts(run)
	require.Equal(t, identify(parts), identify(found))
	require.Equal(t, 1, family.Living)
	_, _, err = f.s.ListParts(f.ctx, f.tenant+1, run.ID, 10)
	f.code(domain.CodeNotFound, err)
}

func testShardsLimited(t *testing.T, f *fixture) {
	f.limit(f.executorLimit(), 1)
	j := f.job(fixedShards(2))
	run := f.run(j)
	parts := f.spread(run)
	running := f.start(parts[0])
	f.offer(store.OfferBlocked, parts[1])
	require.Equal(t, domain.ReasonWaitLimit, f.find(parts[1]).Reason)
	require.Equal(t, [2]int{1, 1}, f.counts(f.executorLimit()), "the parent does not count")
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{parts[1].ID}, identify(f.admit(f.executorLimit())))
	f.finish(f.start(parts[1]), domain.OutcomeSucceeded)
	require.Equal(t, domain.Succeeded, f.find(run).State)
}

// testShardsMany: one transaction for all, and bounded results for the hook.
func testShardsMany(t *testing.T, f *fixture) {
	const n = 300
	j := f.job(func(s *domain.JobSpec) {
		fixedShards(n)(s)
		s.Sharding.After = "collect"
	})
	run := f.run(j)
	parts := f.spread(run)
	require.Len(t, parts, n)
	var woken []domain.Execution
	for chunk := range slices.Chunk(parts, 100) {
		var reports []store.AttemptReport
		for _, r := range f.offerTo(f.instance, chunk...) {
			report := f.report(f.grant(r.Execution), domain.OutcomeSucceeded)
			report.Report.Output = fmt.Appendf(nil, `{"rows":%d,"pad":%q}`, r.Execution.Shard, make([]byte, 300))
			reports = append(reports, report)
		}
		got, err := f.s.FinishAttempts(f.ctx, reports)
		f.ok(err)
		for _, r := range got {
			woken = append(woken, r.Woken...)
		}
	}
	require.Len(t, woken, 1)
	require.LessOrEqual(t, len(woken[0].Input), domain.MaxShardResults)
	var results domain.ShardResults
	f.ok(json.Unmarshal(woken[0].Input, &results))
	require.Len(t, results.Shards, n)
	require.Equal(t, n, results.Succeeded)
	require.Positive(t, results.Omitted)
}
