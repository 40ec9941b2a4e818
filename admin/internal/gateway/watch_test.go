package gateway

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/proto"
)

// deafConn delivers nothing while its lock is held.
type deafConn struct {
	net.Conn
	deaf sync.Mutex
}

func (c *deafConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.deaf.Lock()
	defer c.deaf.Unlock()
	return n, err
}

// TestWhoDoesNotAnswerGetsNoOffers until it does: its session stands, and
// nobody has told that it ended.
func TestWhoDoesNotAnswerGetsNoOffers(t *testing.T) {
	b := start(t)
	conn, answer := b.dial(hello(goodToken, bootA))
	require.Nil(t, answer.Error)
	deaf := &deafConn{Conn: conn}
	p := b.joinOver(deaf, answer, &proto.Register{InstanceName: "i", Slots: 5, Handlers: []*proto.Handler{{Name: "close-day"}}})
	s := <-b.rec.joined
	require.Equal(t, []*Session{s}, b.gate.Sessions(1, 2, "close-day"))

	deaf.deaf.Lock()
	require.True(t, s.Reserve(7, 1, 1, 0))
	s.SendOffers([]*proto.Offer{{ExecutionId: 7, Fence: 1, Handler: "close-day"}})
	require.Equal(t, s, <-b.rec.doubted)
	require.Empty(t, b.gate.Sessions(1, 2, "close-day"))
	require.Zero(t, b.gate.Reached())
	require.Equal(t, 1, b.gate.Count(), "it is no verdict")
	require.Equal(t, map[int64]int64{7: 1}, s.Offered(), "to be taken back")

	deaf.deaf.Unlock()
	require.Equal(t, room{s, 4}, <-b.rec.freed)
	require.Equal(t, []*Session{s}, b.gate.Sessions(1, 2, "close-day"))
	require.Equal(t, 1, b.gate.Reached())
	require.EqualValues(t, 7, p.nextCommand().GetOffers().GetOffers()[0].ExecutionId)
	require.False(t, s.Closed())
}
