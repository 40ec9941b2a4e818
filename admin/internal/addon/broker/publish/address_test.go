package publish

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
)

// silentPeer lets clients in and answers nothing.
func silentPeer(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// resets ends the connection with a reset once the client has written.
func resets(conn net.Conn) {
	_, _ = conn.Read(make([]byte, 1))
	_ = conn.(*net.TCPConn).SetLinger(0)
}

// TestErrorsOfBrokersNameNoAddress: the broker's host is a name, and its errors do not say
// where it leads.
func TestErrorsOfBrokersNameNoAddress(t *testing.T) {
	for _, of := range []noun.Broker{noun.BrokerRedis, noun.BrokerNATS, noun.BrokerKafka, noun.BrokerRabbitMQ} {
		for name, peer := range map[string]stage{
			"silent": func(conn net.Conn, _ func(net.Conn)) { silentPeer(conn) }, "silent later": stages[of],
			"reset": func(conn net.Conn, _ func(net.Conn)) { resets(conn) }, "closed": func(net.Conn, func(net.Conn)) {},
		} {
			t.Run(string(of)+" "+name, func(t *testing.T) {
				t.Parallel()
				w := besideHostile(t, hostilePeer{broker: of, play: func(conn net.Conn) { peer(conn, silentPeer) }})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				row, err := w.p.opt.Connections.FindConnectionByName(ctx, 1, "0")
				require.NoError(t, err)
				for _, err := range []error{w.publish(ctx, 0, of), w.p.Look(ctx, row)} {
					if err != nil {
						require.NotRegexp(t, `\d+\.\d+\.\d+\.\d+|\[?::1`, err.Error())
					}
				}
				w.stop()
				require.NoError(t, <-w.ended)
			})
		}
	}
}

// TestTheLogOfAConnectionNamesTheAddress: the operator sees what users do not.
func TestTheLogOfAConnectionNamesTheAddress(t *testing.T) {
	var r rows
	const address = "127.0.0.1:1234"
	r.put(t, 1, "0", noun.ConnectionSpec{Broker: noun.BrokerRedis, Addresses: []string{"redis.example:6379"}}, nil)
	var log lockedBuffer
	p := publisher(t, &r, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	p.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), Err: syscall.ECONNREFUSED}
	}
	err := p.Publish(t.Context(), noun.Message{Tenant: 1, Connection: "0", ID: "1", Target: noun.MessageTarget{Stream: "s"}})
	require.Error(t, err)
	require.Contains(t, err.Error(), "dial: connection refused")
	require.NotContains(t, err.Error(), address)
	require.Contains(t, log.text(), address)
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
