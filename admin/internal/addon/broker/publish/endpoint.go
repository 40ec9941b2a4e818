package publish

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/wire"
	"github.com/carillon-sched/carillon/internal/egress"
)

const (
	dialTimeout = 5 * time.Second
	// writeTimeout bounds one write to a socket: a broker that does not read is
	// as good as gone.
	writeTimeout = 10 * time.Second
)

// dialFunc connects as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// endpoint is where one connection leads, for the code that opens it.
type endpoint struct {
	// Fixed after construction.
	spec    noun.ConnectionSpec
	secrets map[string]string
	tls     *tls.Config // nil: without TLS
	connect dialFunc

	// Replaced by opened.
	once    sync.Once
	refused chan struct{} // closed by once when egress has refused an address

	ended chan struct{} // closed by cut

	mu      sync.Mutex
	sockets map[*socket]struct{} // guarded by mu; those that are open
	cause   error                // guarded by mu; why cut was called
}

func newEndpoint(spec noun.ConnectionSpec, secrets map[string]string, dial dialFunc) (*endpoint, error) {
	e := &endpoint{
		spec: spec, secrets: secrets, connect: dial,
		refused: make(chan struct{}), ended: make(chan struct{}), sockets: map[*socket]struct{}{},
	}
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
		pair, err := tls.X509KeyPair([]byte(spec.TLS.Certificate), []byte(secrets[noun.SecretClientKey]))
		if err != nil {
			return nil, permanent("the connection's certificate and key: %w", err)
		}
		e.tls.Certificates = []tls.Certificate{pair}
	}
	return e, nil
}

// dial opens a TCP connection, if the address may be reached.
func (e *endpoint) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := e.connect(ctx, network, address)
	if egress.Refused(err) {
		e.once.Do(func() { close(e.refused) })
	}
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: conn, endpoint: e}
	e.mu.Lock()
	cause := e.cause
	if cause == nil {
		e.sockets[s] = struct{}{}
	}
	e.mu.Unlock()
	if cause != nil {
		conn.Close()
		return nil, cause
	}
	return s, nil
}

// cut closes all sockets and opens no other one. The first cause counts.
func (e *endpoint) cut(cause error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cause != nil {
		return
	}
	e.cause = cause
	close(e.ended)
	for s := range e.sockets {
		s.Conn.Close()
	}
}

// close closes a broker. After closeTime its library has no socket left to wait for.
func (e *endpoint) close(b broker) {
	defer time.AfterFunc(closeTime, func() { e.cut(errClosed) }).Stop()
	b.close()
}

// isCut reports that cut was called.
func (e *endpoint) isCut() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// read returns a dialer with TLS, if the connection has it, and a protocol's reader
// on top.
func (e *endpoint) read(by wire.Reader) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := e.dial(ctx, network, address)
		if err == nil && e.tls != nil {
			conn, err = secure(ctx, conn, e.tls, address)
		}
		if err != nil {
			return nil, err
		}
		return by(conn, e.cut), nil
	}
}

// secure does the handshake of TLS. It closes conn if that fails.
func secure(ctx context.Context, conn net.Conn, config *tls.Config, address string) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		var err error
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
		return permanent("the host leads to a network that may not be reached (--connection-allow)")
	default:
	}
	if own, ok := errors.AsType[*Error](err); e.isCut() && (!ok || own.Silent) { // an answer of the broker counts more
		return silent("%w", e.cause)
	}
	return typed(egress.Public(err))
}

// socket bounds writes: a broker that does not read for writeTimeout loses it. A
// library may have many writes ready, and each would wait as long as the first.
type socket struct {
	net.Conn
	endpoint *endpoint
	deadline atomic.Int64 // of writes, set by the library, in ns since 1970; 0: none
}

func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	at := int64(0)
	if !t.IsZero() {
		at = t.UnixNano()
	}
	s.deadline.Store(at)
	return s.Conn.SetWriteDeadline(t)
}

func (s *socket) Write(p []byte) (int, error) {
	end := time.Now().Add(writeTimeout)
	if at := s.deadline.Load(); at != 0 && at < end.UnixNano() {
		end = time.Unix(0, at)
	}
	if err := s.Conn.SetWriteDeadline(end); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(p)
	if err != nil {
		_ = s.Close() // half a frame was written
	}
	return n, err
}

func (s *socket) Close() error {
	s.endpoint.mu.Lock()
	delete(s.endpoint.sockets, s)
	s.endpoint.mu.Unlock()
	return s.Conn.Close()
}
