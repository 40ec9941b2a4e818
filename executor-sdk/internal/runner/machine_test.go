package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

func TestAtMostOnce(t *testing.T) {
	b, A := newBench(t, 2), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1), offer(2, 1))
	b.expect("write accepted 1/1", "write accepted 2/1")
	b.saved(nil)
	b.expect("A answer 1/1 yes", "A answer 2/1 yes")
	b.grant(A, 1, 1, true)
	b.expect("write granted 1/1")
	b.saved(nil)
	b.expect("A started 1/1", "start 1/1")
	b.grant(A, 2, 1, false)
	b.expect("write settled 2/1")
	require.Equal(t, 1, b.m.used)

	b.now = b.now.Add(1500 * time.Microsecond)
	b.returns("1/1", Return{Output: []byte(`{}`), LogLines: 3})
	b.expect("write done 1/1")
	require.Equal(t, 0, b.m.used, "the slot is free when the handler has returned")
	b.saved(nil)
	b.expect("A result 1/1 SUCCEEDED")
	require.EqualValues(t, 1500, b.results[0].GetDurationUs())
	require.EqualValues(t, 3, b.results[0].GetLogLines())
	require.Equal(t, "boot1", b.results[0].GetBootId())
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}

func TestIdempotentStartsInOneStep(t *testing.T) {
	b, A := newBench(t, 2), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent), offer(2, 1, idempotent), offer(3, 1, idempotent))
	b.expect("A answer 3/1 no busy", "A take 1/1", "A take 2/1",
		"A started 1/1", "A started 2/1", "start 1/1", "start 2/1")
	b.returns("2/1", Return{})
	b.expect("write done 2/1")
	b.saved(nil)
	b.expect("A result 2/1 SUCCEEDED")
}

// TestARepeatedOfferStartsNothing, but tells again what runs: the admin repeats
// a one-step offer when it has not heard of its start.
func TestARepeatedOfferStartsNothing(t *testing.T) {
	b, A, B := newBench(t, 3), &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.up(B)
	b.offer(A, offer(1, 1, idempotent))
	b.seen = nil
	b.now = b.now.Add(time.Second)
	b.offer(B, offer(1, 1, idempotent))
	b.expect("B answer 1/1 no duplicate", "B started 1/1")
	b.returns("1/1", Return{})
	b.saved(nil)
	b.seen = nil
	b.offer(B, offer(1, 1, idempotent))
	b.expect("B answer 1/1 no duplicate")
	b.ack(1, 1)
	b.seen = nil
	b.offer(B, offer(1, 1, idempotent))
	b.expect("B answer 1/1 no duplicate")
	b.expectNothingLeft()
}

// TestASessionThatStandsTooLateIsAsked: its inventory had been sent before the
// acceptance, and the session of that ended before it stood.
func TestASessionThatStandsTooLateIsAsked(t *testing.T) {
	b, A, B := newBench(t, 9), &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.offer(A, offer(1, 1), offer(2, 1))
	b.saved(nil)
	b.do(func() { b.m.linkDown(b.now, A) })
	b.seen = nil
	b.up(B, &proto.InventoryVerdict{ExecutionId: 2, Fence: 1, Verdict: proto.Verdict_VERDICT_KEEP})
	b.expect("B ask 1/1 ACCEPTED")
}

// TestANodeThatDiesWhileItGrants: another one is asked at once.
func TestANodeThatDiesWhileItGrants(t *testing.T) {
	b, A, B := newBench(t, 9), &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.up(B)
	b.offer(A, offer(1, 1), offer(2, 1))
	b.offer(B, offer(3, 1))
	b.saved(nil)
	b.offer(A, offer(4, 1)) // on its way to the disk when the session ends
	b.seen = nil
	b.do(func() { b.m.linkDown(b.now, A) })
	b.expect("B ask 1/1 ACCEPTED", "B ask 2/1 ACCEPTED")
	b.saved(nil)
	b.expect("B ask 4/1 ACCEPTED")
	b.do(func() {
		b.m.verdicts(b.now, B, []*proto.InventoryVerdict{
			{ExecutionId: 1, Fence: 1, Verdict: proto.Verdict_VERDICT_GRANT},
			{ExecutionId: 2, Fence: 1, Verdict: proto.Verdict_VERDICT_DROP},
		})
	})
	b.expect("write settled 2/1", "write granted 1/1")
	b.saved(nil)
	b.expect("B started 1/1", "start 1/1")
	// Nobody says anything of 4/1: an older node does not know the question.
	b.wait(proto.AcceptTTL + tickInterval)
	b.saved(nil)
	require.Contains(t, b.seen, "B result 4/1 NEVER_STARTED")
	require.Contains(t, b.seen, "B result 3/1 NEVER_STARTED")
}

