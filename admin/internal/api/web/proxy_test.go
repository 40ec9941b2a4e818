package web

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClientBehindProxies(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:1::/48")}
	tests := []struct {
		name, peer string
		tls        bool
		headers    map[string][]string
		ip         string
		secure     bool
	}{
		{"no proxy", "203.0.113.5:1", false, nil, "203.0.113.5", false},
		{"no proxy, TLS", "[2001:db8::1]:1", true, nil, "2001:db8::1", true},
		{
			"nobody may choose the address that limits count", "203.0.113.5:1", false,
			map[string][]string{"X-Forwarded-For": {"192.0.2.1"}, "X-Real-Ip": {"192.0.2.1"}, "X-Forwarded-Proto": {"https"}}, "203.0.113.5", false,
		},
		{"a proxy", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"192.0.2.1"}, "X-Forwarded-Proto": {"https"}}, "192.0.2.1", true},
		{"a proxy by IPv6", "[2001:db8:1::9]:1", false, map[string][]string{"X-Forwarded-For": {"2001:db8::7"}}, "2001:db8::7", false},
		{"a proxy in IPv4 as IPv6", "[::ffff:198.51.100.9]:1", false, map[string][]string{"X-Forwarded-For": {"::ffff:192.0.2.1"}}, "192.0.2.1", false},
		{"a proxy that speaks TLS to us and not to the client", "198.51.100.9:1", true, map[string][]string{"X-Forwarded-Proto": {"http"}}, "198.51.100.9", false},
		{"a chain of proxies", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"192.0.2.1, 198.51.100.4"}, "X-Forwarded-Proto": {"https, http"}}, "192.0.2.1", true},
		{"what stands before the first stranger is his word", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"10.0.0.1, 203.0.113.5, 198.51.100.4"}}, "203.0.113.5", false},
		{"a proxy that adds a header of its own", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"10.0.0.1", "203.0.113.5"}}, "203.0.113.5", false},
		{"X-Real-IP", "198.51.100.9:1", false, map[string][]string{"X-Real-Ip": {"203.0.113.5"}}, "203.0.113.5", false},
		{"with a port", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"203.0.113.5:4711"}}, "203.0.113.5", false},
		{"no address", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"203.0.113.5, unknown"}}, "198.51.100.9", false},
		{"only proxies", "198.51.100.9:1", false, map[string][]string{"X-Forwarded-For": {"198.51.100.3"}}, "198.51.100.3", false},
	}
	s := &Server{options: Options{TrustedProxies: trusted}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: tt.peer, Header: tt.headers}
			if tt.tls {
				r.TLS = &tls.ConnectionState{}
			}
			ip, secure := s.client(r)
			require.Equal(t, tt.ip, ip)
			require.Equal(t, tt.secure, secure)
			if len(tt.headers) > 0 {
				ip, secure = (&Server{}).client(r)
				require.Equal(t, netip.MustParseAddrPort(tt.peer).Addr().Unmap().String(), ip, "by default no proxy is trusted")
				require.Equal(t, tt.tls, secure)
			}
		})
	}
}
