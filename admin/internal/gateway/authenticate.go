package gateway

import (
	"context"
	"crypto/x509"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// credential is what a hello shows: a claim, or an identity that a certificate has
// proven.
type credential struct {
	claim  domain.JoinClaim
	proven bool
	who    domain.ExecutorIdentity // BootID is always there
}

// authenticated is the answer to a credential.
type authenticated struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	noJobs   bool
	err      error
}

// authenticate finds out who the peer is: by its certificate when it shows one
// that counts, else by its join token. What it says of itself must agree.
func (g *Gateway) authenticate(ctx context.Context, p *peer, shown *x509.Certificate) error {
	if g.authentications.Waiting() > maxAuthenticating {
		return g.admission.errOverloaded()
	}
	k := credential{
		claim: domain.JoinClaim{Secret: p.hello.JoinToken, BootID: p.hello.BootId, Executor: p.hello.Executor},
		who:   domain.ExecutorIdentity{BootID: p.hello.BootId},
	}
	if who, ok := p.local.prove(p); ok {
		k.proven, k.who = true, who
	} else if shown != nil && g.opt.Certificates != nil {
		m, err := g.certified(ctx, p, shown)
		if err != nil {
			return err
		}
		k.proven, k.who = true, m
	}
	v, err := g.authentications.Do(ctx, k)
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
	if g.lookups.Acquire(ctx, 1) != nil {
		return domain.ExecutorIdentity{}, domain.Errorf(domain.CodeUnavailable, "too many executors come in at once; try again")
	}
	defer g.lookups.Release(1)
	m, err := g.opt.Certificates.Verify(ctx, shown)
	if err != nil {
		return m, err
	}
	if m.BootID != p.hello.BootId {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate is another process's")
	}
	named, err := g.opt.Certificates.Named(ctx, m, p.hello.Executor)
	if domain.Is(err, domain.CodeNotFound) {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate's executor no longer exists")
	}
	if err == nil && !named {
		err = domain.Errorf(domain.CodeDenied, "the certificate is for another executor than %q", p.hello.Executor)
	}
	return m, err
}

// authenticateAll asks about tokens first, and then whether somebody is denied.
func (g *Gateway) authenticateAll(ctx context.Context, list []credential) ([]authenticated, error) {
	out := make([]authenticated, len(list))
	var claims []domain.JoinClaim
	var of []int // the index of each claim in list
	for i, k := range list {
		if k.proven {
			out[i].tenant, out[i].executor, out[i].noJobs = k.who.Tenant, k.who.Executor, k.who.NoJobs
		} else {
			claims, of = append(claims, k.claim), append(of, i)
		}
	}
	if len(claims) > 0 {
		verdicts, err := g.opt.Auth.VerifyJoinTokens(ctx, claims)
		if err != nil {
			return nil, err
		}
		for n, v := range verdicts {
			out[of[n]] = authenticated{v.Tenant, v.Executor, v.NoJobs, v.Err}
		}
	}
	return out, g.refuseDenied(ctx, list, out)
}

func (g *Gateway) refuseDenied(ctx context.Context, list []credential, out []authenticated) error {
	if g.opt.Denials == nil {
		return nil
	}
	var in []domain.ExecutorIdentity
	var of []int // the index of each identity
	for i, k := range list {
		if out[i].err == nil {
			k.who.Tenant, k.who.Executor = out[i].tenant, out[i].executor
			in, of = append(in, k.who), append(of, i)
		}
	}
	if len(in) == 0 {
		return nil
	}
	denied, err := g.opt.Denials.Denied(ctx, in)
	if err != nil {
		return err
	}
	for n, no := range denied {
		if no != nil {
			out[of[n]] = authenticated{err: no}
		}
	}
	return nil
}
