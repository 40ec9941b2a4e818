package runner

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	gproto "google.golang.org/protobuf/proto"

	"github.com/carillon-sched/carillon/executor-sdk/internal/journal"
	"github.com/carillon-sched/carillon/proto"
)

// TestASecondAckOfTheFirstResult: the first result was sent twice, so it is
// acknowledged twice. The second of these says nothing of the second result,
// without which the run's slot would stay taken.
func TestASecondAckOfTheFirstResult(t *testing.T) {
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.up(A)
	b.offer(A, offer(1, 1, idempotent, timeout(time.Minute)))
	b.wait(time.Minute + 10*time.Second)
	b.saved(nil)
	b.seen = nil
	b.wait(10 * time.Second)
	b.expect("A result 1/1 TIMED_OUT timeout still_running") // again
	first := &proto.ResultAck{ExecutionId: 1, Fence: 1, StillRunning: true}
	ack := func() { b.do(func() { b.m.acks(b.now, []*proto.ResultAck{first}) }) }
	ack()
	b.returns("1/1", Return{})
	b.saved(nil)
	b.expect("write done 1/1", "A result 1/1 SUCCEEDED")
	ack()
	b.expect()
	require.Equal(t, 1, b.m.attempts.owed())
	b.wait(10 * time.Second)
	b.expect("A result 1/1 SUCCEEDED") // until it is acknowledged itself
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}

// TestANewProcessReportsTheEndOfAHandler: the process died with a handler that
// was reported as still running. The report is sent again, since nobody knows
// whether it arrived, and then that the handler died.
func TestANewProcessReportsTheEndOfAHandler(t *testing.T) {
	body, err := gproto.Marshal(&proto.Result{ExecutionId: 1, Fence: 1, BootId: "boot0", Outcome: proto.Outcome_OUTCOME_TIMED_OUT, StillRunning: true})
	require.NoError(t, err)
	b, A := newBench(t, 1), &testLink{name: "A"}
	b.m.recover([]journal.Entry{{Execution: 1, Fence: 1, Boot: "boot0", Kind: journal.Done, Result: body}})
	b.up(A)
	b.expect("A result 1/1 TIMED_OUT still_running")
	b.do(func() { b.m.acks(b.now, []*proto.ResultAck{{ExecutionId: 1, Fence: 1, StillRunning: true}}) })
	b.expect("A result 1/1 UNKNOWN process_died")
	require.Equal(t, "boot0", b.results[1].GetBootId())
	b.ack(1, 1)
	b.expect("write settled 1/1")
	b.expectNothingLeft()
}
