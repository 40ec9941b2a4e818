package runner

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRefusedJournal(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.saved(errors.New("disk full"))
	b.expect("write accepted 1/1", "write settled 1/1", "A answer 1/1 no journal_unavailable")
	b.expectNothingLeft()

	b.offer(A, offer(2, 1))
	b.saved(nil)
	b.grant(A, 2, 1, true)
	b.seen = nil
	b.saved(errors.New("disk full"))
	b.expect("write done 2/1") // never started, and nothing was
	b.saved(errors.New("disk full"))
	b.expect("A result 2/1 NEVER_STARTED")
	b.ack(2, 1)
	b.expectNothingLeftAfterSettled()
}

// An acceptance is answered and a granted attempt started when that stands in the
// journal's file, or when it is durable where the file may lose its end unseen.
func TestWhatIsAwaited(t *testing.T) {
	for name, awaitDisk := range map[string]bool{"the file": false, "the disk": true} {
		t.Run(name, func(t *testing.T) {
			b, A := newBench(t, 1), &testLink{name: "A"}
			b.m.limits.AwaitDisk = awaitDisk
			expect := func(want ...string) {
				t.Helper()
				if b.written(); awaitDisk {
					b.expect()
					b.saved(nil)
				}
				b.expect(want...)
				b.saved(nil)
				b.expect() // the fsync says nothing new
			}
			b.up(A)
			b.offer(A, offer(1, 1))
			b.seen = nil
			expect("A answer 1/1 yes")
			b.grant(A, 1, 1, true)
			b.seen = nil
			expect("A started 1/1", "start 1/1")
			b.returns("1/1", Return{})
			b.saved(nil)
			b.ack(1, 1)
			b.expectNothingLeftAfterSettled()
		})
	}
}

// What cannot be written is neither answered nor started; once it stands in the
// file, an fsync that fails comes too late to say so.
func TestWhatIsAwaitedFails(t *testing.T) {
	b, A := newBench(t, 2), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1))
	b.seen = nil
	b.saved(errDisk)
	b.expect("write settled 1/1", "A answer 1/1 no journal_unavailable")
	b.offer(A, offer(2, 1), offer(3, 1))
	b.saved(nil)
	b.grant(A, 2, 1, true)
	b.seen = nil
	b.saved(errDisk)
	b.expect("write done 2/1")
	b.saved(nil)
	b.expect("A result 2/1 NEVER_STARTED")
	b.grant(A, 3, 1, true)
	b.written()
	b.seen = nil
	b.saved(errDisk)
	b.expect()
	require.Contains(t, b.running, "3/1")
}

// A result does not wait for the fsync of its record, and its record does not
// leave the journal before that.
func TestAResultIsSentBeforeItsFsync(t *testing.T) {
	for name, err := range map[string]error{"that works": nil, "that fails": errDisk} {
		t.Run(name, func(t *testing.T) {
			b, A := newBench(t, 1), &testLink{name: "A"}
			b.up(A)
			b.offer(A, offer(1, 1, idempotent))
			b.returns("1/1", Return{})
			b.seen = nil
			b.expect()
			b.written()
			b.expect("A result 1/1 SUCCEEDED")
			require.Equal(t, 1, b.m.attempts.unsettled())
			b.ack(1, 1)
			b.expect() // the acknowledgement was quicker than the disk
			require.Zero(t, b.m.attempts.unsettled(), "no admin node has to hear of it")
			require.Equal(t, 1, b.m.attempts.owed(), "the journal has")
			b.saved(err)
			b.expect("write settled 1/1")
			b.expectNothingLeft()
		})
	}
}

func TestAResultThatCannotBeWrittenIsSent(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent))
	b.returns("1/1", Return{})
	b.seen = nil
	b.saved(errDisk)
	b.expect("A result 1/1 SUCCEEDED")
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}

var errDisk = errors.New("the disk is full")
