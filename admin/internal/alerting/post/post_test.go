package post

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/alerting"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// net/http reads the environment once per process, so the transport is asked
// directly: the guard would see the proxy's address instead of the receiver's.
func TestNoProxy(t *testing.T) {
	require.Nil(t, New(Options{}).http.Transport.(*http.Transport).Proxy)
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
	var e *alerting.SendError
	require.ErrorAs(t, a.Verdict(), &e)
	require.Equal(t, []any{false, 12 * time.Second}, []any{e.Permanent, e.RetryAfter})
	_, err = New(Options{}).Do(t.Context(), server.URL+"/t0ken", http.Header{}, nil)
	require.ErrorContains(t, err, "webhook-allow")
	require.NotContains(t, err.Error(), "t0ken")
}

func TestLane(t *testing.T) {
	of := func(tenant domain.TenantID, address string) string {
		return Lane(&alerting.Notice{Event: domain.AlertEvent{TenantID: tenant}}, address)
	}
	require.Equal(t, of(1, "https://A.example/x"), of(1, "https://a.example/y"))
	require.NotEqual(t, of(1, "https://a.example/"), of(2, "https://a.example/"))
	require.Equal(t, "1 ?", of(1, "https://a b/"))
}

func TestClean(t *testing.T) {
	require.Equal(t, "a b", Clean("a\r\n\x1b\x00b"))
	require.Len(t, Clean(strings.Repeat("x", 1000)), 200)
}
