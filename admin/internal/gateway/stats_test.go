package gateway

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

func TestStats(t *testing.T) {
	b := start(t)
	require.Equal(t, Stats{}, b.gate.Stats())

	_, answer := b.dial(hello("cjt_wrong", bootA))
	require.NotNil(t, answer.Error)
	other, err := net.Dial("tcp", b.addr)
	require.NoError(t, err)
	_, err = other.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	require.NoError(t, err)
	_, _ = other.Read(make([]byte, 1)) // until it is closed
	require.NoError(t, other.Close())

	p := b.join(bootA, 2)
	s := get(t, b.rec.joined)
	require.True(t, s.Reserve(100, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 100, Fence: 1, Handler: "close-day"}})
	p.nextCommand()
	// Connections are counted when they have ended, which is after their answer.
	require.Eventually(t, func() bool { n := b.gate.Stats(); return n.Refused == 1 && n.Dropped == 1 }, 10*time.Second, time.Millisecond)
	now := b.gate.Stats()
	require.Equal(t, 1, now.Sessions)
	require.Equal(t, 2, now.Slots)
	require.Equal(t, 1, now.Used)
	require.EqualValues(t, 1, now.Opened)
	require.Positive(t, now.Control.In, "the registration came")
	require.Positive(t, now.Control.Out, "the offer went")
	require.Zero(t, now.Logs)

	s.close(net.ErrClosed)
	get(t, b.rec.left)
	require.Eventually(t, func() bool { return b.gate.Stats().Ended == 1 }, 10*time.Second, time.Millisecond)
	require.Zero(t, b.gate.Stats().Sessions)
}
