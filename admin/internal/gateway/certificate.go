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
	// Denied returns, in the order of the list, domain.CodeInstanceDenied with the
	// reason for a boot that was denied, or a certificate's serial number if that
	// is not empty. An error of its own is everybody's.
	Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error)
}

// authenticate finds out who the peer is: by its certificate when it shows one
// that counts, else by its join token. What it says of itself must agree.
func (g *Gateway) authenticate(ctx context.Context, p *peer, shown *x509.Certificate) error {
	if g.knocks.Waiting() > maxWaiting {
		return errCrowded()
	}
	k := knock{
		claim: domain.JoinClaim{Secret: p.hello.JoinToken, BootID: p.hello.BootId, Executor: p.hello.Executor},
		who:   domain.ExecutorIdentity{BootID: p.hello.BootId},
	}
	if shown != nil && g.opt.Certificates != nil {
		m, err := g.certified(ctx, p, shown)
		if err != nil {
			return err
		}
		k.proven, k.who = true, m
	}
	v, err := g.knocks.Do(ctx, k)
	switch {
	case err != nil:
		return err
	case v.err != nil:
		return v.err
	case !k.proven && g.opt.Certificates != nil && g.opt.Certificates.Required() && p.hello.Purpose != proto.Purpose_PURPOSE_ENROLL:
		return domain.Errorf(codeUncertified, "this admin wants a certificate: enroll with the join token, and connect with what it gives (newer executor SDKs do)")
	}
	p.tenant, p.executor, p.noJobs, p.until, p.serial = v.tenant, v.executor, v.noJobs, k.who.Until, k.who.Serial
	return nil
}

// certified checks that the hello says what the certificate does.
func (g *Gateway) certified(ctx context.Context, p *peer, shown *x509.Certificate) (domain.ExecutorIdentity, error) {
	leave, err := enter(ctx, g.entering)
	if err != nil {
		return domain.ExecutorIdentity{}, err
	}
	defer leave()
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
	return g.opt.Certificates.Issue(ctx, domain.ExecutorIdentity{Tenant: p.tenant, Executor: p.executor, BootID: p.hello.BootId, NoJobs: p.noJobs}, p.hello.Csr)
}

var errDenied = errors.New("it was denied by an administrator")

// EndDenied ends the sessions that a denial names, and tells of which instances.
func (g *Gateway) EndDenied(d domain.Denial) (ended []domain.InstanceID) {
	for _, s := range g.registry.all() {
		if d.Names(domain.ExecutorIdentity{Tenant: s.Tenant, Executor: s.Executor, BootID: s.BootID, Serial: s.serial}) {
			s.close(errDenied)
			ended = append(ended, s.Instance)
		}
	}
	return ended
}
