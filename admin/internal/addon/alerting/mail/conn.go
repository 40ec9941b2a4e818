package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// maxAnswers is how much a server may say in one exchange.
const maxAnswers = 64 << 10

var (
	errWantsTLS = errors.New("the server waits for TLS from the first byte: set --mail-tls tls")
	errPlain    = errors.New("the server does not speak TLS from the first byte: set --mail-tls starttls, and the port for it, mostly 587")
)

var errTalkative = errors.New("the mail server said more than 64 KiB")

// dial connects such that the exchange ends with ctx: the mail library sets
// its own deadlines before each command, which would add up.
func (s *Sender) dial(ctx, exchange context.Context, network, address string) (*boundedConn, error) {
	conn, err := s.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	b := &boundedConn{Conn: conn, left: maxAnswers}
	b.end, _ = exchange.Deadline()
	b.stop = context.AfterFunc(exchange, func() { conn.Close() })
	return b, b.SetDeadline(b.end)
}

// silence is how long a server may say nothing before we look whether it waits for TLS.
// A server may greet later than that; then it is waited for.
const silence = time.Second

// greetedConn is a connection on which the server speaks first. A server that expects TLS
// from the first byte says nothing, and both would wait until the exchange ends.
// Read and the deadlines are called by one goroutine.
type greetedConn struct {
	*boundedConn
	wantsTLS func() bool
	greeted  bool
	end      time.Time // as the mail library has set it
}

func (c *greetedConn) SetDeadline(t time.Time) error {
	c.end = t
	return c.boundedConn.SetDeadline(t)
}

func (c *greetedConn) SetReadDeadline(t time.Time) error {
	c.end = t
	return c.boundedConn.SetReadDeadline(t)
}

func (c *greetedConn) Read(p []byte) (int, error) {
	if c.greeted {
		return c.boundedConn.Read(p)
	}
	c.greeted = true
	if err := c.boundedConn.SetReadDeadline(time.Now().Add(silence)); err != nil {
		return 0, err
	}
	n, err := c.boundedConn.Read(p)
	if err2 := c.boundedConn.SetReadDeadline(c.end); err2 != nil {
		return n, errors.Join(err, err2)
	}
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || isPast(c.boundedConn.end) {
		return n, err
	}
	if c.wantsTLS() {
		return 0, errors.Join(errWantsTLS, c.boundedConn.Close())
	}
	return c.boundedConn.Read(p)
}

func isPast(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

// handshakes reports whether a server takes TLS from the first byte.
func handshakes(ctx context.Context, network, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*silence)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // nothing is sent: only whether it answers counts
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return false
	}
	conn.Close()
	return true
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
