package callback

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Who is called again finds its connection, also when many others were called
// meanwhile.
func TestConnectionsToManyReceiversAreKept(t *testing.T) {
	const receivers = 200
	var opened atomic.Int64
	urls := make([]string, receivers)
	for i := range urls {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				opened.Add(1)
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		urls[i] = server.URL
	}
	s := New(Options{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler)})
	p, err := s.read(&domain.CallbackPolicy{Hosts: []string{"*"}, MaxTimeout: time.Second, PerHost: 1})
	require.NoError(t, err)
	t.Cleanup(p.close)
	for range 3 {
		for _, url := range urls {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			require.NoError(t, err)
			answer, err := p.caller.Client.Do(request)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
		}
	}
	require.EqualValues(t, receivers, opened.Load())
}
