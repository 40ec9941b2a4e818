package httpconn

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a server behind an limiter, on a real socket.
type world struct {
	t      *testing.T
	in     *Limiter
	server *httptest.Server
	from   atomic.Pointer[net.TCPAddr] // the address of connections; nil: their own
	hold   chan struct{}               // closed when requests to /hold are answered
	held   chan struct{}               // one for each of them
	wrote  chan error                  // how the writing of /large ended
}

const large = 32 << 20

func newWorld(t *testing.T, o Options) *world {
	w := &world{t: t, in: New(o), hold: make(chan struct{}), held: make(chan struct{}, 1000), wrote: make(chan error, 10)}
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hold":
			w.held <- struct{}{}
			select {
			case <-w.hold:
			case <-r.Context().Done():
			}
		case "/large":
			_, err := rw.Write(make([]byte, large))
			w.wrote <- err
		case "/nothing":
			rw.WriteHeader(http.StatusNoContent)
		}
	}))
	w.server.Listener = w.in.Listen(&sayingListener{w.server.Listener, w})
	w.in.Serve(w.server.Config, map[string]bool{"/healthz": true}, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.server.Start()
	t.Cleanup(func() {
		w.server.CloseClientConnections()
		w.server.Close()
	})
	return w
}

// sayingListener lets connections say that they come from elsewhere.
type sayingListener struct {
	net.Listener
	w *world
}

type sayingConn struct {
	net.Conn
	from *net.TCPAddr
}

func (c *sayingConn) RemoteAddr() net.Addr { return c.from }

func (l *sayingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if from := l.w.from.Load(); err == nil && from != nil {
		return &sayingConn{c, from}, nil
	}
	return c, err
}

// client is one connection.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (w *world) dial() *client {
	w.t.Helper()
	c, err := net.Dial("tcp", w.server.Listener.Addr().String())
	require.NoError(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	return &client{w.t, c, bufio.NewReader(c)}
}

func (c *client) send(path string) {
	c.t.Helper()
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	require.NoError(c.t, err)
}

// ask returns the status of an answer; 0: the connection was closed.
func (c *client) ask(path string) int {
	c.t.Helper()
	c.send(path)
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(c.t, err)
	return res.StatusCode
}

// ended waits until the server closes the connection.
func (c *client) ended() {
	c.t.Helper()
	_, err := c.r.ReadByte()
	require.Error(c.t, err)
}

// open waits until so many connections are known.
func (w *world) open(n int) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.in.Counts().Open == n }, time.Minute, time.Millisecond)
}

// TestSilentConnectionsLeaveFirst: they cost nobody else an answer.
func TestSilentConnectionsLeaveFirst(t *testing.T) {
	const most = 20
	w := newWorld(t, Options{Max: most})
	silent := make([]*client, most)
	for i := range silent {
		silent[i] = w.dial()
		w.open(i + 1)
	}
	for i := range 5 {
		require.Equal(t, http.StatusOK, w.dial().ask("/"))
		silent[i].ended() // the oldest of them
	}
	require.Equal(t, http.StatusOK, silent[most-1].ask("/"))
	require.Equal(t, Counts{Open: most, Evicted: 5}, w.in.Counts())
}

// TestProbesAreAnsweredWhenAllWork: whoever works is not broken off, and what
// comes then hears that there is no room, but for probes.
func TestProbesAreAnsweredWhenAllWork(t *testing.T) {
	const most = 20
	w := newWorld(t, Options{Max: most})
	var busy sync.WaitGroup
	for range most {
		c := w.dial()
		c.send("/hold")
		busy.Go(func() {
			res, err := http.ReadResponse(c.r, nil)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Error("a request that worked was broken off", err)
			}
		})
		<-w.held
	}
	for range 2 * Reserve { // far more than are kept at a time
		w.dial()
	}
	require.Equal(t, http.StatusServiceUnavailable, w.dial().ask("/"))
	c := w.dial()
	require.Equal(t, http.StatusOK, c.ask("/healthz"))
	c.ended()
	close(w.hold)
	busy.Wait()
	require.Equal(t, http.StatusOK, w.dial().ask("/"), "there is room again")
}

