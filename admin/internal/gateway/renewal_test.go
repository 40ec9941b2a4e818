package gateway

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// A heartbeat that could not be written is tried again; its instance hears of
// it when that has failed, too, or when it sent a newer one.
func TestHeartbeatsAreTriedAgain(t *testing.T) {
	r := newRenewals()
	a, b := &Session{Instance: 1}, &Session{Instance: 2}
	r.add(a, &proto.Heartbeat{Seq: 1})
	r.add(b, &proto.Heartbeat{Seq: 7})
	now := time.Now()
	batch := r.take()
	r.add(b, &proto.Heartbeat{Seq: 8})
	over := r.again(batch, now)
	require.NotContains(t, over, a.Instance)
	require.EqualValues(t, 7, over[b.Instance].beat.GetSeq(), "a newer one has come")
	batch = r.take()
	require.EqualValues(t, 1, batch[a.Instance].beat.GetSeq())
	require.EqualValues(t, 8, batch[b.Instance].beat.GetSeq())
	require.Len(t, r.again(batch, now.Add(2*renewPatience)), 2)
	require.Empty(t, r.take())
}

// An outage of the database that is over by the next try costs no instance its lease.
func TestAShortOutageIsNotHeardOf(t *testing.T) {
	b := start(t)
	p := b.join(bootA, 2)
	get(t, b.rec.joined)
	b.fleet.failures.Store(1)
	p.send(p.control, &proto.ControlToAdmin{Body: &proto.ControlToAdmin_Heartbeat{Heartbeat: &proto.Heartbeat{Seq: 1}}})
	require.True(t, p.nextControl().GetHeartbeatAck().LeaseRenewed)
	require.Negative(t, b.fleet.failures.Load(), "it was tried in vain before")
}
