package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A handler may have a grace of its own, and ask for the end of the process: the
// run is reported first, what runs beside it may end, and nothing new is taken.
func TestAStuckHandlerEndsItsProcess(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.m.limits.ExitWait = 30 * time.Second
	b.m.limits.Stuck = func(string) Stuck { return Stuck{Grace: 2 * time.Second, Exit: true} }
	b.up(A)
	b.offer(A, offer(1, 1, idempotent, timeout(time.Minute)), offer(2, 1, idempotent))
	b.wait(time.Minute)
	b.seen = nil
	b.wait(2*time.Second - tickInterval)
	b.expect()
	b.wait(tickInterval)
	b.expect("write done 1/1")
	b.offer(A, offer(3, 1))
	b.expect("A answer 3/1 no draining")
	b.saved(nil)
	b.expect("A result 1/1 TIMED_OUT timeout still_running")
	require.Equal(t, "timed out: the handler still runs 2s after its context was cancelled", b.results[0].GetError())
	b.ack(1, 1)

	b.wait(10 * time.Second)
	b.expect() // run 2 may go on
	b.returns("2/1", Return{})
	b.wait(tickInterval)
	b.expect("write done 2/1") // and its result has to be in the journal
	b.saved(nil)
	b.expect("A result 2/1 SUCCEEDED")
	b.wait(tickInterval)
	b.expect("exit")
}

// The other runs do not hold the end up for ever; and a handler that returns
// in time keeps its process alive.
func TestAProcessWaitsForAStuckHandlerAndItsNeighboursOnlySoLong(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.m.limits.ExitWait = 30 * time.Second
	b.m.limits.Stuck = func(string) Stuck { return Stuck{Exit: true} } // with the grace of all
	b.up(A)
	b.offer(A, offer(1, 1, idempotent), offer(2, 1, idempotent))
	b.cancel(1, 1, "killed")
	b.wait(10 * time.Second)
	require.True(t, b.m.leaving())
	b.returns("1/1", Return{})
	require.False(t, b.m.leaving())
	b.seen = nil
	b.wait(time.Minute)
	require.NotContains(t, b.seen, "exit")
	b.offer(A, offer(3, 1, idempotent))
	require.Contains(t, b.running, "3/1")

	b.cancel(3, 1, "killed")
	b.wait(10 * time.Second)
	b.wait(30*time.Second - tickInterval)
	require.NotContains(t, b.seen, "exit")
	b.wait(tickInterval)
	require.Contains(t, b.seen, "exit")
}
