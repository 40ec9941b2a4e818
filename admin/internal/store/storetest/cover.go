package storetest

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

func covering(s *domain.JobSpec) { s.Blocking = domain.BlockCover }

// seconds creates runs of a job, due one, two, … seconds after a minute ago.
func (f *fixture) seconds(j store.JobView, n int) []domain.Execution {
	f.t.Helper()
	base := f.now().Add(-time.Minute)
	out := make([]domain.Execution, n)
	for i := range out {
		out[i] = f.runAt(j, base.Add(time.Duration(i)*time.Second))
	}
	return out
}

func testCover(t *testing.T, f *fixture) {
	j := f.job(covering)
	runs := f.seconds(j, 4)
	running := f.start(runs[0])

	// A later run tells the one that runs to stop, and waits until it has.
	got := f.offerTo(f.instance, runs[1])[0]
	require.Equal(t, store.OfferBlocked, got.Status)
	require.Equal(t, domain.ReasonWaitSlot, got.Execution.Reason)
	require.Len(t, got.Covered, 1)
	stopping := f.find(running)
	require.Equal(t, stopping, got.Covered[0])
	require.Equal(t, domain.Cancelling, stopping.State)
	require.Equal(t, domain.ReasonCovered, stopping.Reason)
	require.True(t, stopping.HoldsSlot, "until it has ended")
	require.Empty(t, f.offerTo(f.instance, runs[1])[0].Covered, "told once; the sweep repeats it")

	// One later still discards the one that waits.
	got = f.offerTo(f.instance, runs[2])[0]
	require.Equal(t, store.OfferBlocked, got.Status)
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(got.Covered))
	waited := f.find(runs[1])
	require.Equal(t, domain.Discarded, waited.State)
	require.Equal(t, domain.ReasonCovered, waited.Reason)
	require.Zero(t, waited.Attempt)

	// An earlier one that comes late is covered itself.
	late := f.runAt(j, runs[0].FireAt.Add(500*time.Millisecond))
	require.Equal(t, domain.Discarded, f.offer(store.OfferDiscarded, late).State)
	require.Equal(t, domain.ReasonCovered, f.find(late).Reason)

	// When the first one has ended, the last one starts.
	done := f.finish(stopping, domain.OutcomeCancelled)
	require.Equal(t, domain.Cancelled, done.Execution.State)
	require.Equal(t, domain.ReasonCovered, done.Execution.Reason)
	require.Equal(t, []domain.ExecutionID{runs[2].ID}, identify(done.Woken))
	running = f.start(runs[2])
	require.True(t, running.HoldsSlot)

	// A run that ends well although it was told to stop has ended well.
	f.offer(store.OfferBlocked, runs[3])
	done = f.finish(running, domain.OutcomeSucceeded)
	require.Equal(t, domain.Succeeded, done.Execution.State)
	require.Equal(t, []domain.ExecutionID{runs[3].ID}, identify(done.Woken))
	f.finish(f.start(runs[3]), domain.OutcomeSucceeded)
}

// A run whose instance is gone ends by its lease, and gives its slot away then.
func testCoverForced(t *testing.T, f *fixture) {
	j := f.job(covering)
	runs := f.seconds(j, 2)
	gone := f.register("boot-gone", time.Millisecond)
	offered := f.offerTo(gone.ID, runs[0])[0].Execution
	running := f.grant(offered)
	f.offer(store.OfferBlocked, runs[1])
	f.ok(LeaveInstance(f.ctx, f.s, f.tenant, gone.ID, "died"))
	f.age(running, time.Minute)
	for f.find(running).State != domain.Cancelled { // its lease has to be over by the database's clock
		f.age(running, time.Minute)
		swept := f.sweep()
		require.NoError(t, f.ctx.Err())
		if f.find(running).State == domain.Cancelled {
			require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(swept.Dispatch))
		}
	}
	require.Equal(t, domain.ReasonCancelForced, f.find(running).Reason)
	f.start(runs[1])
}

// A run that finds no instance covers too: the earlier one may be what keeps
// the instance busy.
func testCoverWaiting(t *testing.T, f *fixture) {
	j := f.job(covering)
	runs := f.seconds(j, 3)
	running := f.start(runs[0])
	wait := func(e domain.Execution) []domain.Execution {
		return f.wait([]store.Wait{{Tenant: f.tenant, ID: e.ID, Reason: domain.ReasonWaitInstance, Message: "full", For: 10 * time.Second}})
	}
	covered := wait(runs[2])
	require.Equal(t, []domain.Execution{f.find(running)}, covered)
	require.Equal(t, domain.Cancelling, f.find(running).State)
	require.Empty(t, wait(runs[2]))
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(wait(runs[1])), "an earlier one is over")
	require.Equal(t, domain.Discarded, f.find(runs[1]).State)
	require.Empty(t, f.finish(f.find(running), domain.OutcomeCancelled).Woken, "it waits for an instance, and the room there wakes it")
	f.start(runs[2])
}

