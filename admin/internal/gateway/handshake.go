package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
	"github.com/carillon-sched/carillon/proto/direct"
)

// peer is who passed the handshake.
type peer struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	noJobs   bool   // by its token it may declare none
	name     string // of the executor
	hello    *proto.ClientHello
	session  int64
	address  string     // where it comes from, without a port; empty = from this process
	serial   string     // of its certificate; empty = it has none
	until    time.Time  // when its certificate ends
	greeted  time.Time  // before it was answered; its registration is made after that
	epoch    int64      // of the gateway then
	seat     *seat      // nil: it is no session
	local    *localConn // nil: it came over the network
	logsOf   *Session   // of which it is a log connection; nil: it is none
}

// leave gives back all that the peer has.
func (p *peer) leave() {
	if p.seat != nil {
		p.seat.leave()
	}
	if p.logsOf != nil {
		p.logsOf.logs.Add(-1)
	}
}

// serveConn owns one connection from accept to close, and returns why it ended.
func (g *Gateway) serveConn(ctx context.Context, raw net.Conn, who *candidate) error {
	from := who.from.ip
	defer g.admission.disconnect(who)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	defer raw.Close()
	tune(raw)

	p, conn, err := g.greet(ctx, direct.Conn(raw), who)
	g.admission.advance(who, judged)
	if err != nil {
		g.refuser.refused(from, err)
		return err
	}
	defer p.leave()
	p.address = plainAddress(raw.RemoteAddr())
	conn = g.tally.count(conn, p.hello.Purpose)
	switch p.hello.Purpose {
	case proto.Purpose_PURPOSE_ENROLL: // it has its answer
	case proto.Purpose_PURPOSE_LOGS:
		err = g.logs.serve(ctx, conn, p)
	default:
		err = g.serveSession(ctx, raw, conn, p)
	}
	if err != nil && ctx.Err() == nil {
		g.log.Info("session ended", "remote", raw.RemoteAddr().String(), "executor", p.name, "session", p.session, "err", err)
	}
	return err
}

// greet does everything that happens before the multiplexer, within
// proto.HelloTimeout and proto.MaxHello bytes; the first of them has to come
// within proto.FirstByteTimeout.
func (g *Gateway) greet(ctx context.Context, conn net.Conn, who *candidate) (*peer, net.Conn, error) {
	began := time.Now()
	if err := conn.SetDeadline(began.Add(proto.FirstByteTimeout)); err != nil {
		return nil, nil, err
	}
	raw := conn
	conn = &firstByte{conn, func() {
		g.admission.advance(who, begun)
		_ = raw.SetDeadline(began.Add(proto.HelloTimeout)) // of a connection that was closed
	}}
	var shown *x509.Certificate
	local, _ := who.conn.(*localConn)
	if g.opt.TLS != nil && local == nil {
		secure := tls.Server(conn, g.opt.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, nil, fmt.Errorf("tls handshake: %w", err)
		}
		if list := secure.ConnectionState().PeerCertificates; len(list) > 0 {
			shown = list[0]
		}
		conn = secure
	}
	var preface [len(proto.Preface)]byte
	if _, err := io.ReadFull(conn, preface[:]); err != nil {
		return nil, nil, fmt.Errorf("read preface: %w", err)
	}
	if string(preface[:]) != proto.Preface {
		return nil, nil, errors.New("not a Carillon executor")
	}
	var hello proto.ClientHello
	if err := proto.ReadHello(conn, &hello); err != nil {
		g.refuse(conn, "malformed", "the hello could not be read: "+err.Error(), -1)
		return nil, nil, fmt.Errorf("read hello: %w", err)
	}
	if g.opt.TLS == nil || local != nil {
		conn = raw
	}
	g.admission.advance(who, judging)
	p, answer, err := g.admit(ctx, &hello, shown, local, func() { g.admission.advance(who, judged) })
	if err != nil {
		code, retry := helloCode(err)
		g.refuse(conn, code, err.Error(), retry, executorsOf(err)...)
		return nil, nil, &refusedError{err, &hello, code}
	}
	if err = proto.WriteFrame(conn, answer, proto.MaxHello); err != nil {
		err = fmt.Errorf("write hello: %w", err)
	} else {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		p.leave()
	}
	return p, conn, err
}

// admit checks a hello and makes its answer. Who has shown who he is may have to
// wait for a place, and must not keep others from being heard meanwhile:
// known is called then.
func (g *Gateway) admit(ctx context.Context, hello *proto.ClientHello, shown *x509.Certificate, local *localConn, known func()) (*peer, *proto.ServerHello, error) {
	ctx, cancel := context.WithTimeout(ctx, proto.HelloTimeout)
	defer cancel()
	if err := checkHello(hello); err != nil {
		return nil, nil, err
	}
	if err := g.admission.hold(hello, hello.InstanceName, time.Now()); err != nil {
		return nil, nil, err
	}
	p := &peer{name: hello.Executor, hello: hello, local: local, epoch: g.epoch.Load()}
	if err := g.verifier.authenticate(ctx, p, shown); err != nil {
		return nil, nil, err
	}
	known()
	p.greeted = time.Now()
	answer := &proto.ServerHello{Version: proto.Version, NodeId: g.opt.NodeID, ClusterId: g.opt.ClusterID}
	var err error
	switch hello.Purpose {
	case proto.Purpose_PURPOSE_ENROLL:
		answer.Certificate, err = g.verifier.enroll(ctx, p)
	case proto.Purpose_PURPOSE_LOGS:
		err = g.admitLogs(p)
	default:
		p.session = g.opt.NewID()
		answer.Enroll = g.opt.Certificates != nil && p.serial == "" && local == nil
		p.seat, err = g.admission.seat(ctx, p.tenant)
	}
	answer.SessionId = p.session
	return p, answer, err
}

