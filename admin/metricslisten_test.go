package admin_test

import (
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
)

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	res, err := http.Get(address)
	require.NoError(t, err)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(raw)
}

// TestMetricsOnAPortOfTheirOwn: then they are there alone, and nowhere else; a
// port without a host is on loopback.
func TestMetricsOnAPortOfTheirOwn(t *testing.T) {
	t.Parallel()
	n := startNode(t, func(c *admin.Config) { c.MetricsAddress = ":0" })
	u, err := url.Parse(n.admin.MetricsURL())
	require.NoError(t, err)
	require.True(t, netip.MustParseAddrPort(u.Host).Addr().IsLoopback(), u.Host)
	status, text := get(t, u.String())
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "carillon_draining 0")
	for address, want := range map[string]int{
		n.admin.URL() + "/metrics":               http.StatusNotFound,
		n.admin.URL() + "/readyz":                http.StatusOK,
		"http://" + u.Host + "/api/openapi.json": http.StatusNotFound,
		"http://" + u.Host + "/":                 http.StatusNotFound,
	} {
		status, text := get(t, address)
		require.Equal(t, want, status, address)
		require.NotContains(t, text, "carillon_draining", address)
	}
}
