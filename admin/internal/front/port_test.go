package front

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/httpconn"
)

// A port answers probes from its first moment on and says why the node starts. Then it
// answers all, below its path too, until it stops.
func TestAPortFromItsFirstMoment(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limiter := httpconn.New(httpconn.Options{})
	p := Serve(Options{Listener: limiter.Listen(listener), Limiter: limiter, What: "pages", Path: "/carillon"})
	client := &http.Client{Transport: &http.Transport{}}
	get := func(path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		require.NoError(t, err)
		res, err := client.Do(req)
		require.NoError(t, err)
		defer func() { require.NoError(t, res.Body.Close()) }()
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res.StatusCode, string(body)
	}
	status, _ := get("/healthz")
	require.Equal(t, http.StatusOK, status)
	p.Starts("it waits")
	status, body := get("/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "this node starts: it waits")
	p.Open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "at "+r.URL.Path) }))
	for _, path := range []string{"/jobs", "/carillon/jobs"} {
		_, body = get(path)
		require.Equal(t, "at /jobs", body)
	}
	client.CloseIdleConnections()
	p.Refuse()
	require.NoError(t, p.Stop())
	<-p.Ended()
	require.NoError(t, p.Err())
}

// Requests under way are broken off when their time is over.
func TestRequestsAreBrokenOff(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limiter := httpconn.New(httpconn.Options{})
	p := Serve(Options{Listener: limiter.Listen(listener), Limiter: limiter})
	entered := make(chan struct{})
	p.Open(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	}))
	broken := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+listener.Addr().String(), nil)
		if err == nil {
			_, err = http.DefaultClient.Do(req)
		}
		broken <- err
	}()
	<-entered
	require.NoError(t, p.Stop(), "the time is over, for Refuse was not called")
	require.Error(t, <-broken)
}

// A node without a port for metrics has a nil Port.
func TestNoPort(t *testing.T) {
	t.Parallel()
	var p *Port
	p.Open(http.NotFoundHandler())
	p.Refuse()
	require.Nil(t, p.Ended())
	require.NoError(t, p.Stop())
}
