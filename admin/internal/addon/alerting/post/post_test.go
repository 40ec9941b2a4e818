package post

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/addon/alerting/notify"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// net/http reads the environment once per process, so the transport is asked
// directly: the guard would see the proxy's address instead of the receiver's.
func TestNoProxy(t *testing.T) {
	require.Nil(t, New(Options{}).transport.Proxy)
}

func TestDo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.Header.Get("User-Agent"))
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	c := New(Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, UserAgent: "12"})
	a, err := c.Do(t.Context(), server.URL, http.Header{}, []byte("x"))
	require.NoError(t, err)
	require.Equal(t, 12*time.Second, a.RetryAfter())
	for header, want := range map[string]time.Duration{"65536": 65535 * time.Second, "99999999999999999999": 65535 * time.Second, "-1": 0, "soon": 0} {
		require.Equal(t, want, Answer{Header: http.Header{"Retry-After": {header}}}.RetryAfter(), header)
	}
	var e *notify.SendError
	require.ErrorAs(t, a.Verdict(), &e)
	require.Equal(t, []any{false, 12 * time.Second}, []any{e.Permanent, e.RetryAfter})
	_, err = New(Options{}).Do(t.Context(), server.URL+"/t0ken", http.Header{}, nil)
	require.ErrorContains(t, err, "webhook-allow")
	require.NotContains(t, err.Error(), "t0ken")
}

func TestLane(t *testing.T) {
	of := func(tenant domain.TenantID, address string) string {
		return Lane(&notify.Notice{Event: domain.AlertEvent{TenantID: tenant}}, address)
	}
	require.Equal(t, of(1, "https://A.example/x"), of(1, "https://a.example/y"))
	require.NotEqual(t, of(1, "https://a.example/"), of(2, "https://a.example/"))
	require.Equal(t, "1 ?", of(1, "https://a b/"))
}

func TestClean(t *testing.T) {
	require.Equal(t, "a b", Clean("a\r\n\x1b\x00b"))
	require.Len(t, Clean(strings.Repeat("x", 1000)), 200)
}

// Receivers that never end cost no memory.
func TestHostileReceivers(t *testing.T) {
	x := strings.Repeat("x", 1000)
	for _, row := range []struct{ name, first, talk, cause string }{
		{"an endless status", "HTTP/1.1 200 ", x, "exceeded"},
		{"an endless header", "HTTP/1.1 200 OK\r\nX: ", x, "exceeded"},
		{"endless headers", "HTTP/1.1 200 OK\r\n", "X: " + x + "\r\n", "exceeded"},
		{"endless early hints", "", "HTTP/1.1 103 Early Hints\r\nX: " + x + "\r\n\r\n", "exceeded"},
		{"an endless body", "HTTP/1.1 200 OK\r\n\r\n", x, ""},
		{"endless chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "3e8\r\n" + x + "\r\n", ""},
		{"an endless chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", x, ""},
		{"an endless trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", x, ""},
		{"another protocol", "", "-ERR\r\n", "malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			at := testenv.Peer(t, func(conn net.Conn) {
				if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					_, _ = conn.Write([]byte(row.first))
					testenv.Speak(conn, row.talk, testenv.Endless)
				}
			})
			c := New(Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
			var err error
			require.Less(t, testenv.Allocated(func() {
				_, err = c.Do(t.Context(), "http://"+at.String(), http.Header{}, []byte("x"))
			}), uint64(testenv.MostForAPeer))
			if row.cause == "" {
				require.NoError(t, err, "a part of the answer is enough")
				return
			}
			require.ErrorContains(t, err, row.cause)
		})
	}
}

// TestErrorsNameNoAddress: the author of the address reads the text, as the answer of a
// trial and in the list of deliveries.
func TestErrorsNameNoAddress(t *testing.T) {
	for name, play := range map[string]func(net.Conn){
		"closed": func(net.Conn) {},
		"reset": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		},
		"another protocol": func(c net.Conn) { _, _ = c.Write([]byte("220 mail.example ESMTP\r\n")) },
		"silent":           func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
	} {
		t.Run(name, func(t *testing.T) {
			peer := testenv.Peer(t, play)
			c := New(Options{AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler)})
			for _, scheme := range []string{"http", "https"} {
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
				_, err := c.Do(ctx, fmt.Sprintf("%s://localhost:%d/", scheme, peer.Port), http.Header{}, []byte("x"))
				cancel()
				require.Error(t, err)
				require.NotRegexp(t, `127\.0\.0\.1|::1`, err.Error())
				ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
				err = c.Reach(ctx, fmt.Sprintf("%s://localhost:%d/", scheme, peer.Port))
				cancel()
				if err != nil {
					require.NotRegexp(t, `127\.0\.0\.1|::1`, err.Error())
				}
			}
		})
	}
	flat := errors.New("library: " + (&net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP("10.1.2.3"), Port: 9}, Err: os.ErrDeadlineExceeded}).Error())
	require.Equal(t, "library: read: i/o timeout", transportError(flat).Error())
}