func TestWithoutAnotherNodeTheNextRegistrationAsks(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.offer(A, offer(2, 1))
	b.saved(nil)
	b.seen = nil
	b.do(func() { b.m.linkDown(b.now, A) })
	b.expect()
	items, complete := b.m.attempts.inventory(b.m.boot)
	require.Len(t, items, 2)
	require.True(t, complete)
	// The void rule holds for verdicts as for grants.
	b.now = b.now.Add(proto.AcceptTTL + time.Millisecond)
	b.up(A, &proto.InventoryVerdict{ExecutionId: 1, Fence: 1, Verdict: proto.Verdict_VERDICT_GRANT})
	b.saved(nil)
	b.expect("write done 1/1", "A answer 1/1 no void", "A result 1/1 NEVER_STARTED")
}

func TestRefusals(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.do(func() { b.m.offers(b.now, A, []*proto.Offer{offer(1, 1)}, errors.New("disk full")) })
	b.offer(A, offer(2, 1, func(o *proto.Offer) { o.Handler = "other" }))
	b.offer(A, offer(3, 2, idempotent))
	b.offer(A, offer(3, 2, idempotent), offer(3, 1, idempotent), offer(4, 1))
	b.expect("A answer 1/1 no journal_unavailable", "A answer 2/1 no unknown_handler",
		"A take 3/2", "A started 3/2", "start 3/2",
		"A answer 3/2 no duplicate", "A answer 3/1 no void", "A answer 4/1 no busy", "A started 3/2")

	// The attempt is remembered after it ended.
	b.returns("3/2", Return{})
	b.saved(nil)
	b.ack(3, 2)
	b.seen = nil
	b.offer(A, offer(3, 2, idempotent))
	b.do(b.m.drain)
	b.offer(A, offer(5, 1))
	b.expect("A answer 3/2 no duplicate", "A answer 5/1 no draining")
	b.expectNothingLeft()
}

func (b *bench) expectNothingLeftAfterSettled() {
	b.t.Helper()
	require.True(b.t, strings.HasPrefix(b.seen[len(b.seen)-1], "write settled"))
	b.expectNothingLeft()
}

func TestLateGrantIsVoid(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.saved(nil)
	b.seen = nil
	// The process was frozen: no tick came between.
	b.now = b.now.Add(proto.AcceptTTL + time.Millisecond)
	b.m.renewed(A, b.now, true)
	b.grant(A, 1, 1, true)
	b.saved(nil)
	b.expect("write done 1/1", "A answer 1/1 no void", "A result 1/1 NEVER_STARTED")
	b.grant(A, 1, 1, true)
	b.expect("A answer 1/1 no void")
	b.ack(1, 1)
	b.seen = nil
	b.grant(A, 1, 1, true)
	b.expect("A answer 1/1 no void")
	b.expectNothingLeft()
}

func TestGrantThatNeverComes(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.saved(nil)
	b.seen = nil
	b.wait(proto.AcceptTTL)
	b.expect()
	b.wait(tickInterval)
	b.saved(nil)
	b.expect("write done 1/1", "A result 1/1 NEVER_STARTED")
	require.Zero(t, b.m.used)
}

