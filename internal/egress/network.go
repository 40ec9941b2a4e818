package egress

import (
	"fmt"
	"net/netip"
	"strings"
)

// ParseNetworks reads networks. An address alone is a network of one.
func ParseNetworks(texts []string) (out []netip.Prefix, err error) {
	for _, text := range texts {
		text = strings.TrimSpace(text)
		prefix, err := netip.ParsePrefix(text)
		if ip, ipErr := netip.ParseAddr(text); ipErr == nil {
			prefix, err = ip.Prefix(ip.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no network: %w", text, err)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}
