package publish

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
)

// TestARabbitMQThatDoesNotFinishTheHandshake: only a broker that ends the connection has
// refused the password.
func TestARabbitMQThatDoesNotFinishTheHandshake(t *testing.T) {
	started := func(then func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) {
			if _, err := io.ReadFull(conn, make([]byte, 8)); err == nil {
				_, _ = io.WriteString(conn, rabbitStart)
				then(conn)
			}
		}
	}
	beats := func(conn net.Conn) {
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for {
			if _, err := io.WriteString(conn, amqpFrame(8, 0, "")); err != nil {
				return
			}
			<-pace.C
		}
	}
	peers := []hostilePeer{
		{broker: noun.BrokerRabbitMQ, play: started(beats)}, {broker: noun.BrokerRabbitMQ, play: beats}, {broker: noun.BrokerRabbitMQ, play: started(silentPeer)},
		{broker: noun.BrokerRabbitMQ, play: started(func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<16)) })},
	}
	w := besideHostile(t, peers...)
	var work sync.WaitGroup
	errs := make([]error, len(peers))
	for i := range peers {
		work.Go(func() { errs[i] = w.publish(t.Context(), i, noun.BrokerRabbitMQ) })
	}
	work.Wait()
	for i, err := range errs[:3] {
		require.ErrorContains(t, err, "did not finish the handshake within 9s", strconv.Itoa(i))
		require.False(t, IsPermanent(err))
		require.True(t, IsSilent(err))
	}
	require.ErrorContains(t, errs[3], "username or password not allowed", "RabbitMQ closes the connection after a wrong password")
	require.True(t, IsPermanent(errs[3]))
	w.stop()
	require.NoError(t, <-w.ended)
}