func TestGrantJustInTimeStartsOnce(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.saved(nil)
	b.wait(proto.AcceptTTL)
	b.seen = nil
	b.grant(A, 1, 1, true)
	b.grant(A, 1, 1, true)
	b.saved(nil)
	b.grant(A, 1, 1, true)
	b.expect("write granted 1/1", "A started 1/1", "start 1/1")
}

func TestHigherFenceInterruptsTheOlderAttempt(t *testing.T) {
	b, A := newBench(t, 3), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.seen = nil
	b.offer(A, offer(1, 2, idempotent))
	b.expect("cancel 1/1: lease lost: a newer attempt was offered",
		"A take 1/2", "A started 1/2", "start 1/2")
	b.returns("1/1", Return{Kind: KindRetryable, Error: "context canceled"})
	b.saved(nil)
	b.expect("write done 1/1", "A result 1/1 FAILED lease_lost")
}

// TestARefusedOneStepOfferIsNotTakenLater: the admin gives the run to another
// instance for the refusal, whichever copy of the offer it answers.
func TestARefusedOneStepOfferIsNotTakenLater(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.offer(A, offer(2, 1, idempotent))
	b.seen = nil
	b.returns("1/1", Return{})
	b.saved(nil)
	b.seen = nil
	b.offer(A, offer(2, 1, idempotent))
	b.expect("A answer 2/1 no busy")
	b.offer(A, offer(2, 2, idempotent))
	b.expect("A take 2/2", "A started 2/2", "start 2/2")
}

func TestSecondResultWaitsForTheFirstAck(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.cancel(1, 1, "killed")
	b.wait(10 * time.Second)
	b.saved(nil)
	b.returns("1/1", Return{})
	b.seen = nil
	b.saved(nil)
	b.expect()
	b.ack(1, 1)
	b.expect("A result 1/1 SUCCEEDED")
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}

func TestReturnAtTheDeadlineIsATimeout(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent, timeout(time.Second)))
	b.now = b.now.Add(time.Second) // the context ended, the tick has not come
	b.returns("1/1", Return{Kind: KindRetryable, Error: "context deadline exceeded"})
	b.saved(nil)
	require.Equal(t, "TIMED_OUT timeout", brief(b.results[0]))
	require.Equal(t, "timed out", b.results[0].GetError())
}

func TestResultsAreSentUntilAcknowledged(t *testing.T) {
	b := newBench(t, 1)
	A, B := &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.do(func() { b.m.linkDown(b.now, A) })
	b.returns("1/1", Return{})
	b.seen = nil
	b.saved(nil)
	b.expect() // nobody is there
	b.up(B)
	b.expect("B result 1/1 SUCCEEDED")
	b.wait(10*time.Second - tickInterval)
	b.expect()
	b.wait(tickInterval)
	b.expect("B result 1/1 SUCCEEDED")
	b.up(A)
	b.wait(20 * time.Second)
	b.expect("A result 1/1 SUCCEEDED") // another one may have better luck
	b.do(func() { b.m.linkDown(b.now, A) })
	b.expect("B result 1/1 SUCCEEDED")
	b.ack(1, 1)
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}

func TestResultsPreferANodeThatCanStoreThem(t *testing.T) {
	b := newBench(t, 1)
	A, B := &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	b.up(B)
	b.offer(A, offer(1, 1, idempotent))
	b.m.renewed(A, b.now, false) // A lost its database
	b.returns("1/1", Return{})
	b.seen = nil
	b.saved(nil)
	b.expect("B result 1/1 SUCCEEDED")
}

