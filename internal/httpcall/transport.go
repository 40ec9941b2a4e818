package httpcall

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	dialTimeout = 10 * time.Second
	maxHeader   = 64 << 10
	maxUnread   = 256 << 10 // twice maxAnswer
)

// NewTransport refuses to connect to addresses that are loopback, private or
// otherwise special, unless they are in networks; roots judge certificates, nil
// = the system's.
func NewTransport(networks []netip.Prefix, roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: egress.Control(networks)}
	return &http.Transport{
		Proxy:                  nil, // the guard would see the proxy's address instead of the receiver's
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    dialTimeout,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		// A receiver may send so much before it is read. The default is 4 MiB for each call.
		HTTP2:           &http.HTTP2Config{MaxReceiveBufferPerStream: maxUnread, MaxReceiveBufferPerConnection: 4 * maxUnread},
		MaxIdleConns:    64,
		IdleConnTimeout: 30 * time.Second,
	}
}

// NewClient follows no redirects.
func NewClient(transport *http.Transport) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
