package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// client returns the address that a request comes from and whether it came over
// TLS. Headers count only when a trusted proxy has sent them. A chain of proxies
// is followed from this end, to the first address that is none of them: what
// stands before that, anybody can have written.
func (s *Server) client(r *http.Request) (ip string, secure bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	peer, err := parseIP(host)
	if err != nil {
		return host, r.TLS != nil
	}
	secure = r.TLS != nil
	if !inAny(s.options.TrustedProxies, peer) {
		return peer.String(), secure
	}
	if proto := lastHeader(r.Header, "X-Forwarded-Proto"); proto != "" {
		// A chain of proxies writes a list; its first is the client's side.
		first, _, _ := strings.Cut(proto, ",")
		secure = strings.EqualFold(strings.TrimSpace(first), "https")
	}
	// Some proxies add a header of their own instead of extending the client's.
	chain := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if len(r.Header.Values("X-Forwarded-For")) == 0 {
		chain = []string{lastHeader(r.Header, "X-Real-Ip")}
	}
	client := peer
	for _, text := range slices.Backward(chain) {
		hop, err := parseIP(strings.TrimSpace(text))
		if err != nil {
			break // nothing, or no address: who wrote it is the last that is known
		}
		if client = hop; !inAny(s.options.TrustedProxies, hop) {
			break
		}
	}
	return client.String(), secure
}

// FromThisMachine reports whether a program of this machine sent the request. A request
// that a proxy passed on does not count.
func FromThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	peer, err := parseIP(host)
	if err != nil || !peer.IsLoopback() {
		return false
	}
	for _, name := range []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"} {
		if len(r.Header.Values(name)) > 0 {
			return false
		}
	}
	return true
}

func inAny(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// parseIP reads an address; some proxies write the port too.
func parseIP(text string) (netip.Addr, error) {
	ip, err := netip.ParseAddr(text)
	if at, portErr := netip.ParseAddrPort(text); portErr == nil {
		ip, err = at.Addr(), nil
	}
	return ip.Unmap().WithZone(""), err
}

func lastHeader(h http.Header, name string) string {
	values := h.Values(name)
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}
