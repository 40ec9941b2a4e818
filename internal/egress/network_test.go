package egress

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseNetworks(t *testing.T) {
	got, err := ParseNetworks([]string{"10.1.2.3/16", " 10.2.0.1", "fd00::1/64"})
	require.NoError(t, err)
	require.Equal(t, []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("10.2.0.1/32"), netip.MustParsePrefix("fd00::/64")}, got)
	_, err = ParseNetworks([]string{"everything"})
	require.ErrorContains(t, err, `"everything" is no network`)
}