func checkHello(hello *proto.ClientHello) error {
	switch {
	case hello.MinVersion > proto.Version || hello.MaxVersion < proto.MinVersion:
		return domain.Errorf(codeVersion, "this admin speaks protocol versions %d to %d, the executor %d to %d",
			proto.MinVersion, proto.Version, hello.MinVersion, hello.MaxVersion)
	case !isHex(hello.BootId):
		return domain.Errorf(domain.CodeInvalid, "boot_id must be 32 lower-case hexadecimal digits")
	}
	switch hello.Purpose {
	case proto.Purpose_PURPOSE_CONTROL, proto.Purpose_PURPOSE_LOGS, proto.Purpose_PURPOSE_ENROLL:
		return nil
	}
	return domain.Errorf(domain.CodeInvalid, "purpose must be control, logs or enroll")
}

// maxLogs bounds the log connections of one session; an honest one has one, and
// for a moment the one before.
const maxLogs = 4

// admitLogs binds a log connection to its session: it must be the same process's.
func (g *Gateway) admitLogs(p *peer) error {
	s := g.registry.bySession(domain.SessionID(p.hello.SessionId))
	if s == nil || s.Tenant != p.tenant || s.Executor != p.executor || s.BootID != p.hello.BootId {
		return domain.Errorf(codeNotRegistered, "no session %d of this process on this node", p.hello.SessionId)
	}
	if s.logs.Add(1) > maxLogs {
		s.logs.Add(-1)
		return domain.Errorf(domain.CodeRateLimited, "this session has %d log connections already", maxLogs)
	}
	p.session, p.logsOf = p.hello.SessionId, s
	return nil
}

// Codes that exist only on the wire.
const (
	codeVersion       domain.Code = "version_unsupported"
	codeNotRegistered domain.Code = "not_registered"
	codeUncertified   domain.Code = "certificate_required"
)

// retryError is a no for a while.
type retryError struct {
	wait time.Duration
	error
}

func (e *retryError) Unwrap() error { return e.error }

// helloCodes are the wire's codes, and for how long a peer has to wait before the
// next try (milliseconds; -1 = trying again is of no use, 0 = as the client's
// backoff says).
var helloCodes = map[domain.Code]struct {
	code       string
	retryAfter int64
}{
	domain.CodeUnauthenticated:  {"bad_token", -1},
	domain.CodeNotFound:         {"bad_token", -1},
	domain.CodeTokenExpired:     {"token_expired", -1},
	domain.CodeDenied:           {"wrong_executor", -1},
	domain.CodeInvalid:          {"malformed", -1},
	domain.CodeInstanceDenied:   {"denied", -1},
	domain.CodeBadCertificate:   {"bad_certificate", 0},
	domain.CodeExecutorDisabled: {"executor_disabled", 10000},
	domain.CodeTenantMoving:     {"moving", 500},
	domain.CodeTenantElsewhere:  {"moved", 0},
	domain.CodeRateLimited:      {"limit_reached", 5000},
	codeUncertified:             {"certificate_required", 0},
	codeVersion:                 {"version_unsupported", -1},
	codeNotRegistered:           {"not_registered", 0},
	codeOverloaded:              {"limit_reached", 0},
	codeFlapping:                {"flapping", 0},
}

func helloCode(err error) (code string, retryAfter int64) {
	known, ok := helloCodes[domain.CodeOf(err)]
	if !ok {
		return "unavailable", 0
	}
	if retry, ok := errors.AsType[*retryError](err); ok {
		return known.code, max(1, retry.wait.Milliseconds())
	}
	return known.code, known.retryAfter
}

// refuse tells the peer why, as far as it still listens.
func (g *Gateway) refuse(conn net.Conn, code, message string, retryAfter int64, addresses ...string) {
	if code == "unavailable" {
		message = "the admin cannot check the token now" // not the database's own words
	}
	_ = proto.WriteFrame(conn, &proto.ServerHello{
		Version: proto.Version,
		Error:   &proto.Error{Code: code, Message: message, RetryAfterMs: retryAfter, Addresses: addresses},
	}, proto.MaxHello)
}

// executorsOf are the addresses of the cell that a tenant lives in.
func executorsOf(err error) []string {
	if moved, ok := errors.AsType[*domain.Error](err); ok && moved.Cell != nil {
		return moved.Cell.Executors
	}
	return nil
}

// firstByte tells when the first byte comes.
type firstByte struct {
	net.Conn
	came func() // nil: it was told
}

func (c *firstByte) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && c.came != nil {
		c.came()
		c.came = nil
	}
	return n, err
}

// isHex reports whether this is 32 lower-case hexadecimal digits.
func isHex(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
