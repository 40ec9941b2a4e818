// Package egress answers: which addresses may be reached because a user said so?
//
// An address that comes from a user is not trusted: what it leads to is
// checked when it is dialled, after its name was resolved (no rebinding), and
// may not be loopback, private, link-local or a metadata service unless the
// operator allows that network. It works only without a proxy, whose address
// it would see instead. Errors tell users the cause without the addresses that a
// name leads to.
package egress

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"

	"code.dny.dev/ssrf"
)

// wireServer is where virtual machines of a cloud reach their host, which hands
// out their settings. It is a public address, unlike those of other metadata
// services: learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16.
var wireServer = netip.MustParsePrefix("168.63.129.16/32")

// Control returns a check for net.Dialer.Control. allowed are networks that may
// be reached though they are not public; empty = none.
func Control(allowed []netip.Prefix) func(network, address string, c syscall.RawConn) error {
	var v4, v6 []netip.Prefix
	for _, prefix := range allowed {
		if prefix.Addr().Is4() {
			v4 = append(v4, prefix)
		} else {
			v6 = append(v6, prefix)
		}
	}
	return ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(wireServer), ssrf.WithAllowedV4Prefixes(v4...), ssrf.WithAllowedV6Prefixes(v6...)).Safe
}

// Refused reports whether a dial failed because Control refused the address.
func Refused(err error) bool {
	return errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork)
}

// Loopback reports whether a host, which is a name or an address, is this machine.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
