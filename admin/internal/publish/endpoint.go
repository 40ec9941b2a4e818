package publish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	dialTimeout = 5 * time.Second
	// writeTimeout bounds one write to a socket: a broker that does not read is
	// as good as gone.
	writeTimeout = 10 * time.Second
)

// endpoint is where one connection leads, for the code that opens it.
type endpoint struct {
	// Fixed after construction.
	spec    domain.ConnectionSpec
	secrets domain.ConnectionSecrets
	tls     *tls.Config // nil: without TLS
	dialer  *net.Dialer

	// Replaced by opened.
	once    sync.Once
	refused chan struct{} // closed by once when egress has refused an address
}

func newEndpoint(spec domain.ConnectionSpec, secrets domain.ConnectionSecrets, control func(string, string, syscall.RawConn) error) (*endpoint, error) {
	e := &endpoint{spec: spec, secrets: secrets, dialer: &net.Dialer{Timeout: dialTimeout, Control: control}, refused: make(chan struct{})}
	if !spec.TLS.Enabled {
		return e, nil
	}
	e.tls = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: spec.TLS.ServerName}
	if spec.TLS.Authorities != "" {
		e.tls.RootCAs = x509.NewCertPool()
		if !e.tls.RootCAs.AppendCertsFromPEM([]byte(spec.TLS.Authorities)) {
			return nil, permanent("the connection's TLS authorities cannot be read")
		}
	}
	if spec.TLS.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(spec.TLS.Certificate), []byte(secrets.ClientKey))
		if err != nil {
			return nil, permanent("the connection's certificate and key: %w", err)
		}
		e.tls.Certificates = []tls.Certificate{pair}
	}
	return e, nil
}

// dial opens a TCP connection, if the address may be reached.
func (e *endpoint) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := e.dialer.DialContext(ctx, network, address)
	if egress.Refused(err) {
		e.once.Do(func() { close(e.refused) })
	}
	if err != nil {
		return nil, err
	}
	return boundedWrites{conn}, nil
}

// dialTLS is dial with TLS on top if the connection has it.
func (e *endpoint) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := e.dial(ctx, network, address)
	if err != nil || e.tls == nil {
		return conn, err
	}
	config := e.tls.Clone()
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
			conn.Close()
			return nil, err
		}
	}
	secured := tls.Client(conn, config)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

// opened forgets that an address was refused, when another one has let us in. It
// is for brokers that dial only while they are opened, and is called before the
// connection has users.
func (e *endpoint) opened() {
	e.once, e.refused = sync.Once{}, make(chan struct{})
}

// explain puts the reasons first that all brokers share: libraries wrap, repeat
// or swallow what the dialer said.
func (e *endpoint) explain(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-e.refused:
		return permanent("an address of the connection leads to a network that connections may not reach (connection-allow): %w", err)
	default:
		return typed(err)
	}
}

// boundedWrites ends a write that the peer does not take.
type boundedWrites struct{ net.Conn }

func (c boundedWrites) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
