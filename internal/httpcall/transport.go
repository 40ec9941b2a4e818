package httpcall

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	dialTimeout = 10 * time.Second
	maxHeader   = 64 << 10
	maxUnread   = 64 << 10 // the least that net/http takes
)

// NewTransport refuses to connect to addresses that are loopback, private or
// otherwise special, unless they are in networks; roots judge certificates, nil
// = the system's. The log gets the causes that errors hide.
func NewTransport(networks []netip.Prefix, roots *x509.CertPool, log *slog.Logger) *http.Transport {
	dialer := egress.NewDialer(dialTimeout, networks, log)
	return &http.Transport{
		Proxy:                  nil, // the guard would see the proxy's address instead of the receiver's
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		// A receiver may send so much before it is read. The default is 4 MiB for each call.
		HTTP2:           &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread, MaxReceiveBufferPerConnection: 16 * maxUnread},
		MaxIdleConns:    64,
		IdleConnTimeout: 30 * time.Second,
	}
}

// NewClient follows no redirects, and escapes what people leave out in a query.
func NewClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     escaping{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// escaping sends a query as RFC 3986 has it. net/http escapes the path of an address,
// and sends its query as it is written: a space there breaks the request line.
type escaping struct{ *http.Transport }

func (t escaping) RoundTrip(r *http.Request) (*http.Response, error) {
	if query := escapeQuery(r.URL.RawQuery); query != r.URL.RawQuery {
		r = r.Clone(r.Context())
		r.URL.RawQuery = query
	}
	return t.Transport.RoundTrip(r)
}

// escapeQuery escapes bytes that a query cannot have, and a percent sign that begins no
// escape. Escapes stay as they are. Brackets stay, because some receivers do not know
// them escaped.
func escapeQuery(query string) string {
	var out strings.Builder
	for i := range len(query) {
		c := query[i]
		escaped := c == '%' && i+2 < len(query) && isHex(query[i+1]) && isHex(query[i+2])
		if escaped || c > ' ' && c < 0x7f && !strings.ContainsRune("%\"<>\\^`{|}", rune(c)) {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}

func isHex(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
