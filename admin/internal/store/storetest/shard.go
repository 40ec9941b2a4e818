package storetest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func fixedShards(n int) func(*domain.JobSpec) {
	return func(s *domain.JobSpec) {
		s.Blocking = domain.BlockSerial
		s.Sharding = domain.Sharding{Mode: domain.ShardFixed, Shards: n}
	}
}

func broadcast(gone domain.OnGone) func(*domain.JobSpec) {
	return func(s *domain.JobSpec) {
		s.Sharding = domain.Sharding{Mode: domain.ShardBroadcast, OnGone: gone}
	}
}

// spreadTo makes the next parts of a run and expects a status.
func (f *fixture) spreadTo(want store.OfferStatus, e domain.Execution) store.SpreadResult {
	f.t.Helper()
	got, err := f.s.SpreadExecutions(f.ctx, []store.Spread{{Tenant: f.tenant, ID: e.ID}})
	f.ok(err)
	require.Len(f.t, got, 1)
	require.Equal(f.t, want, got[0].Status, "state %s, reason %q, %s", got[0].Execution.State, got[0].Execution.Reason, got[0].Execution.Message)
	return got[0]
}

// spread makes the parts of a run, and returns them.
func (f *fixture) spread(e domain.Execution) []domain.Execution {
	f.t.Helper()
	return f.spreadTo(store.OfferMade, e).Parts
}

// cancelParts passes the cancel of a parent on.
func (f *fixture) cancelParts(parent domain.Execution) store.CancelledParts {
	f.t.Helper()
	out, err := f.s.CancelParts(f.ctx, []domain.Execution{parent})
	f.ok(err)
	return out
}

// parts lists a run's.
func (f *fixture) parts(parent domain.Execution) ([]domain.Execution, domain.Family) {
	f.t.Helper()
	views, family, err := f.s.ListParts(f.ctx, f.tenant, parent.ID, 100)
	f.ok(err)
	var out []domain.Execution
	for _, v := range views {
		out = append(out, v.Execution)
	}
	return out, family
}

func testShardsFixed(t *testing.T, f *fixture) {
	j := f.job(fixedShards(3))
	run := f.fire(j, f.now().Add(-time.Second))[0]
	f.offer(store.OfferGone, run) // it goes to no instance
	r := f.spreadTo(store.OfferMade, run)
	parent := f.find(run)
	require.Equal(t, parent, r.Execution)
	require.Equal(t, domain.Running, parent.State)
	require.Equal(t, domain.StageShards, parent.Stage)
	require.Equal(t, 3, parent.Shards)
	require.True(t, parent.HoldsSlot)
	require.Len(t, r.Parts, 3)
	for i, p := range r.Parts {
		require.Equal(t, f.find(p), p)
		require.Equal(t, domain.Due, p.State)
		require.Equal(t, []any{run.ID, domain.PartShard, i, 3, domain.InstanceID(0)}, []any{p.Parent, p.Part, p.Shard, p.Shards, p.Bound})
		require.Equal(t, run.FireAt, p.FireAt)
		require.Equal(t, domain.CauseSchedule, p.Cause)
	}
	require.Empty(t, f.spreadTo(store.OfferGone, run).Parts, "once")

	// The parent holds the slot, its shards none.
	next := f.run(j)
	require.Equal(t, domain.ReasonWaitSlot, f.spreadTo(store.OfferBlocked, next).Execution.Reason)
	var running []domain.Execution
	for _, p := range r.Parts {
		running = append(running, f.start(p))
	}
	for _, p := range running[:2] {
		got := f.finish(p, domain.OutcomeSucceeded)
		require.Empty(t, got.Ended)
		require.Empty(t, got.Woken)
	}
	require.Equal(t, domain.Running, f.find(run).State)
	got := f.finish(running[2], domain.OutcomeSucceeded)
	parent = f.find(run)
	require.Equal(t, []domain.Execution{parent}, got.Ended)
	require.Equal(t, domain.Succeeded, parent.State)
	require.Equal(t, "3 of 3 shards succeeded", parent.Message)
	require.False(t, parent.HoldsSlot)
	require.Equal(t, []domain.ExecutionID{next.ID}, identify(got.Woken))
	require.Len(t, f.spread(next), 3)
	require.Equal(t, store.FinishDuplicate, f.finish(running[2], domain.OutcomeSucceeded).Code)
}

