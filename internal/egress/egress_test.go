package egress_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/egress"
)

func TestControl(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	dial := func(allowed ...string) error {
		var prefixes []netip.Prefix
		for _, text := range allowed {
			prefixes = append(prefixes, netip.MustParsePrefix(text))
		}
		conn, err := (&net.Dialer{Control: egress.Control(prefixes)}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.NoError(t, dial("::1/128", "127.0.0.0/8"))
	for _, allowed := range [][]string{nil, {"10.0.0.0/8"}, {"::1/128"}} {
		err := dial(allowed...)
		require.True(t, egress.Refused(err), "%v: %v", allowed, err)
	}
	listener.Close()
	err = dial("127.0.0.0/8")
	require.Error(t, err)
	require.False(t, egress.Refused(err), "nobody listens: %v", err)
}

// Where machines of clouds get their settings and keys is refused by itself.
func TestMetadataServices(t *testing.T) {
	for _, address := range []string{"169.254.169.254:80", "168.63.129.16:80", "100.100.100.200:80", "[fd00:ec2::254]:80"} {
		require.True(t, egress.Refused(egress.Control(nil)("tcp4", address, nil)), address)
	}
	require.NoError(t, egress.Control([]netip.Prefix{netip.MustParsePrefix("168.63.129.16/32")})("tcp4", "168.63.129.16:80", nil))
	require.NoError(t, egress.Control(nil)("tcp4", "168.63.129.17:80", nil))
}
