package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// parcels is a stream that holds each frame until it is let through, and keeps
// what they were.
type parcels struct {
	t    *testing.T
	gate chan struct{}
	data []byte
}

func (p *parcels) Write(b []byte) (int, error) {
	<-p.gate
	p.data = append(p.data, b...)
	return len(b), nil
}

func (*parcels) SetWriteDeadline(time.Time) error { return nil }

// said is what was written, a word for each frame.
func (p *parcels) said() (out []string) {
	r := proto.NewReader(bytes.NewReader(p.data), proto.MaxFrame)
	for {
		var m proto.CommandToExecutor
		if err := r.Next(&m); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			p.t.Fatal(err)
		}
		switch body := m.Body.(type) {
		case *proto.CommandToExecutor_Offers:
			word := "offers"
			for _, o := range body.Offers.Offers {
				word += fmt.Sprintf(" %d", o.ExecutionId)
			}
			out = append(out, word)
		case *proto.CommandToExecutor_StepAcks:
			out = append(out, fmt.Sprintf("%d steps", len(body.StepAcks.Acks)))
		case *proto.CommandToExecutor_Cancels:
			out = append(out, fmt.Sprintf("cancel %d", body.Cancels.Cancels[0].ExecutionId))
		case *proto.CommandToExecutor_Grants:
			out = append(out, "grants")
		}
	}
}

// Offers and steps leave in parts behind what is small; a cancel takes its offer
// along, and nothing else changes places.
func TestBulkGoesInPartsBehindWhatIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parcels{t: t, gate: make(chan struct{})}
		var o outbox
		var sent []int
		o.init(p, func(err error) { t.Error(err) }, func() {})
		o.sent = func(part []bulk) { sent = append(sent, len(part)) }
		offer := func(id int64, input int) bulk {
			return bulk{offer: &proto.Offer{ExecutionId: id, Fence: 1, Input: make([]byte, input)}}
		}
		step := bulk{step: &proto.StepAck{Output: make([]byte, 1000)}}
		const large = maxPart/2 + 1000
		require.NoError(t, o.putBulk([]bulk{
			offer(1, 10), offer(2, 10), offer(3, large), offer(4, large), offer(5, 2*maxPart), step, step, offer(6, 10), offer(7, large), offer(8, 10),
		}))
		synctest.Wait() // the first part is being written
		require.NoError(t, o.put(&proto.CommandToExecutor{Body: &proto.CommandToExecutor_Grants{Grants: &proto.GrantBatch{}}}))
		require.NoError(t, o.putCancel(&proto.Cancel{ExecutionId: 7, Fence: 1}))
		require.NoError(t, o.putCancel(&proto.Cancel{ExecutionId: 8, Fence: 2}), "another attempt")
		require.NoError(t, o.putCancel(&proto.Cancel{ExecutionId: 1, Fence: 1}), "it is on its way")
		require.False(t, o.empty())
		close(p.gate)
		synctest.Wait()
		require.True(t, o.empty())
		require.Zero(t, o.size)
		require.Equal(t, []string{
			"offers 1 2 3", "grants", "offers 7", "cancel 7", "cancel 8", "cancel 1", "offers 4", "offers 5", "2 steps", "offers 6 8",
		}, p.said())
		require.Equal(t, []int{1, 3, 1, 1, 2, 2}, sent)
	})
}

// A peer that takes nothing is given up by what waits for it, and an item that
// fits in no frame ends the session and nothing else.
func TestBulkIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &parcels{t: t, gate: make(chan struct{})}
		var o outbox
		failed := make(chan error, 1)
		o.init(p, func(err error) { failed <- err }, func() {})
		step := bulk{step: &proto.StepAck{Output: make([]byte, proto.MaxStep)}}
		put := 0
		for ; o.putBulk([]bulk{step}) == nil; put++ {
			synctest.Wait()
		}
		require.InDelta(t, maxBulk, put*step.size(), 2*maxPart)
		close(p.gate)
		o.stop()

		o = outbox{}
		o.init(p, func(err error) { failed <- err }, func() {})
		require.NoError(t, o.putBulk([]bulk{{offer: &proto.Offer{Input: make([]byte, proto.MaxFrame)}}}))
		require.Error(t, <-failed)
		o.stop()
		require.NoError(t, o.putBulk([]bulk{step}), "nothing after the end")
		require.True(t, o.empty())
	})
}
