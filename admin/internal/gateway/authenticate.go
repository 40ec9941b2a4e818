package gateway

import (
	"context"
	"crypto/x509"

	"golang.org/x/sync/semaphore"

	"github.com/carillon-sched/carillon/admin/internal/batch"
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

// verifier finds out who a peer is, and issues certificates.
type verifier struct {
	// fixed after construction
	auth            Authenticator
	certificates    Certificates // nil: only join tokens count
	denials         Denials      // nil: nobody is denied
	admission       *admission
	authentications *batch.Calls[credential, authenticated]
	lookups         *semaphore.Weighted // one per executor, shared with inventories
}

// authenticate finds out who the peer is: by its certificate when it shows one
// that counts, else by its join token. What it says of itself must agree.
func (vf *verifier) authenticate(ctx context.Context, p *peer, shown *x509.Certificate) error {
	if vf.authentications.Waiting() > maxAuthenticating {
		return vf.admission.errOverloaded()
	}
	k := credential{
		claim: domain.JoinClaim{Secret: p.hello.JoinToken, BootID: p.hello.BootId, Executor: p.hello.Executor},
		who:   domain.ExecutorIdentity{BootID: p.hello.BootId},
	}
	if who, ok := p.local.prove(p); ok {
		k.proven, k.who = true, who
	} else if shown != nil && vf.certificates != nil {
		m, err := vf.certified(ctx, p, shown)
		if err != nil {
			return err
		}
		k.proven, k.who = true, m
	}
	v, err := vf.authentications.Do(ctx, k)
	switch {
	case err != nil:
		return err
	case v.err != nil:
		return v.err
	case !k.proven && vf.certificates != nil && vf.certificates.Required() && p.hello.Purpose != proto.Purpose_PURPOSE_ENROLL:
		return domain.Errorf(codeUncertified, "this admin wants a certificate: enroll with the join token, and connect with what it gives (newer executor SDKs do)")
	}
	p.tenant, p.executor, p.noJobs, p.until, p.serial = v.tenant, v.executor, v.noJobs, k.who.Until, k.who.Serial
	return nil
}

// certified checks that the hello says what the certificate does.
func (vf *verifier) certified(ctx context.Context, p *peer, shown *x509.Certificate) (domain.ExecutorIdentity, error) {
	if vf.lookups.Acquire(ctx, 1) != nil {
		return domain.ExecutorIdentity{}, domain.Errorf(domain.CodeUnavailable, "too many executors come in at once; try again")
	}
	defer vf.lookups.Release(1)
	m, err := vf.certificates.Verify(ctx, shown)
	if err != nil {
		return m, err
	}
	if m.BootID != p.hello.BootId {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate is another process's")
	}
	named, err := vf.certificates.Named(ctx, m, p.hello.Executor)
	if domain.Is(err, domain.CodeNotFound) {
		return m, domain.Errorf(domain.CodeBadCertificate, "the certificate's executor no longer exists")
	}
	if err == nil && !named {
		err = domain.Errorf(domain.CodeDenied, "the certificate is for another executor than %q", p.hello.Executor)
	}
	return m, err
}

// authenticateAll asks about tokens first, and then whether somebody is denied.
func (vf *verifier) authenticateAll(ctx context.Context, list []credential) ([]authenticated, error) {
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
		verdicts, err := vf.auth.VerifyJoinTokens(ctx, claims)
		if err != nil {
			return nil, err
		}
		for n, v := range verdicts {
			out[of[n]] = authenticated{v.Tenant, v.Executor, v.NoJobs, v.Err}
		}
	}
	return out, vf.refuseDenied(ctx, list, out)
}

func (vf *verifier) refuseDenied(ctx context.Context, list []credential, out []authenticated) error {
	if vf.denials == nil {
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
	denied, err := vf.denials.Denied(ctx, in)
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