func testShardsBroadcast(t *testing.T, f *fixture) {
	other := f.register("boot-2", time.Minute).ID
	draining := f.register("boot-3", time.Minute).ID
	_, _, err := f.s.RenewInstances(f.ctx, []store.InstanceRenewal{{ID: draining, Slots: 1, Draining: true}}, time.Minute)
	f.ok(err)
	dead := f.register("boot-4", time.Minute).ID
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, dead, "stopped"))
	j := f.job(broadcast(domain.GoneMiss))
	run := f.run(j)
	parts := f.spread(run)
	require.Len(t, parts, 2)
	require.Equal(t, []domain.InstanceID{f.instance, other}, []domain.InstanceID{parts[0].Bound, parts[1].Bound})
	f.register("boot-5", time.Minute) // it is not in this fire
	f.finish(f.start(parts[0]), domain.OutcomeSucceeded)
	running := f.grant(f.offerTo(other, parts[1])[0].Execution)
	require.Equal(t, other, running.Instance)
	f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, domain.Succeeded, f.find(run).State)
	require.Len(t, f.spread(f.run(j)), 3)

	// Labels that are required bound a broadcast, too.
	zoned := f.job(func(s *domain.JobSpec) {
		broadcast(domain.GoneMiss)(s)
		var err error
		s.Require, err = domain.ParseSelector("zone = b")
		f.ok(err)
	})
	require.Equal(t, domain.ReasonWaitInstance, f.spreadTo(store.OfferBlocked, f.run(zoned)).Execution.Reason)

	// Nobody there: it waits, and the wait ends as for any run.
	lone := f.job(func(s *domain.JobSpec) { broadcast(domain.GoneMiss)(s); s.Handler = "nobody has it" })
	waits := f.run(lone)
	require.Equal(t, domain.ReasonWaitInstance, f.spreadTo(store.OfferBlocked, waits).Execution.Reason)
	f.age(waits, time.Hour)
	f.sweep()
	require.Equal(t, domain.Missed, f.find(waits).State)
}

func testShardsFail(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		fixedShards(4)(s)
		s.Retry = domain.Retry{MaxAttempts: 2}
	})
	run := f.run(j)
	parts := f.spread(run)
	f.finish(f.start(parts[0]), domain.OutcomeSucceeded)
	for range 2 { // a retry is the shard's own
		f.finish(f.start(parts[1]), domain.OutcomeFailed)
	}
	f.finish(f.start(parts[2]), domain.OutcomeFailed)
	require.Equal(t, domain.RetryWait, f.find(parts[2]).State)
	f.finish(f.start(parts[3]), domain.OutcomeUnknown)
	require.Equal(t, domain.Running, f.find(run).State, "a shard waits for its retry")
	f.finish(f.start(parts[2]), domain.OutcomeSucceeded)
	parent := f.find(run)
	require.Equal(t, domain.Failed, parent.State)
	require.Equal(t, domain.ReasonShards, parent.Reason)
	require.Equal(t, "2 of 4 shards succeeded, 1 failed, 1 lost", parent.Message)
	attempts, err := f.s.ListAttempts(f.ctx, f.tenant, parts[1].ID)
	f.ok(err)
	require.Len(t, attempts, 2)
	attempts, err = f.s.ListAttempts(f.ctx, f.tenant, run.ID)
	f.ok(err)
	require.Empty(t, attempts, "the parent has none")

	// One alert, of the parent.
	require.Equal(t, []domain.ExecutionID{run.ID}, f.alerted())

	// The failed ones again, by hand.
	again := planned(&j.Job, f.now(), f.now())
	again.Cause, again.OccurrenceKey, again.Shards = domain.CauseRetry, "again", 4
	again.Picks = []domain.ShardPick{{Index: 1}, {Index: 3}}
	again, _, err = f.s.CreateExecution(f.ctx, again)
	f.ok(err)
	parts = f.spread(again)
	require.Len(t, parts, 2)
	require.Equal(t, [4]int{1, 4, 3, 4}, [4]int{parts[0].Shard, parts[0].Shards, parts[1].Shard, parts[1].Shards})
	for _, p := range parts {
		f.finish(f.start(p), domain.OutcomeSucceeded)
	}
	require.Equal(t, "2 of 2 shards succeeded", f.find(again).Message)
}

