package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// peer is who passed the handshake.
type peer struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	name     string // of the executor
	hello    *proto.ClientHello
	session  int64
	greeted  time.Time // before it was answered; its registration is made after that
	epoch    int64     // of the gateway then
}

// serveConn owns one connection from accept to close.
func (g *Gateway) serveConn(ctx context.Context, raw net.Conn) {
	remote := raw.RemoteAddr().String()
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	defer raw.Close()
	tune(raw)

	p, conn, err := g.greet(ctx, raw)
	<-g.pending
	if err != nil {
		// Strangers are the network's weather, a refused token is news for the operator.
		if code := domain.CodeOf(err); code != domain.CodeInternal {
			g.log.Warn("executor refused", "remote", remote, "code", code, "err", err)
		} else {
			g.log.Debug("connection dropped in the handshake", "remote", remote, "err", err)
		}
		return
	}
	if p.hello.Purpose == proto.Purpose_PURPOSE_LOGS {
		err = g.serveLogs(ctx, conn, p)
	} else {
		err = g.serveSession(ctx, conn, p)
	}
	if err != nil && ctx.Err() == nil {
		g.log.Info("session ended", "remote", remote, "executor", p.name, "session", p.session, "err", err)
	}
}

// greet does everything that happens before the multiplexer, within
// proto.HelloTimeout and proto.MaxHello bytes.
func (g *Gateway) greet(ctx context.Context, conn net.Conn) (*peer, net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(proto.HelloTimeout)); err != nil {
		return nil, nil, err
	}
	if g.opt.TLS != nil {
		secure := tls.Server(conn, g.opt.TLS)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, nil, fmt.Errorf("tls handshake: %w", err)
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
	p, err := g.authenticate(ctx, &hello)
	if err != nil {
		code, retry := helloCode(err)
		g.refuse(conn, code, err.Error(), retry)
		return nil, nil, err
	}
	answer := &proto.ServerHello{
		Version: proto.Version, SessionId: p.session, NodeId: g.opt.NodeID, ClusterId: g.opt.ClusterID,
	}
	if err := proto.WriteFrame(conn, answer, proto.MaxHello); err != nil {
		return nil, nil, fmt.Errorf("write hello: %w", err)
	}
	return p, conn, conn.SetDeadline(time.Time{})
}

func (g *Gateway) authenticate(ctx context.Context, hello *proto.ClientHello) (*peer, error) {
	ctx, cancel := context.WithTimeout(ctx, proto.HelloTimeout)
	defer cancel()
	switch {
	case hello.MinVersion > proto.Version || hello.MaxVersion < proto.MinVersion:
		return nil, domain.Errorf(codeVersion, "this admin speaks protocol versions %d to %d, the executor %d to %d",
			proto.MinVersion, proto.Version, hello.MinVersion, hello.MaxVersion)
	case !validBootID(hello.BootId):
		return nil, domain.Errorf(domain.CodeInvalid, "boot_id must be 32 lower-case hexadecimal digits")
	case hello.Purpose != proto.Purpose_PURPOSE_CONTROL && hello.Purpose != proto.Purpose_PURPOSE_LOGS:
		return nil, domain.Errorf(domain.CodeInvalid, "purpose must be control or logs")
	}
	if err := g.refuseFlapping(hello, hello.InstanceName); err != nil {
		return nil, err
	}
	leave, err := g.enter(ctx)
	if err != nil {
		return nil, err
	}
	tenant, executor, err := g.opt.Auth.VerifyJoinToken(ctx, hello.JoinToken, hello.BootId, hello.Executor)
	leave()
	if err != nil {
		return nil, err
	}
	p := &peer{
		tenant: tenant, executor: executor, name: hello.Executor, hello: hello,
		greeted: time.Now(), epoch: g.epoch.Load(),
	}
	if hello.Purpose == proto.Purpose_PURPOSE_LOGS {
		// The token was checked again; the session must be the same process's.
		s := g.registry.bySession(domain.SessionID(hello.SessionId))
		if s == nil || s.Tenant != tenant || s.Executor != executor || s.BootID != hello.BootId {
			return nil, domain.Errorf(codeNotRegistered, "no session %d of this process on this node", hello.SessionId)
		}
		p.session = hello.SessionId
		return p, nil
	}
	if g.registry.count() >= g.opt.MaxSessions {
		return nil, domain.Errorf(domain.CodeRateLimited, "this node serves its maximum of %d sessions", g.opt.MaxSessions)
	}
	p.session = g.opt.NewID()
	return p, nil
}

// Codes that exist only on the wire.
const (
	codeVersion       domain.Code = "version_unsupported"
	codeNotRegistered domain.Code = "not_registered"
)

// helloCode maps an error to the wire's code and to the wait before the next try
// (milliseconds; -1 = trying again is of no use, 0 = as the client's backoff says).
func helloCode(err error) (code string, retryAfter int64) {
	switch domain.CodeOf(err) {
	case domain.CodeUnauthenticated, domain.CodeNotFound:
		return "bad_token", -1
	case domain.CodeTokenExpired:
		return "token_expired", -1
	case domain.CodeDenied:
		return "wrong_executor", -1
	case domain.CodeInvalid:
		return "malformed", -1
	case codeVersion:
		return "version_unsupported", -1
	case codeFlapping:
		var hold *holdError
		if errors.As(err, &hold) {
			return "flapping", max(1, hold.wait.Milliseconds())
		}
		return "flapping", 0
	case codeNotRegistered:
		return "not_registered", 0
	case domain.CodeRateLimited:
		return "limit_reached", 5000
	default:
		return "unavailable", 0
	}
}

// refuse tells the peer why, as far as it still listens.
func (g *Gateway) refuse(conn net.Conn, code, message string, retryAfter int64) {
	if code == "unavailable" {
		message = "the admin cannot check the token now" // not the database's own words
	}
	_ = proto.WriteFrame(conn, &proto.ServerHello{
		Version: proto.Version,
		Error:   &proto.Error{Code: code, Message: message, RetryAfterMs: retryAfter},
	}, proto.MaxHello)
}

func validBootID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
