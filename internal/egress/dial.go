package egress

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// Error is why an address was not reached. Its text is for the user who named the
// host. It names neither the addresses that the host leads to, nor this node's
// addresses, nor its resolver. The cause has them all.
type Error struct {
	text  string
	cause error
}

func (e *Error) Error() string { return e.text }
func (e *Error) Unwrap() error { return e.cause }

// Timeout implements net.Error.
func (e *Error) Timeout() bool {
	var t net.Error
	return errors.As(e.cause, &t) && t.Timeout()
}

// Temporary implements net.Error. Package crypto/tls asks for it.
func (e *Error) Temporary() bool {
	var t interface{ Temporary() bool }
	return errors.As(e.cause, &t) && t.Temporary()
}

// Detailed is an error with what its text hides, for the operator.
func Detailed(err error) error {
	if hidden, ok := errors.AsType[*Error](err); ok {
		return &Error{text: err.Error() + " (" + hidden.cause.Error() + ")", cause: err}
	}
	return err
}

// Public returns an error whose text a user may read. It is called where an error of
// outbound I/O leaves for a user. Addresses of sockets and of resolvers are taken out of
// the text, however libraries have wrapped or repeated the error. The cause has them.
func Public(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	short := inLookup.ReplaceAllString(inSocket.ReplaceAllString(text, "$1: "), "lookup $1: ")
	if short == text {
		return err
	}
	return &Error{text: short, cause: err}
}

// Texts of net.OpError and net.DNSError.
var (
	inSocket = regexp.MustCompile(`\b([a-z]+) (?:tcp|udp)[46]? (?:\S+->)?\S+:\d+: `)
	inLookup = regexp.MustCompile(`\blookup (\S+) on \S+:\d+: `)
)

// hide gives errors of package net a text without addresses. Other errors stay as
// they are, above all io.EOF.
func hide(err error) error {
	resolving, ofResolver := errors.AsType[*net.DNSError](err)
	op, ofSocket := errors.AsType[*net.OpError](err)
	number, ofSystem := errors.AsType[syscall.Errno](err)
	var text string
	switch {
	case Refused(err):
		text = "the host leads to a network that may not be reached"
	case ofResolver && resolving.IsNotFound:
		text = "there is no host of this name"
	case ofResolver:
		text = "the host's name could not be resolved"
	case !ofSocket:
		return err
	case op.Timeout():
		text = op.Op + ": i/o timeout"
	case ofSystem:
		text = op.Op + ": " + number.Error()
	case errors.Is(err, net.ErrClosed):
		text = op.Op + ": " + net.ErrClosed.Error()
	case errors.Is(err, context.Canceled):
		text = op.Op + ": the operation was cancelled"
	default:
		text = op.Op + ": the connection failed"
	}
	return &Error{text: text, cause: err}
}

// maxToldHosts bounds the hosts whose last logged error a Dialer keeps.
const maxToldHosts = 1024

// Dialer connects to hosts that users name. Its errors, and those of its
// connections, are of type Error. It logs what they hide when that changes for a
// host. It is safe for concurrent use.
type Dialer struct {
	// fixed after construction
	dialer net.Dialer
	log    *slog.Logger

	mu   sync.Mutex
	told map[string]string // guarded by mu: the last error of each host; at most maxToldHosts
}

// NewDialer returns a Dialer that reaches no special networks but the allowed ones.
func NewDialer(timeout time.Duration, allowed []netip.Prefix, log *slog.Logger) *Dialer {
	d := NewOperatorDialer(timeout, log)
	d.dialer.Control = Control(allowed)
	return d
}

// NewOperatorDialer returns a Dialer for hosts that the operator named, which may be
// anywhere. Users read its errors all the same.
func NewOperatorDialer(timeout time.Duration, log *slog.Logger) *Dialer {
	return &Dialer{dialer: net.Dialer{Timeout: timeout}, log: log, told: map[string]string{}}
}

// DialContext connects as net.Dialer does.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := d.dialer.DialContext(ctx, network, address)
	d.tell(ctx, address, err)
	if err != nil {
		return nil, hide(err)
	}
	return conn{c}, nil
}

// tell logs an error that is another one than the last of the same host.
func (d *Dialer) tell(ctx context.Context, address string, err error) {
	text := ""
	if err != nil {
		if ctx.Err() != nil {
			return // the caller does not wait any more
		}
		text = hide(err).Error() // without ports, which differ each time
	}
	d.mu.Lock()
	news := d.told[address] != text
	switch {
	case text == "":
		delete(d.told, address)
	case news:
		if len(d.told) >= maxToldHosts {
			clear(d.told)
		}
		d.told[address] = text
	}
	d.mu.Unlock()
	if news && err != nil {
		d.log.Warn("host cannot be reached", "address", address, "err", err)
	}
}

// conn hides addresses in the errors of a connection.
type conn struct{ net.Conn }

func (c conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, hide(err)
}

func (c conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, hide(err)
}

func (c conn) Close() error                       { return hideAny(c.Conn.Close()) }
func (c conn) SetDeadline(t time.Time) error      { return hideAny(c.Conn.SetDeadline(t)) }
func (c conn) SetReadDeadline(t time.Time) error  { return hideAny(c.Conn.SetReadDeadline(t)) }
func (c conn) SetWriteDeadline(t time.Time) error { return hideAny(c.Conn.SetWriteDeadline(t)) }

func hideAny(err error) error {
	if err == nil {
		return nil
	}
	return hide(err)
}
