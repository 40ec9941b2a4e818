package mail

import (
	"context"
	"errors"
	"net"
	"time"
)

// maxAnswers is how much a server may say in one exchange.
const maxAnswers = 64 << 10

var errTalkative = errors.New("the mail server said more than 64 KiB")

// dial connects such that the exchange ends with ctx: the mail library sets
// its own deadlines before each command, which would add up.
func (s *Sender) dial(ctx, exchange context.Context, network, address string) (net.Conn, error) {
	conn, err := s.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	b := &boundedConn{Conn: conn, left: maxAnswers}
	b.end, _ = exchange.Deadline()
	b.stop = context.AfterFunc(exchange, func() { conn.Close() })
	return b, b.SetDeadline(b.end)
}

// boundedConn ends at a fixed time and after a fixed number of bytes read.
// Read is called by one goroutine.
type boundedConn struct {
	net.Conn
	end  time.Time   // no deadline goes beyond; zero = none
	stop func() bool // ends the watch over the exchange's context
	left int         // bytes that may still be read
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTalkative
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

func (c *boundedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (c *boundedConn) earlier(t time.Time) time.Time {
	if c.end.IsZero() || !t.IsZero() && t.Before(c.end) {
		return t
	}
	return c.end
}

func (c *boundedConn) SetDeadline(t time.Time) error     { return c.Conn.SetDeadline(c.earlier(t)) }
func (c *boundedConn) SetReadDeadline(t time.Time) error { return c.Conn.SetReadDeadline(c.earlier(t)) }
func (c *boundedConn) SetWriteDeadline(t time.Time) error {
	return c.Conn.SetWriteDeadline(c.earlier(t))
}
