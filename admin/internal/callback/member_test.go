package callback

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
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
	p, err := s.read(1, &domain.CallbackPolicy{Hosts: []string{"*"}, MaxTimeout: time.Second, PerHost: 1})
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

// A call without effect is repeated although its job has one attempt. It is made
// six times at least, and until ten minutes after its planned time. Attempts that a
// job has left count as it says.
func TestWhenACallIsMadeAgainForFree(t *testing.T) {
	now := time.Now()
	answers := func(status int, header string) error {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if header != "" {
				w.Header().Set("Retry-After", header)
			}
			w.WriteHeader(status)
		}))
		defer server.Close()
		s := New(Options{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler)})
		p, err := s.read(1, &domain.CallbackPolicy{Hosts: []string{"*"}, MaxTimeout: time.Second, PerHost: 1})
		require.NoError(t, err)
		defer p.close()
		_, err = p.caller.Call(t.Context(), httpcall.Request{URL: server.URL}, executor.Task{Attempt: 1}, slog.New(slog.DiscardHandler))
		require.Error(t, err)
		return err
	}
	busy, asks, late, harm := answers(503, ""), answers(429, "30"), answers(503, "86400"), answers(500, "")
	for name, c := range map[string]struct {
		err          error
		attempt, max int
		planned      time.Duration // ago
		again        bool
	}{
		"first":                         {busy, 1, 1, 0, true},
		"last free one of an old one":   {busy, 5, 5, time.Hour, true},
		"an old one":                    {busy, 6, 6, time.Hour, false},
		"within ten minutes":            {busy, 20, 20, 9 * time.Minute, true},
		"attempts are left":             {busy, 1, 3, 0, false},
		"the receiver asks":             {asks, 1, 1, 0, true},
		"the receiver asks too much":    {late, 1, 1, 0, false},
		"it may have come to something": {harm, 1, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := again(c.err, executor.Task{Attempt: c.attempt, MaxAttempts: c.max, FireTime: now.Add(-c.planned)}, now)
			require.ErrorContains(t, err, "the answer is")
			require.Equal(t, c.again, strings.Contains(err.Error(), "snoozed for"), "%v", err)
			if errors.Is(c.err, asks) {
				require.Contains(t, err.Error(), "snoozed for 30s")
			}
		})
	}
	require.NoError(t, again(nil, executor.Task{}, now))
}