// TestAnAddressHasItsShare: others have the rest, and loopback and proxies have no
// share of their own.
func TestAnAddressHasItsShare(t *testing.T) {
	w := newWorld(t, Options{Max: 20, PerAddress: 5, Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	w.from.Store(&net.TCPAddr{IP: net.ParseIP("2001:db8::1")})
	for range 5 {
		w.dial().send("/hold")
		<-w.held
	}
	w.from.Store(&net.TCPAddr{IP: net.ParseIP("2001:db8::2")}) // of the same network
	w.dial().ended()
	w.from.Store(&net.TCPAddr{IP: net.ParseIP("2001:db8:0:1::1")})
	require.Equal(t, http.StatusOK, w.dial().ask("/"))
	require.Eventually(t, w.in.someWait, time.Minute, time.Millisecond, "the server notes it after the answer")
	w.from.Store(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}) // a proxy
	for range 7 {
		w.dial().send("/hold")
		<-w.held
	}
	w.from.Store(nil)
	for range 7 {
		w.dial().send("/hold")
		<-w.held
	}
	c := w.dial()
	require.Equal(t, http.StatusOK, c.ask("/"), "in the place of the one that waits")
	require.Equal(t, Counts{Open: 20, Evicted: 1, Refused: 1}, w.in.Counts())
	close(w.hold)
}

// someWait reports whether a connection waits for its next request.
func (in *Limiter) someWait() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, g := range in.addresses {
		if g.waiting.Len() > 0 {
			return true
		}
	}
	return false
}

// TestTheCrowdIsWhoseTheMostWait: a flood of silent connections of one address
// takes each other's places, and not the one that another keeps open.
func TestTheCrowdIsWhoseTheMostWait(t *testing.T) {
	w := newWorld(t, Options{Max: 10, PerAddress: 100})
	w.from.Store(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)})
	kept := w.dial()
	require.Equal(t, http.StatusOK, kept.ask("/"))
	w.from.Store(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 2)})
	for range 100 {
		w.dial()
	}
	require.Eventually(t, func() bool { return w.in.Counts().Evicted == 91 }, time.Minute, time.Millisecond)
	require.Equal(t, http.StatusOK, kept.ask("/"))
}

// TestSlowReaders: whoever takes nothing is cut off; whoever is slow all along
// gets the whole answer, however long it takes; and a deadline is of one answer.
func TestSlowReaders(t *testing.T) {
	w := newWorld(t, Options{WriteTime: time.Second})
	stuck := w.dial()
	stuck.send("/large")
	require.Error(t, <-w.wrote)

	slow := w.dial()
	slow.send("/large")
	res, err := http.ReadResponse(slow.r, nil)
	require.NoError(t, err)
	const piece = 64 << 10
	// So slow that it takes three times the deadline of a piece.
	pace := time.NewTicker(3 * time.Second * piece / large)
	defer pace.Stop()
	n := int64(0)
	for {
		<-pace.C
		got, err := io.CopyN(io.Discard, res.Body, piece)
		n += got
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.EqualValues(t, large, n)
	require.NoError(t, <-w.wrote)
	require.Equal(t, http.StatusNoContent, slow.ask("/nothing"))
}

// TestStreamsAreFlushed: what waits between its pieces gets each of them out.
func TestStreamsAreFlushed(t *testing.T) {
	next := make(chan string)
	in := New(Options{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for line := range next {
			_, _ = io.WriteString(w, line)
			w.(http.Flusher).Flush()
		}
	}))
	server.Listener = in.Listen(server.Listener)
	in.Serve(server.Config, nil, nil)
	server.Start()
	defer server.Close()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	go func() { next <- "first\n" }()
	res, err := server.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	require.True(t, lines.Scan())
	require.Equal(t, "first", lines.Text())
	next <- "second\n"
	require.True(t, lines.Scan())
	require.Equal(t, "second", strings.TrimSpace(lines.Text()))
	close(next)
	require.False(t, lines.Scan())
}
