package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// TestAOneStepOfferThatWasLongOnItsWayDoesNotStart: its run may be another
// instance's by now, although this one's lease has been renewed since.
func TestAOneStepOfferThatWasLongOnItsWayDoesNotStart(t *testing.T) {
	b, A := newBench(t, 2), &testLink{name: "A"}
	b.up(A)
	b.wait(20 * time.Second)
	A.leased = b.now.Add(-12 * time.Second)
	b.offer(A, offer(1, 1, idempotent))
	require.Empty(t, b.running)
	A.leased = b.now.Add(-11 * time.Second)
	b.offer(A, offer(1, 1, idempotent))
	require.Empty(t, b.running, "what was refused is another one's")
	b.offer(A, offer(2, 1, idempotent))
	require.Contains(t, b.running, "2/1")
}

// TestAnOldOneStepOfferDoesNotStart, by either clock; one that is sent again to ask
// whether it is there starts nothing either. What was refused stays refused.
func TestAnOldOneStepOfferDoesNotStart(t *testing.T) {
	good := func(ms int64) func(*proto.Offer) { return func(o *proto.Offer) { o.GoodMs = ms } }
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	A.sent = b.now.Add(-1500 * time.Millisecond)
	b.offer(A, offer(1, 1, idempotent, good(1499)), offer(2, 1, idempotent, good(1500)), offer(3, 1, idempotent, good(-1)), offer(4, 1, idempotent))
	b.expect("A answer 1/1 no old", "A answer 3/1 no old", "A take 2/1", "A take 4/1", "A started 2/1", "A started 4/1", "start 2/1", "start 4/1")
	b.offer(A, offer(1, 1, idempotent, good(9000)), offer(2, 1, idempotent, good(-1)))
	b.expect("A answer 1/1 no busy", "A answer 2/1 no duplicate", "A started 2/1")
	b.offer(A, offer(1, 2, idempotent, good(1500)))
	require.Contains(t, b.running, "1/2", "under the next fence it is another offer")
}

// TestAProcessThatStoodStillBeforeTheHandlerStartsNothing: it looks at its clocks
// once more.
func TestAProcessThatStoodStillBeforeTheHandlerStartsNothing(t *testing.T) {
	called := 0
	inBubble(t, func(context.Context, *proto.Offer) Return { called++; return Return{} }, func(r *Runner, a *admin) {
		r.mu.Lock()
		late := &attempt{key: Key{1, 1}, offer: offer(1, 1, idempotent), slots: 1, origin: a, phase: running, startedAt: time.Now(), good: bound{time.Now(), time.Second}}
		killed := &attempt{key: Key{2, 1}, offer: offer(2, 1, idempotent), slots: 1, origin: a, phase: running, startedAt: time.Now(), good: late.good, cause: ErrKilled, cancelledAt: time.Now(), stuck: Stuck{Grace: time.Minute}}
		r.machine.attempts[late.key], r.machine.attempts[killed.key], r.machine.used = late, killed, 2
		r.mu.Unlock()
		time.Sleep(time.Second + time.Millisecond)
		for _, one := range []*attempt{late, killed} {
			ctx, cancel := context.WithCancelCause(context.Background())
			one.ctx, one.cancel = ctx, cancel //nolint:fatcontext // each has its own
			r.execute(one)
		}
		synctest.Wait()
		require.Zero(t, called)
		got := map[int64]proto.Outcome{}
		for _, result := range a.got() {
			got[result.GetExecutionId()] = result.GetOutcome()
			require.Zero(t, result.GetStartedAtMs())
		}
		require.Equal(t, map[int64]proto.Outcome{1: proto.Outcome_OUTCOME_NEVER_STARTED, 2: proto.Outcome_OUTCOME_CANCELLED}, got)
		used, _ := r.Load()
		require.Zero(t, used)
	})
}