func TestReconnectWithInventory(t *testing.T) {
	b := newBench(t, 9)
	A, B := &testLink{name: "A"}, &testLink{name: "B"}
	b.up(A)
	for _, o := range []*proto.Offer{offer(1, 1), offer(2, 1), offer(3, 1), offer(5, 1)} {
		b.offer(A, o)
	}
	b.saved(nil)
	b.offer(A, offer(4, 1, idempotent), offer(6, 1, idempotent))
	b.offer(A, offer(7, 1)) // still on its way to the disk
	b.returns("6/1", Return{})
	b.do(func() { b.m.linkDown(b.now, A) })
	b.grant(B, 5, 1, true)

	var got []string
	inventory, complete := b.m.attempts.inventory(b.m.boot)
	require.True(t, complete)
	for _, item := range inventory {
		got = append(got, fmt.Sprintf("%d %s", item.GetExecutionId(), strings.TrimPrefix(item.GetPhase().String(), "ATTEMPT_PHASE_")))
	}
	require.Equal(t, []string{"1 ACCEPTED", "2 ACCEPTED", "3 ACCEPTED", "5 GRANTED", "4 RUNNING", "6 DONE"}, got)

	verdict := func(execution int64, v proto.Verdict) *proto.InventoryVerdict {
		return &proto.InventoryVerdict{ExecutionId: execution, Fence: 1, Verdict: v}
	}
	b.unsaved = nil
	b.seen = nil
	b.up(B, verdict(1, proto.Verdict_VERDICT_GRANT), verdict(2, proto.Verdict_VERDICT_DROP),
		verdict(3, proto.Verdict_VERDICT_KEEP), verdict(4, proto.Verdict_VERDICT_DROP))
	b.expect("write settled 2/1", "cancel 4/1: lease lost: the run was given away", "write granted 1/1")
	b.saved(nil)
	b.expect("B started 1/1", "start 1/1")
}

func TestRecovery(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	done, err := gproto.Marshal(&proto.Result{ExecutionId: 1, Fence: 2, Outcome: proto.Outcome_OUTCOME_SUCCEEDED, BootId: "boot0"})
	require.NoError(t, err)
	b.m.recover([]journal.Entry{
		{Execution: 1, Fence: 2, Boot: "boot0", Kind: journal.Done, Result: done},
		{Execution: 2, Fence: 1, Boot: "boot0", Kind: journal.Accepted},
		{Execution: 3, Fence: 1, Boot: "boot0", Kind: journal.Granted},
		{Execution: 4, Fence: 1, Boot: "boot0", Kind: journal.Done, Result: []byte{0xff}},
	})
	items, complete := b.m.attempts.inventory(b.m.boot)
	require.Empty(t, items, "only this process's attempts")
	require.True(t, complete)
	b.up(A)
	b.expect("A result 1/2 SUCCEEDED", "A result 2/1 NEVER_STARTED",
		"A result 3/1 UNKNOWN process_died", "A result 4/1 UNKNOWN process_died")
	require.Equal(t, "boot0", b.results[0].GetBootId())
	require.Equal(t, "boot0", b.results[1].GetBootId())
	b.offer(A, offer(2, 1))
	b.expect("A answer 2/1 no duplicate")
	for i, fence := range []int64{2, 1, 1, 1} {
		b.ack(int64(i+1), fence)
	}
	b.expectNothingLeftAfterSettled()
}

func TestStop(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent), offer(2, 1))
	b.saved(nil)
	b.offer(A, offer(3, 1))
	b.do(b.m.drain)
	require.Equal(t, 3, b.m.attempts.active())
	b.seen = nil
	b.do(func() { b.m.stop(b.now) })
	b.expect("cancel 1/1: executor is stopping", "write done 2/1")
	b.saved(nil)
	b.expect("write done 3/1", "A answer 3/1 no void", "A result 2/1 NEVER_STARTED")
	b.returns("1/1", Return{Kind: KindRetryable, Error: "half done"})
	b.saved(nil)
	require.Equal(t, "executor is stopping: half done", b.results[len(b.results)-1].GetError())
	require.Zero(t, b.m.attempts.active())
}

func TestSeenIsBounded(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.m.history.maxSeen = 100
	for i := range int64(110) {
		b.offer(A, offer(i, 1, idempotent))
		b.returns(name(Key{i, 1}), Return{})
		b.saved(nil)
		b.ack(i, 1)
		b.seen, b.results = nil, nil
	}
	require.Len(t, b.m.history.seen, 100)
	require.Len(t, b.m.history.order, 100)
	require.False(t, slices.Contains(b.m.history.order, Key{9, 1}))
	b.expectNothingLeft()
}