func testShardHooks(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		fixedShards(2)(s)
		s.Sharding.Before, s.Sharding.After = "prepare", "collect"
	})
	run := f.run(j)
	hook := f.spread(run)
	require.Len(t, hook, 1)
	require.Equal(t, domain.PartBefore, hook[0].Part)
	view, err := f.s.FindExecution(f.ctx, f.tenant, hook[0].ID)
	f.ok(err)
	require.Equal(t, "prepare", view.Handler)
	require.Equal(t, domain.StageBefore, f.find(run).Stage)
	got := f.finish(f.start(hook[0]), domain.OutcomeSucceeded)
	ready := f.find(run)
	require.Equal(t, []domain.Execution{ready}, got.Woken)
	require.Equal(t, domain.Due, ready.State)
	require.Equal(t, domain.StageReady, ready.Stage)
	require.True(t, ready.HoldsSlot)

	shards := f.spread(run)
	require.Len(t, shards, 2)
	r := f.report(f.start(shards[0]), domain.OutcomeSucceeded)
	r.Report.Output = []byte(`{"rows":7}`)
	_, err = f.s.FinishAttempts(f.ctx, []store.AttemptReport{r})
	f.ok(err)
	r = f.report(f.start(shards[1]), domain.OutcomeFailed)
	r.Report.Error = "no such table"
	last, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{r})
	f.ok(err)
	require.Len(t, last[0].Woken, 1)
	after := last[0].Woken[0]
	require.Equal(t, f.find(after), after)
	require.Equal(t, domain.PartAfter, after.Part)
	var results domain.ShardResults
	f.ok(json.Unmarshal(after.Input, &results))
	require.Equal(t, 1, results.Succeeded)
	require.Equal(t, []domain.ShardResult{
		{Index: 0, State: "succeeded", Output: json.RawMessage(`{"rows":7}`)}, {Index: 1, State: "failed", Error: "no such table"},
	}, results.Shards)
	got = f.finish(f.start(after), domain.OutcomeSucceeded)
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(got.Ended))
	require.Equal(t, domain.Failed, f.find(run).State, "a shard has failed")
	parts, family := f.parts(run)
	require.Equal(t, []domain.Part{domain.PartShard, domain.PartShard, domain.PartBefore, domain.PartAfter},
		[]domain.Part{parts[0].Part, parts[1].Part, parts[2].Part, parts[3].Part})
	require.Equal(t, domain.Family{
		Shards: map[domain.State]int{domain.Succeeded: 1, domain.Failed: 1}, Before: domain.Succeeded, After: domain.Succeeded,
	}, family)

	// Without its before hook there are no shards.
	run = f.run(j)
	f.finish(f.start(f.spread(run)[0]), domain.OutcomeFailed)
	require.Equal(t, domain.ReasonBeforeHook, f.find(run).Reason)
	parts, _ = f.parts(run)
	require.Len(t, parts, 1)

	// The after hook counts.
	run = f.run(j)
	f.finish(f.start(f.spread(run)[0]), domain.OutcomeSucceeded)
	for _, p := range f.spread(run) {
		got = f.finish(f.start(p), domain.OutcomeSucceeded)
	}
	f.finish(f.start(got.Woken[0]), domain.OutcomeFailed)
	require.Equal(t, domain.ReasonAfterHook, f.find(run).Reason)
}

