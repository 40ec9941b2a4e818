package session

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/direct"
)

// tcpTimeout is how long sent bytes may stay unacknowledged by the peer's
// kernel, and how long an idle path may be dead, before TCP gives up.
const tcpTimeout = 15 * time.Second

// guardedConn gives every write a deadline. yamux has none below its queue: a
// peer that stops reading would hold its sending goroutine for ever.
type guardedConn struct{ net.Conn }

func (c guardedConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(proto.WriteTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: tcpTimeout, Interval: 5 * time.Second, Count: 3},
		Control:         setUserTimeout,
	}
	return dialer.DialContext(ctx, "tcp", address)
}

// dial connects to address by open, with TLS if secure is set.
func dial(ctx context.Context, open func(ctx context.Context, address string) (net.Conn, error), address string, secure *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, proto.HelloTimeout)
	defer cancel()
	conn, err := open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	conn = direct.Conn(conn)
	if secure == nil {
		return guardedConn{conn}, nil
	}
	secure = secure.Clone()
	if secure.ServerName == "" {
		secure.ServerName, _, _ = net.SplitHostPort(address)
	}
	encrypted := tls.Client(conn, secure)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("TLS handshake: %w", err)
	}
	return guardedConn{encrypted}, nil
}

// closeOn closes conn when ctx ends, which interrupts what waits on it. Call
// the returned function when the wait is over.
func closeOn(ctx context.Context, conn net.Conn) func() bool {
	return context.AfterFunc(ctx, func() { _ = conn.Close() })
}