// TestWhatHasJustStartedIsToldToAnotherNode when its session ends: nobody may have
// heard of it, and what is not heard of is given to another instance.
func TestWhatHasJustStartedIsToldToAnotherNode(t *testing.T) {
	b, A, B := newBench(t, 9), &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.up(B)
	b.offer(A, offer(1, 1, idempotent))
	b.wait(maybeUnheard)
	b.offer(A, offer(2, 1, idempotent))
	b.seen = nil
	b.do(func() { b.m.linkDown(b.now, A) })
	b.expect("B ask 2/1 RUNNING")
}

func TestLeaseLossBeforeTheStartGivesTheAttemptBack(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.cancel(1, 1, "lease_lost")
	b.seen = nil
	b.saved(nil)
	b.saved(nil)
	b.expect("write done 1/1", "A answer 1/1 no void", "A result 1/1 NEVER_STARTED")
}

func TestSelfFence(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent), offer(2, 1))
	b.saved(nil)
	b.wait(time.Second)
	b.seen = nil
	b.cut(5 * time.Second) // the grant for 2/1 never comes
	require.Equal(t, []string{"write done 2/1"}, b.seen)
	b.seen = nil
	b.cut(7*time.Second - tickInterval)
	b.expect()
	b.cut(tickInterval)
	b.expect("lease lost", "cancel 1/1: lease lost")
	b.offer(A, offer(3, 1))
	b.expect("A answer 3/1 no busy")
	b.returns("1/1", Return{Kind: KindRetryable, Error: "context canceled"})
	b.seen = nil
	b.saved(nil)
	b.expect("A result 2/1 NEVER_STARTED", "A result 1/1 FAILED lease_lost")
	require.Equal(t, "lease lost", b.results[1].GetError())

	b.do(func() { b.m.renewed(A, b.now, true) })
	b.offer(A, offer(3, 1))
	b.expect("write accepted 3/1")
}

// A process that stood still did not hear the nodes: that is told apart from
// nodes that did not answer.
func TestALeaseLostByStandingStill(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.wait(time.Second)
	b.seen = nil
	b.now = b.now.Add(30 * time.Second) // suspended
	b.do(func() { b.m.tick(b.now) })
	b.expect("lease lost", "cancel 1/1: lease lost: its process stood still")
	b.returns("1/1", Return{Kind: KindRetryable, Error: "context canceled"})
	b.seen = nil
	b.saved(nil)
	b.expect("A result 1/1 FAILED stalled")
}

// A handler that does not listen: from the lease's end on another instance may
// run the same, and only the end of the process stops this one.
func TestExitIfALostLeaseIsIgnored(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.m.limits.ExitIfIgnored = 20 * time.Second
	b.up(A)
	b.offer(A, offer(1, 1, idempotent), offer(2, 1, idempotent))
	b.cancel(2, 1, "killed")
	b.cut(12 * time.Second)
	b.seen = nil
	b.do(func() { b.m.renewed(A, b.now, true) }) // a lease that is back does not bring the run back
	b.wait(20*time.Second - tickInterval)
	require.NotContains(t, b.seen, "exit")
	b.wait(tickInterval)
	require.Contains(t, b.seen, "exit")

	b.returns("1/1", Return{})
	b.seen = nil
	b.wait(time.Minute)
	require.NotContains(t, b.seen, "exit", "a killed run may go on: nobody else has it")
}

// A heartbeat counts from when it was sent, and an answer without a renewed
// lease not at all.
func TestLeaseCountsFromTheHeartbeatsSending(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.seen = nil
	sent := b.now.Add(2 * time.Second)
	b.cut(8 * time.Second)
	b.m.renewed(A, sent, true)
	b.m.renewed(A, b.now, false)
	b.cut(6*time.Second - tickInterval)
	b.expect()
	b.cut(tickInterval)
	b.expect("lease lost", "cancel 1/1: lease lost")
}

// An offer right after a suspend must not start under a dead lease, even
// before the first tick.
func TestOfferAfterSuspend(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.now = b.now.Add(time.Minute)
	b.offer(A, offer(1, 1, idempotent))
	b.expect("A answer 1/1 no busy")
}