func testShardsCancelled(t *testing.T, f *fixture) {
	j := f.job(fixedShards(3))
	run := f.run(j)
	parts := f.spread(run)
	require.Empty(t, f.cancelParts(f.find(run)), "nobody has cancelled it")
	running := f.start(parts[0])
	f.finish(f.start(parts[1]), domain.OutcomeSucceeded)
	parent, err := f.s.RequestCancel(f.ctx, f.tenant, run.ID, domain.ReasonKilled, "by anna")
	f.ok(err)
	require.Equal(t, domain.Cancelling, parent.State)
	out := f.cancelParts(parent)
	require.Equal(t, []domain.ExecutionID{running.ID}, identify(out.Cancel))
	require.Equal(t, []domain.ExecutionID{parts[2].ID}, identify(out.Ended))
	stopping := f.find(running)
	require.Equal(t, []any{domain.Cancelling, domain.ReasonKilled, "by anna"}, []any{stopping.State, stopping.Reason, stopping.Message})
	require.Equal(t, []domain.ExecutionID{running.ID}, identify(f.cancelParts(parent).Cancel), "again, as long as it has not ended")
	require.Equal(t, domain.Cancelling, f.find(run).State)
	got := f.finish(running, domain.OutcomeCancelled)
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(got.Ended))
	require.Equal(t, domain.Cancelled, f.find(run).State)

	// With nothing running it ends at once.
	run = f.run(j)
	f.spread(run)
	parent, err = f.s.RequestCancel(f.ctx, f.tenant, run.ID, domain.ReasonKilled, "")
	f.ok(err)
	out = f.cancelParts(parent)
	require.Len(t, out.Ended, 4)
	require.Equal(t, domain.Cancelled, f.find(run).State)

	// A shard that waits while instances are full of its family waits on.
	run = f.run(j)
	parts = f.spread(run)
	for _, p := range parts[:2] {
		f.age(p, time.Hour)
		f.wait([]store.Wait{{Tenant: f.tenant, ID: p.ID, Reason: domain.ReasonWaitInstance, For: -time.Second, Full: p.ID == parts[0].ID}})
	}
	f.sweep()
	require.Equal(t, domain.Due, f.find(parts[0]).State)
	require.Equal(t, domain.Missed, f.find(parts[1]).State, "nobody was there")
	parent, err = f.s.RequestCancel(f.ctx, f.tenant, run.ID, domain.ReasonKilled, "")
	f.ok(err)
	f.cancelParts(parent)
	require.Equal(t, domain.Cancelled, f.find(run).State)

	// One shard alone can be cancelled, too.
	run = f.run(j)
	parts = f.spread(run)
	_, err = f.s.RequestCancel(f.ctx, f.tenant, parts[0].ID, domain.ReasonKilled, "")
	f.ok(err)
	for _, p := range parts[1:] {
		f.finish(f.start(p), domain.OutcomeSucceeded)
	}
	require.Equal(t, "2 of 3 shards succeeded, 1 cancelled", f.find(run).Message)
}

func testShardsTimeout(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) {
		fixedShards(2)(s)
		s.Sharding.Timeout = time.Hour
	})
	run := f.run(j)
	parts := f.spread(run)
	running := f.start(parts[0])
	f.age(run, 30*time.Minute)
	require.Empty(t, f.sweep().Cancel)
	f.age(run, time.Hour)
	swept := f.sweep()
	require.Equal(t, []domain.ExecutionID{run.ID}, identify(swept.Cancel))
	require.Equal(t, domain.ReasonTimeout, f.find(run).Reason)
	f.cancelParts(swept.Cancel[0])
	f.finish(running, domain.OutcomeCancelled)
	require.Equal(t, domain.TimedOut, f.find(run).State)
	require.Equal(t, domain.Cancelled, f.find(parts[1]).State)
}

