package gateway

import (
	"encoding/binary"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/proto"
)

// begin sends the first bytes of the largest frame, and nothing more.
func begin(t *testing.T, stream net.Conn) {
	t.Helper()
	begun := make([]byte, proto.HeaderSize+1000)
	binary.BigEndian.PutUint32(begun, proto.MaxFrame)
	_, err := stream.Write(begun)
	require.NoError(t, err)
}

func resultOf(id int64, size int) *proto.CommandToAdmin {
	return commandFrame(&proto.ResultBatch{Results: []*proto.Result{{ExecutionId: id, Fence: 1, Output: make([]byte, size)}}})
}

// Frames that are announced and do not come take what their tenant may have of
// the node's memory, and no more: its large frames wait, its small ones and
// those of others do not.
func TestLargeFramesOfATenantHaveABound(t *testing.T) {
	b := start(t)
	var slow []*peerEnd
	for i := range maxTenantFrames / proto.MaxFrame {
		p := b.join(fmt.Sprintf("%032x", i+1), 4)
		if i%2 == 0 {
			begin(t, p.command)
		} else {
			begin(t, p.control)
		}
		slow = append(slow, p)
	}
	account := b.gate.registry.byInstanceName(t, slow[0]).account
	waitFor(t, "all of it is taken", func() bool {
		free := account.frames.TryAcquire(1)
		if free {
			account.frames.Release(1)
		}
		return !free
	})
	waits, other := b.join(bootA, 4), b.join(bootB, 4)
	b.gate.registry.byInstanceName(t, other).account = newAccount() // the fake knows one tenant, so it is moved
	waits.send(waits.command, resultOf(1, 2*smallFrame))
	waits.send(waits.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, waits.nextControl().GetHeartbeatAck().GetSeq(), "heartbeats go on")
	other.send(other.command, resultOf(2, 2*smallFrame))
	require.EqualValues(t, 2, get(t, b.rec.results).ExecutionId, "of another tenant")
	small := b.join(bootA[1:]+"a", 4)
	small.send(small.command, resultOf(3, 100))
	require.EqualValues(t, 3, get(t, b.rec.results).ExecutionId, "a small one")
	require.Empty(t, b.rec.results)
	require.NoError(t, slow[0].mux.Close())
	require.EqualValues(t, 1, get(t, b.rec.results).ExecutionId, "there is room again")
}

// A registration is charged as well, and waits no longer than its executor does.
func TestRegistrationsAreCharged(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 4)
	account := b.gate.registry.byInstanceName(t, p).account
	require.True(t, account.frames.TryAcquire(maxTenantFrames))
	conn, answer := b.dial(hello(goodToken, bootB))
	require.Nil(t, answer.Error)
	large := &proto.Register{InstanceName: "large", Slots: 1, Handlers: []*proto.Handler{{Name: "h", Description: string(make([]byte, 2*smallControl))}}}
	in := b.registerOver(conn, answer, large)
	b.join(bootA[1:]+"a", 4) // a small one has nothing to wait for
	b.fleet.mu.Lock()
	require.Len(t, b.fleet.together, 2)
	b.fleet.mu.Unlock()
	account.frames.Release(maxTenantFrames)
	require.NotNil(t, in.nextControl().GetRegistered())
	waitFor(t, "it was given back", func() bool { return account.frames.TryAcquire(maxTenantFrames) })
}

// However small its frames of commands are, a tenant's sessions have one pace
// together. Heartbeats and other tenants do not wait for it.
func TestFramesOfATenantHaveAPace(t *testing.T) {
	b := start(t)
	first, second, other := b.join(bootA, 4), b.join(bootA[1:]+"a", 4), b.join(bootB, 4)
	account := b.gate.registry.byInstanceName(t, first).account
	account.pace = rate.NewLimiter(1e-9, 2*(commandCost+100)) // none comes back
	b.gate.registry.byInstanceName(t, other).account = newAccount()
	first.send(first.command, resultOf(1, 10))
	require.EqualValues(t, 1, get(t, b.rec.results).ExecutionId)
	second.send(second.command, resultOf(2, 10))
	require.EqualValues(t, 2, get(t, b.rec.results).ExecutionId)
	first.send(first.command, resultOf(3, 10))
	first.send(first.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.EqualValues(t, 1, first.nextControl().GetHeartbeatAck().GetSeq())
	other.send(other.command, resultOf(4, 10))
	require.EqualValues(t, 4, get(t, b.rec.results).ExecutionId, "the third one of the tenant waits")
	require.Empty(t, b.rec.results)
}