// An offer that nobody has answered is taken back; a repetition that comes when
// a later run goes on is over.
func testCoverRetry(t *testing.T, f *fixture) {
	j := f.job(func(s *domain.JobSpec) { covering(s); s.Retry = domain.Retry{MaxAttempts: 3} })
	runs := f.seconds(j, 3)
	failed := f.finish(f.start(runs[0]), domain.OutcomeFailed).Execution
	require.Equal(t, domain.RetryWait, failed.State)
	offered := f.offer(store.OfferMade, runs[1])
	got := f.offerTo(f.instance, runs[2])[0]
	require.Equal(t, store.OfferMade, got.Status, "nothing runs: the slot is free at once")
	require.Equal(t, []domain.ExecutionID{runs[1].ID}, identify(got.Covered))
	require.Equal(t, domain.Discarded, f.find(runs[1]).State)
	granted, err := f.s.GrantOffers(f.ctx, []store.GrantRequest{{Tenant: f.tenant, ID: offered.ID, Fence: offered.Fence, Instance: offered.Instance}})
	f.ok(err)
	require.False(t, granted[0].Granted)

	f.age(failed, time.Minute)
	require.Equal(t, domain.Cancelled, f.offer(store.OfferDiscarded, failed).State)
	require.Equal(t, domain.ReasonCovered, f.find(failed).Reason)
	f.finish(f.grant(got.Execution), domain.OutcomeSucceeded)
}

// Of many that are due at once, the latest runs and the others say why not.
func testCoverBatch(t *testing.T, f *fixture) {
	j := f.job(covering)
	runs := f.seconds(j, 5)
	got := f.offerTo(f.instance, runs[3], runs[0], runs[4], runs[2], runs[1])
	for i, want := range []store.OfferStatus{store.OfferDiscarded, store.OfferDiscarded, store.OfferMade, store.OfferDiscarded, store.OfferDiscarded} {
		require.Equal(t, want, got[i].Status, "offer %d", i)
		require.Empty(t, got[i].Covered, "they answer for themselves")
		require.Equal(t, f.find(got[i].Execution), got[i].Execution)
	}
	f.finish(f.grant(got[2].Execution), domain.OutcomeSucceeded)
}

// Several nodes offer the runs of one job in any order: never two of them run at
// once, each has an end, and the latest one runs.
func testCoverRace(t *testing.T, f *fixture) {
	const each, nodes = 12, 4
	j := f.job(covering)
	runs := f.seconds(j, each)
	var mu sync.Mutex
	live := map[domain.ExecutionID]domain.Execution{} // on the instance, as its sessions see it
	made := func(e domain.Execution) {
		mu.Lock()
		defer mu.Unlock()
		live[e.ID] = e
	}
	end := func(id domain.ExecutionID) { // the handler obeys
		mu.Lock()
		e, ok := live[id]
		delete(live, id)
		mu.Unlock()
		if !ok {
			return
		}
		if _, err := f.s.FinishAttempts(f.ctx, []store.AttemptReport{f.report(e, domain.OutcomeCancelled)}); err != nil {
			t.Errorf("finish: %v", err)
		}
	}
	race(nodes, func(node int) {
		for i := node; i < each; i += nodes {
			got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: runs[i].ID, Node: domain.NodeID(node + 1), Instance: f.instance, Idempotent: true, Granted: true}})
			if err != nil {
				t.Errorf("offer: %v", err)
				return
			}
			if got[0].Status == store.OfferMade {
				made(got[0].Execution)
			}
			for _, c := range got[0].Covered {
				if c.State == domain.Cancelling {
					end(c.ID)
				}
			}
		}
	})
	last := runs[each-1]
	for id := range live { // told to stop before the answer to its own offer was here
		if id != last.ID {
			end(id)
		}
	}
	if f.find(last).State == domain.Due {
		got, err := f.s.OfferExecutions(f.ctx, []store.Offer{{Tenant: f.tenant, ID: last.ID, Node: 1, Instance: f.instance, Idempotent: true, Granted: true}})
		f.ok(err)
		require.Equal(t, store.OfferMade, got[0].Status)
	}
	after := make([]domain.Execution, each)
	for i, e := range runs {
		after[i] = f.find(e)
		if e.ID == last.ID {
			require.Equal(t, domain.Running, after[i].State)
			continue
		}
		require.Contains(t, []domain.State{domain.Discarded, domain.Cancelled}, after[i].State, "run %d", i)
		require.Equal(t, domain.ReasonCovered, after[i].Reason, "run %d", i)
	}
	// What ran did so one after another.
	slices.SortFunc(after, func(a, b domain.Execution) int { return cmp.Compare(a.GrantedAt.UnixMilli(), b.GrantedAt.UnixMilli()) })
	var before domain.Execution
	for _, e := range after {
		if e.Attempt == 0 {
			continue
		}
		require.False(t, e.GrantedAt.Before(before.FinishedAt), "%s began before %s had ended", e.ID, before.ID)
		before = e
	}
}