// testShardRetryGone: what waits for a retry on an instance that goes is told
// so before its retry would begin.
func testShardRetryGone(t *testing.T, f *fixture) {
	other := f.register("boot of the one", time.Minute).ID
	j := f.job(func(s *domain.JobSpec) {
		broadcast(domain.GoneMiss)(s)
		s.Retry = domain.Retry{MaxAttempts: 2, Delay: time.Hour}
	})
	run := f.run(j)
	tried := f.spread(run)[1]
	f.finish(f.grant(f.offerTo(other, tried)[0].Execution), domain.OutcomeFailed)
	f.age(tried, 2*domain.FamilyCheck)
	require.Empty(t, f.sweep().Ended, "as long as it lives")
	waiting := f.find(tried)
	require.Equal(t, domain.RetryWait, waiting.State)
	require.True(t, waiting.WakeAt.Before(waiting.NotBefore), "it is looked at again")
	_, err := f.supersede(store.SupersedeBootsParams{
		Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"boot of the one"}, OwedComplete: true,
	})
	f.ok(err)
	f.tick()
	f.age(tried, 2*domain.FamilyCheck)
	require.Equal(t, []domain.ExecutionID{tried.ID}, identify(f.sweep().Ended))
	ended := f.find(tried)
	require.Equal(t, []any{domain.Failed, domain.ReasonInstanceGone}, []any{ended.State, ended.Reason})
}

func testShardInstanceGone(t *testing.T, f *fixture) {
	for _, gone := range []domain.OnGone{domain.GoneMiss, domain.GoneMove} {
		other := f.register("boot of "+string(gone), time.Minute).ID
		j := f.job(func(s *domain.JobSpec) {
			broadcast(gone)(s)
			s.Retry = domain.Retry{MaxAttempts: 2}
		})
		first, second := f.run(j), f.run(j)
		tried := f.spread(first)[1]
		waiting := f.spread(second)[1]
		require.Equal(t, other, waiting.Bound)
		running := f.grant(f.offerTo(other, tried)[0].Execution)
		f.finish(running, domain.OutcomeFailed) // its retry belongs to the instance, too
		f.wait([]store.Wait{{Tenant: f.tenant, ID: waiting.ID, Reason: domain.ReasonWaitInstance, For: time.Second}})
		f.age(waiting, time.Minute)
		require.Contains(t, identify(f.sweep().Dispatch), waiting.ID, "as long as it lives")
		_, err := f.supersede(store.SupersedeBootsParams{ // its process is proven to be dead
			Tenant: f.tenant, Executor: f.executor, BootIDs: []string{"boot of " + string(gone)}, OwedComplete: true,
		})
		f.ok(err)
		f.tick()
		f.age(waiting, time.Minute)
		f.age(tried, time.Minute)
		swept := f.sweep()
		if gone == domain.GoneMove {
			require.Subset(t, identify(swept.Dispatch), []domain.ExecutionID{waiting.ID, tried.ID}) // and what waits since long, on a slow machine
			for _, p := range []domain.Execution{waiting, tried} {
				require.Zero(t, f.find(p).Bound)
				f.finish(f.start(p), domain.OutcomeSucceeded)
			}
			continue
		}
		require.Subset(t, identify(swept.Ended), []domain.ExecutionID{waiting.ID, tried.ID})
		missed, failed := f.find(waiting), f.find(tried)
		require.Equal(t, []any{domain.Missed, domain.ReasonInstanceGone}, []any{missed.State, missed.Reason})
		require.Equal(t, []any{domain.Failed, domain.ReasonInstanceGone}, []any{failed.State, failed.Reason})
		parts, _ := f.parts(second)
		f.finish(f.start(parts[0]), domain.OutcomeSucceeded)
		require.Equal(t, "1 of 2 shards succeeded, 1 missed", f.find(second).Message)
	}
}
