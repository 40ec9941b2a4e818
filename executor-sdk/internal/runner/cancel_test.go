package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCancelInEveryPhase(t *testing.T) {
	b, A := newBench(t, 9), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.cancel(1, 1, "killed")
	b.seen = nil
	b.saved(nil)
	b.expect("write done 1/1", "A answer 1/1 no void")
	b.saved(nil)
	b.expect("A result 1/1 CANCELLED cancelled")

	b.offer(A, offer(2, 1))
	b.saved(nil)
	b.seen = nil
	b.cancel(2, 1, "killed")
	b.saved(nil)
	b.expect("write done 2/1", "A result 2/1 CANCELLED cancelled")

	b.offer(A, offer(3, 1))
	b.saved(nil)
	b.grant(A, 3, 1, true)
	b.cancel(3, 1, "killed")
	b.seen = nil
	b.saved(nil)
	b.saved(nil)
	b.expect("write done 3/1", "A result 3/1 CANCELLED cancelled")

	b.offer(A, offer(4, 1, idempotent))
	b.seen = nil
	b.cancel(4, 1, "killed")
	b.cancel(4, 1, "timeout")
	b.expect("cancel 4/1: killed")
	b.returns("4/1", Return{Kind: KindRetryable, Error: "rolled back"})
	b.saved(nil)
	b.expect("write done 4/1", "A result 4/1 CANCELLED cancelled")
	require.Equal(t, "killed: rolled back", b.results[len(b.results)-1].GetError())
	b.cancel(4, 1, "killed")
	b.expect()
}

// A cancel that comes instead of the offer is an answer, too: without it the
// admin would ask for ever.
func TestCancelOfAnAttemptThatWasNeverTaken(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.cancel(1, 2, "killed")
	b.saved(nil)
	b.expect("write done 1/2", "A result 1/2 NEVER_STARTED")
	b.offer(A, offer(1, 2, idempotent), offer(1, 1, idempotent))
	b.expect("A answer 1/2 no duplicate", "A answer 1/1 no void")
	b.ack(1, 2)
	b.expect("write settled 1/2")
	b.cancel(1, 2, "killed") // settled, and an older one: nothing new can be said
	b.cancel(1, 1, "killed")
	b.expect()
	b.expectNothingLeft()
}

func TestTimeoutAndKillGrace(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent, timeout(time.Minute)))
	b.seen = nil
	b.wait(time.Minute - tickInterval)
	b.expect()
	b.wait(10 * time.Second) // the context has its own deadline
	b.expect()
	b.wait(tickInterval)
	b.saved(nil)
	b.expect("write done 1/1", "A result 1/1 TIMED_OUT timeout still_running")
	require.Equal(t, "timed out: the handler still runs 10s after its context was cancelled", b.results[0].GetError())
	require.Equal(t, 1, b.m.used, "the slot stays taken")
	b.ack(1, 1)
	b.expect()
	b.offer(A, offer(2, 1))
	b.expect("A answer 2/1 no busy")

	// The handler comes back after all: the admin hears of it.
	b.returns("1/1", Return{Output: []byte("1")})
	b.saved(nil)
	b.expect("write done 1/1", "A result 1/1 SUCCEEDED")
	require.Zero(t, b.m.used)
	b.ack(1, 1)
	b.expectNothingLeft()
}
