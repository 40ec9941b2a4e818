package profile_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/profile"
)

func TestProfilesAreServedOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:6060", "localhost"} {
		require.Error(t, profile.Serve(t.Context(), address), address)
	}
}

func TestProfilesUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- profile.Serve(ctx, address) }()
	require.Eventually(t, func() bool {
		res, err := http.Get("http://" + address + "/debug/pprof/goroutine?debug=1")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return err == nil && res.StatusCode == http.StatusOK && len(text) > 0
	}, 10e9, 1e7)
	cancel()
	require.NoError(t, <-ended)
	http.DefaultClient.CloseIdleConnections()
}
