package egress_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/egress"
)

func TestControl(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dial := func(allowed ...string) error {
		var prefixes []netip.Prefix
		for _, text := range allowed {
			prefixes = append(prefixes, netip.MustParsePrefix(text))
		}
		conn, err := (&net.Dialer{Control: egress.Control(prefixes)}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.NoError(t, dial("::1/128", "127.0.0.0/8"))
	for _, allowed := range [][]string{nil, {"10.0.0.0/8"}, {"::1/128"}} {
		err := dial(allowed...)
		require.True(t, egress.Refused(err), "%v: %v", allowed, err)
	}
	listener.Close()
	err = dial("127.0.0.0/8")
	require.Error(t, err)
	require.False(t, egress.Refused(err), "nobody listens: %v", err)
}

// Where machines of clouds get their settings and keys is refused by itself.
func TestMetadataServices(t *testing.T) {
	for _, address := range []string{"169.254.169.254:80", "168.63.129.16:80", "100.100.100.200:80", "[fd00:ec2::254]:80"} {
		require.True(t, egress.Refused(egress.Control(nil)("tcp4", address, nil)), address)
	}
	require.NoError(t, egress.Control([]netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")})("tcp4", "168.63.129.16:80", nil))
	require.NoError(t, egress.Control(nil)("tcp4", "168.63.129.17:80", nil))
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// TestErrorsNameNoAddress: errors hide the addresses of a host, of the node and of its
// resolver. The log has them, once for each change.
func TestErrorsNameNoAddress(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	public := func(err error) string {
		t.Helper()
		var e *egress.Error
		require.ErrorAs(t, err, &e)
		require.NotRegexp(t, `\d+\.\d+|::1`, err.Error())
		require.NotEqual(t, err.Error(), egress.Detailed(err).Error())
		return err.Error()
	}
	refusing, reaching := egress.NewDialer(time.Second, nil, logger), egress.NewDialer(time.Second, loopback, logger)
	for range 3 {
		_, err = refusing.DialContext(t.Context(), "tcp", "localhost:"+port)
		require.True(t, egress.Refused(err))
		require.Equal(t, "the host leads to a network that may not be reached", public(err))
		require.Contains(t, egress.Detailed(err).Error(), port)
		_, err = reaching.DialContext(t.Context(), "tcp", gone.Addr().String())
		require.Contains(t, public(err), "connection refused")
	}
	require.Equal(t, 2, strings.Count(log.String(), "host cannot be reached"), log.String())
	require.Regexp(t, `127\.0\.0\.1|::1`, log.String())

	_, err = reaching.DialContext(t.Context(), "tcp", "no-such-host.invalid:80")
	require.Contains(t, public(err), "name")

	// Nor does a connection that was there.
	c, err := reaching.DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	peer, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, c.SetReadDeadline(time.Now().Add(-time.Second)))
	_, err = c.Read(make([]byte, 1))
	require.Contains(t, public(err), "i/o timeout")
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	var timed net.Error
	require.True(t, errors.As(err, &timed) && timed.Timeout())
	require.NoError(t, c.SetReadDeadline(time.Time{}))
	require.NoError(t, peer.Close())
	_, err = c.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err, "the end of a connection stays what it is")
	require.NoError(t, c.Close())
	_, err = c.Write([]byte("x"))
	for _, err := range []error{err, c.Close(), c.SetDeadline(time.Now()), c.SetReadDeadline(time.Now()), c.SetWriteDeadline(time.Now())} {
		require.ErrorIs(t, err, net.ErrClosed)
		public(err)
	}

	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = reaching.DialContext(over, "tcp", listener.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
	public(err)
	plain := errors.New("of somebody else")
	require.Equal(t, plain, egress.Detailed(plain))
}

// TestPublic: an error for users keeps its cause and loses its addresses, also where a
// library has made a text of it.
func TestPublic(t *testing.T) {
	here, there := &net.TCPAddr{IP: net.ParseIP("127.0.0.1"), Port: 34734}, &net.TCPAddr{IP: net.ParseIP("fd00::7"), Port: 6379}
	read := &net.OpError{Op: "read", Net: "tcp", Source: here, Addr: there, Err: os.ErrDeadlineExceeded}
	name := &net.DNSError{Err: "server misbehaving", Name: "db.example", Server: "10.0.0.2:53"}
	for _, r := range []struct {
		err  error
		text string
	}{
		{read, "read: i/o timeout"},
		{fmt.Errorf("broker: %w", read), "broker: read: i/o timeout"},
		{fmt.Errorf("broker: %s", read.Error()), "broker: read: i/o timeout"},
		{errors.Join(read, fmt.Errorf("then: %w", read)), "read: i/o timeout\nthen: read: i/o timeout"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: here, Err: syscall.ECONNREFUSED}, "dial: connection refused"},
		{&net.OpError{Op: "write", Net: "tcp4", Source: here, Addr: there, Err: syscall.EPIPE}, "write: broken pipe"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: name}, "dial tcp: lookup db.example: server misbehaving"},
		{name, "lookup db.example: server misbehaving"},
		{&net.DNSError{Err: "read udp 10.0.0.1:4444->10.0.0.2:53: i/o timeout", Name: "db.example", Server: "[fd00::2]:53"}, "lookup db.example: read: i/o timeout"},
	} {
		got := egress.Public(r.err)
		require.Equal(t, r.text, got.Error())
		require.ErrorIs(t, got, r.err)
		if _, timed := errors.AsType[*net.OpError](r.err); timed {
			require.Contains(t, egress.Detailed(got).Error(), r.err.Error())
		}
	}
	for _, plain := range []error{nil, io.EOF, errors.New("the server at redis.example:6379 says: read only"), fmt.Errorf("read: %w", io.ErrUnexpectedEOF)} {
		require.Equal(t, plain, egress.Public(plain))
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "localhost.example.com": false,
	} {
		require.Equal(t, want, egress.Loopback(host), host)
	}
}
