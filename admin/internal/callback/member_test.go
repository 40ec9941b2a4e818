package callback

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Who is called again finds its connection, also when many others were called
// meanwhile.
func TestConnectionsToManyReceiversAreKept(t *testing.T) {
	const receivers = 200
	// By the requests that came through them: a stranger may dial a port that was another
	// program's a moment ago.
	var opened sync.Map
	urls := make([]string, receivers)
	for i := range urls {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			opened.Store(r.Host+" "+r.RemoteAddr, true)
		}))
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
	count := 0
	opened.Range(func(any, any) bool { count++; return true })
	require.Equal(t, receivers, count)
}
