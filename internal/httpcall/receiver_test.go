package httpcall

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestWhereACallMayNotGo(t *testing.T) {
	server, asked := newServer(t, func(http.ResponseWriter, *http.Request) {})
	at, err := url.Parse(server.URL)
	require.NoError(t, err)
	// No network beyond the public ones is allowed here.
	guarded := testCaller(t, nil, "*")
	for _, address := range []string{
		server.URL, "http://localhost:" + at.Port(), "http://[::ffff:127.0.0.1]:" + at.Port(), "http://[::1]:" + at.Port(),
		"http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://0.0.0.0:" + at.Port(),
	} {
		_, err := guarded.try(t, Request{URL: address, Timeout: 5 * time.Second})
		require.EqualError(t, err, "the host leads to a network that may not be reached (networks)", address)
	}
	named := newTestCaller(t, "api.example.com", "*.example.org:8443")
	for address, want := range map[string]string{
		server.URL:                                    "this test may not call",
		"http://example.org:8443/":                    "this test may not call",
		"http://evilexample.org:8443/":                "this test may not call",
		"http://a.example.org/":                       "this test may not call",
		"ftp://api.example.com/":                      "must begin with http",
		"http://u:p@api.example.com/":                 "user name",
		"http:///x":                                   "names no host",
		"http://{{input.host}}/":                      "written out",
		"http://api.example.com{{input.x}}/":          "written out",
		"http://api.example.com/{{input.up}}/secrets": "would change the path",
	} {
		_, err := named.try(t, Request{URL: address, Input: json.RawMessage(`{"host":"evil","x":"@evil","up":".."}`)})
		require.ErrorContains(t, err, want, address)
	}
	require.Empty(t, asked())
	for pattern, hosts := range map[string][]string{
		"api.example.com": {"http://API.example.com./", "https://api.example.com:99/"}, "*.example.org:8443": {"https://a.b.example.org:8443"}, "api.example.com:443": {"https://api.example.com"},
	} {
		p, err := ParseHost(pattern)
		require.NoError(t, err)
		for _, host := range hosts {
			u, err := url.Parse(host)
			require.NoError(t, err)
			require.True(t, p.matches(u), "%s %s", pattern, host)
		}
	}
	for _, text := range []string{"", "http://x", "a*b", "*b.com", "a@b"} {
		_, err := ParseHost(text)
		require.Error(t, err, text)
	}
}

// With HTTP/2 a receiver may send before it is read.
func TestAReceiverSendsNoMoreThanMaxUnread(t *testing.T) {
	wrote := make(chan error, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, err := w.Write(make([]byte, 8*maxUnread))
		wrote <- err
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := NewClient(NewTransport(loopback, roots, slog.New(slog.DiscardHandler)))
	t.Cleanup(c.CloseIdleConnections)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	answer, err := c.Do(request)
	require.NoError(t, err)
	require.Equal(t, 2, answer.ProtoMajor)
	_, err = io.CopyN(io.Discard, answer.Body, maxUnread)
	require.NoError(t, err)
	require.Empty(t, wrote)
	require.NoError(t, answer.Body.Close())
	require.Error(t, <-wrote)
}

// A receiver that never ends costs no memory.
func TestAHostileReceiver(t *testing.T) {
	at := testenv.Peer(t, func(conn net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
			testenv.Speak(conn, strings.Repeat("{", 1000), testenv.Endless)
		}
	})
	c := newTestCaller(t, "127.0.0.1")
	require.Less(t, testenv.Allocated(func() {
		out, err := c.Call(t.Context(), Request{URL: "http://" + at.String(), MaxResponse: maxAnswer}, executor.Task{ExecutionID: 1}, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.True(t, out.Truncated)
	}), uint64(testenv.MostForAPeer))
}

// TestErrorsNameNoAddress: the author of the address reads the error of the run.
func TestErrorsNameNoAddress(t *testing.T) {
	flat := errors.New("library: " + (&net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP("10.1.2.3"), Port: 9}, Err: os.ErrDeadlineExceeded}).Error())
	blamed := (&Caller{}).transportError(t.Context(), t.Context(), &url.Error{Op: "Get", URL: "https://x.example/t0ken", Err: flat})
	require.Equal(t, "library: read: i/o timeout", blamed.Error())
	require.True(t, NoAnswer(blamed))
	for name, play := range map[string]func(net.Conn){
		"closed": func(net.Conn) {},
		"reset": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		},
		"reset in the answer": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx")
			_ = c.(*net.TCPConn).SetLinger(0)
		},
		"another protocol": func(c net.Conn) { _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n") },
	} {
		t.Run(name, func(t *testing.T) {
			peer := testenv.Peer(t, play)
			_, err := testCaller(t, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "*").Call(t.Context(), Request{Method: "GET", URL: fmt.Sprintf("http://localhost:%d/", peer.Port)}, executor.Task{}, slog.New(slog.DiscardHandler))
			require.Error(t, err)
			require.NotRegexp(t, `127\.0\.0\.1|::1`, err.Error())
		})
	}
}
