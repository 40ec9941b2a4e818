package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/carillon-sched/carillon/admin/internal/addon/broker/noun"
	"github.com/carillon-sched/carillon/admin/internal/wire"
)

// jetStream publishes to NATS. Its dedupe id is Nats-Msg-Id.
type jetStream struct {
	conn *nats.Conn
	js   nats.JetStreamContext

	mu      sync.Mutex
	waiting map[*natsWait]struct{} // guarded by mu: publishes without an answer yet
}

// natsWait is a publish that waits. The server tells of a refused subject
// beside the request, which then never gets an answer.
type natsWait struct {
	subject string
	cancel  context.CancelCauseFunc
}

// natsDialer is what NATS's library asks for in the place of a net.Dialer.
type natsDialer struct {
	ctx context.Context // of the opening: the library dials once only
	e   *endpoint
}

// Dial reads the server's INFO and does TLS itself. The library reads INFO without
// a bound, and does TLS above the socket, where no reader has a place.
func (d natsDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.e.dial(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	secured, err := d.secure(conn, address)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return wire.NATS(secured, d.e.cut), nil
}

func (d natsDialer) secure(conn net.Conn, address string) (net.Conn, error) {
	if err := conn.SetReadDeadline(time.Now().Add(dialTimeout)); err != nil {
		return nil, err
	}
	info, first, err := wire.ReadInfo(conn)
	if err != nil {
		return nil, err
	}
	config := d.e.tls
	switch {
	case info.TLSRequired && config == nil:
		config = &tls.Config{MinVersion: tls.VersionTLS12}
		fallthrough
	case config != nil && (info.TLSRequired || info.TLSAvailable):
		if conn, err = secure(d.ctx, conn, config, address); err != nil {
			return nil, fmt.Errorf("%w: %w", nats.ErrTLS, err)
		}
	}
	return wire.Replay(conn, first), nil // the library refuses a server without the TLS that is wanted
}

// SkipTLSHandshake tells the library that Dial has done it.
func (natsDialer) SkipTLSHandshake() bool { return true }

func openNATS(ctx context.Context, e *endpoint) (broker, error) {
	b := &jetStream{waiting: map[*natsWait]struct{}{}}
	servers := make([]string, len(e.spec.Addresses))
	for i, address := range e.spec.Addresses {
		servers[i] = "nats://" + address
	}
	options := []nats.Option{
		nats.Name("carillon"), nats.NoReconnect(), nats.Timeout(dialTimeout), nats.SetCustomDialer(natsDialer{ctx, e}),
		// The dialer resolves names within ctx, and addresses that a server names are
		// not the user's: there may be any number of them.
		nats.SkipHostLookup(), nats.IgnoreDiscoveredServers(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { b.asyncError(err) }),
	}
	if e.tls != nil {
		options = append(options, nats.Secure(e.tls))
	}
	switch {
	case e.spec.Mechanism == noun.MechanismCredentials:
		options = append(options, nats.UserCredentialBytes([]byte(e.secrets[noun.SecretPassword])))
	case e.spec.Username != "":
		options = append(options, nats.UserInfo(e.spec.Username, e.secrets[noun.SecretPassword]))
	case e.secrets[noun.SecretPassword] != "":
		options = append(options, nats.Token(e.secrets[noun.SecretPassword]))
	}
	var err error
	if b.conn, err = nats.Connect(strings.Join(servers, ","), options...); err != nil {
		return nil, natsError(err)
	}
	if b.js, err = b.conn.JetStream(); err != nil {
		b.conn.Close()
		return nil, natsError(err)
	}
	e.opened()
	return b, nil
}

func (b *jetStream) publish(ctx context.Context, m *noun.Message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	wait := &natsWait{m.Target.Subject, cancel}
	b.mu.Lock()
	b.waiting[wait] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.waiting, wait)
		b.mu.Unlock()
	}()
	message := nats.NewMsg(m.Target.Subject)
	message.Data = m.Body
	message.Header.Set("Content-Type", m.ContentType)
	for _, h := range m.AllHeaders() {
		message.Header.Set(h.Name, h.Value)
	}
	options := []nats.PubOpt{nats.MsgId(m.ID), nats.Context(ctx)}
	if m.Target.Stream != "" {
		options = append(options, nats.ExpectStream(m.Target.Stream))
	}
	_, err := b.js.PublishMsg(message, options...)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, ctx.Err()) {
		err = cause
	}
	if errors.Is(err, nats.ErrNoStreamResponse) {
		return b.nobodyAnswered(ctx, m.Target.Subject)
	}
	return natsError(err)
}

// nobodyAnswered tells a subject without a stream from a stream without a
// leader, which will have one again.
func (b *jetStream) nobodyAnswered(ctx context.Context, subject string) error {
	name, err := b.js.StreamNameBySubject(subject, nats.Context(ctx))
	switch {
	case errors.Is(err, nats.ErrNoMatchingStream):
		return permanent("no stream has the subject %q", subject)
	case err != nil:
		return retryable("no stream answered for the subject %q: %w", subject, natsError(err))
	default:
		return retryable("the stream %q does not answer", name)
	}
}

func (b *jetStream) asyncError(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for wait := range b.waiting {
		if strings.Contains(err.Error(), fmt.Sprintf("%q", wait.subject)) {
			wait.cancel(permanent("the broker refuses: %w", err))
		}
	}
}

// natsError sorts out what the server and its library say.
func natsError(err error) error {
	var api *nats.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrMaxPayload),
		errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return permanent("NATS: %w", err)
	case errors.As(err, &api) && api.Code/100 == 4:
		return permanent("JetStream: %w", err)
	case errors.As(err, &api):
		return retryable("JetStream: %w", err)
	default:
		return err
	}
}

func (b *jetStream) broken() bool { return b.conn.IsClosed() }
func (b *jetStream) close()       { b.conn.Close() }
