package gateway

import (
	"context"
	"crypto/x509"
	"errors"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// Certificates issues and checks the executors' certificates.
type Certificates interface {
	// Issue signs a request (DER); of who Serial and Until are not read.
	// domain.CodeInvalid: the request is at fault.
	Issue(ctx context.Context, who domain.ExecutorIdentity, csr []byte) (der []byte, err error)
	// Verify says whose certificate it is. domain.CodeBadCertificate: not one of ours,
	// or over.
	Verify(ctx context.Context, shown *x509.Certificate) (domain.ExecutorIdentity, error)
	// Name returns the name of its executor; domain.CodeNotFound: there is none
	// any more.
	Name(ctx context.Context, who domain.ExecutorIdentity) (string, error)
	// Required reports whether a session needs a certificate.
	Required() bool
}

// Denials knows who may not connect, whatever it shows.
type Denials interface {
	// Denied returns domain.CodeInstanceDenied with the reason for a boot that was
	// denied, or a certificate's serial number if that is not empty.
	Denied(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, bootID, serial string) error
}

// authenticate finds out who the peer is: by its certificate when it shows one
// that counts, else by its join token. What it says of itself must agree.
func (g *Gateway) authenticate(ctx context.Context, p *peer, shown *x509.Certificate) error {
	leave, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if shown != nil && g.opt.Certificates != nil {
		m, err := g.certified(ctx, p, shown)
		if err != nil {
			return err
		}
		p.tenant, p.executor, p.until, p.serial = m.Tenant, m.Executor, m.Until, m.Serial
	} else {
		p.tenant, p.executor, err = g.opt.Auth.VerifyJoinToken(ctx, p.hello.JoinToken, p.hello.BootId, p.hello.Executor)
		if err != nil {
			return err
		}
		if g.opt.Certificates != nil && g.opt.Certificates.Required() && p.hello.Purpose != proto.Purpose_PURPOSE_ENROLL {
			return domain.Errorf(codeUncertified, "this admin wants a certificate: enroll with the join token, and connect with what it gives (newer executor SDKs do)")
		}
	}
	if g.opt.Denials == nil {
		return nil
	}
	return g.opt.Denials.Denied(ctx, p.tenant, p.executor, p.hello.BootId, p.serial)
}

// certified checks that the hello says what the certificate does.
func (g *Gateway) certified(ctx context.Context, p *peer, shown *x509.Certificate) (domain.ExecutorIdentity, error) {
	m, err := g.opt.Certificates.Verify(ctx, shown)
	if err != nil {
		return m, err
	}
	if m.BootID != p.hello.BootId {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate is another process's")
	}
	name, err := g.opt.Certificates.Name(ctx, m)
	if domain.Is(err, domain.CodeNotFound) {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate's executor no longer exists")
	}
	if err == nil && name != p.hello.Executor {
		err = domain.Errorf(domain.CodeDenied, "the certificate is for another executor than %q", p.hello.Executor)
	}
	return m, err
}

// enroll answers a request for a certificate.
func (g *Gateway) enroll(ctx context.Context, p *peer) ([]byte, error) {
	if g.opt.Certificates == nil {
		return nil, domain.Errorf(domain.CodeInvalid, "this admin issues no certificates")
	}
	return g.opt.Certificates.Issue(ctx, domain.ExecutorIdentity{Tenant: p.tenant, Executor: p.executor, BootID: p.hello.BootId}, p.hello.Csr)
}

var errDenied = errors.New("it was denied by an administrator")

// EndDenied ends the sessions that a denial names, and tells how many.
func (g *Gateway) EndDenied(d domain.Denial) int {
	n := 0
	for _, s := range g.registry.all() {
		if d.Names(domain.ExecutorIdentity{Tenant: s.Tenant, Executor: s.Executor, BootID: s.BootID, Serial: s.serial}) {
			s.close(errDenied)
			n++
		}
	}
	return n
}
