package gateway

import (
	"context"
	"crypto/x509"
	"errors"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Certificates issues and checks the executors' certificates.
type Certificates interface {
	// Issue signs a request (DER); of who Serial and Until are not read.
	// domain.CodeInvalid: the request is at fault.
	Issue(ctx context.Context, who domain.ExecutorIdentity, csr []byte) (der []byte, err error)
	// Verify says whose certificate it is. domain.CodeBadCertificate: not one of ours,
	// or over.
	Verify(ctx context.Context, shown *x509.Certificate) (domain.ExecutorIdentity, error)
	// Named reports whether its executor has a name, or had it before;
	// domain.CodeNotFound: there is none any more.
	Named(ctx context.Context, who domain.ExecutorIdentity, name string) (bool, error)
	// Required reports whether a session needs a certificate.
	Required() bool
}

// Denials knows who may not connect, whatever it shows.
type Denials interface {
	// Denied returns, in the order of the list, domain.CodeInstanceDenied with the
	// reason for a boot that was denied, or a certificate's serial number if that
	// is not empty; domain.CodeExecutorDisabled for a new process of an executor that
	// is disabled. An error of its own is everybody's.
	Denied(ctx context.Context, list []domain.ExecutorIdentity) ([]error, error)
}

// enroll answers a request for a certificate.
func (vf *verifier) enroll(ctx context.Context, p *peer) ([]byte, error) {
	if vf.certificates == nil {
		return nil, domain.Errorf(domain.CodeInvalid, "this admin issues no certificates")
	}
	return vf.certificates.Issue(ctx, domain.ExecutorIdentity{Tenant: p.tenant, Executor: p.executor, BootID: p.hello.BootId, NoJobs: p.noJobs}, p.hello.Csr)
}

var errDenied = errors.New("it was denied by an administrator")

var errDisabled = errors.New("its executor is disabled")

// EndIdle ends the sessions of some executors whose instances run nothing, and counts
// them.
func (g *Gateway) EndIdle(of func(domain.TenantID, domain.ExecutorID) bool) (ended int) {
	for _, s := range g.registry.all() {
		if of(s.Tenant, s.Executor) && s.Slots.runsNothing() {
			s.close(errDisabled)
			ended++
		}
	}
	return ended
}

// runsNothing: neither what was offered here, nor what the last heartbeat tells of.
func (sl *Slots) runsNothing() bool {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	return len(sl.inflight) == 0 && sl.occupancy.Occupied() == 0
}

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
