package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"log/slog"
	"math/big"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// CertificateTTL is how long an executor's certificate is valid. The SDK
	// asks for the next one when two thirds of it have passed.
	CertificateTTL = 24 * time.Hour
	// backdated lets a certificate begin a little earlier, for clocks that lag.
	backdated = 5 * time.Minute
	// authorityTTL is how long an authority is believed; a successor signs when
	// authorityRenewal is left.
	authorityTTL     = 5 * 365 * 24 * time.Hour
	authorityRenewal = 90 * 24 * time.Hour
	// authorityCheck is how often a node looks whether there is a newer one.
	authorityCheck = time.Hour
)

// Sealer keeps the authorities' keys secret at rest.
type Sealer interface {
	Seal(tenant domain.TenantID, purpose string, id int64, plain []byte) ([]byte, error)
	Open(tenant domain.TenantID, purpose string, id int64, sealed []byte) ([]byte, error)
}

// TrustStore is what an Authority needs of the database.
type TrustStore interface {
	store.Trust
	FindExecutor(ctx context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error)
	FindExecutorByName(ctx context.Context, tenant domain.TenantID, name string) (domain.Executor, error)
}

// AuthorityOptions configures an Authority.
type AuthorityOptions struct {
	Store     TrustStore
	Sealer    Sealer
	ClusterID string
	// Required: a join token alone opens no session.
	Required bool
	NewID    func() int64
	Logger   *slog.Logger
}

// Authority issues executors' certificates and checks them. All nodes sign with
// the same key, which is sealed in the database. It is safe for concurrent use.
type Authority struct {
	opt    AuthorityOptions
	log    *slog.Logger
	reload *rate.Limiter // looks for an authority that a certificate names and we do not know

	mu     sync.RWMutex
	signer signer         // guarded by mu
	roots  *x509.CertPool // guarded by mu
}

type signer struct {
	epoch       int
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// OpenAuthority reads the authorities, and makes the first one or a successor
// when it is time for it.
func OpenAuthority(ctx context.Context, opt AuthorityOptions) (*Authority, error) {
	a := &Authority{opt: opt, log: opt.Logger.With("component", "authority"), reload: rate.NewLimiter(rate.Every(time.Second), 1)}
	if err := a.refresh(ctx, time.Now()); err != nil {
		return nil, fmt.Errorf("executors' certificates: %w", err)
	}
	return a, nil
}

// Run follows what other nodes do until ctx ends.
func (a *Authority) Run(ctx context.Context) {
	tick := time.NewTicker(authorityCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := a.refresh(ctx, time.Now()); err != nil {
			a.log.Warn("the authorities of executors' certificates could not be read", "err", err)
		}
	}
}

// refresh reads the authorities. It makes one when the newest is about to end;
// of several nodes that do so at once, one succeeds.
func (a *Authority) refresh(ctx context.Context, now time.Time) error {
	for try := 0; ; try++ {
		known, err := a.opt.Store.ListAuthorities(ctx)
		if err != nil {
			return err
		}
		epoch := 0
		if len(known) > 0 {
			if epoch = known[0].Epoch; known[0].ExpiresAt.Sub(now) > authorityRenewal {
				return a.use(known)
			}
		}
		err = a.create(ctx, epoch+1, now)
		if err != nil && (!domain.Is(err, domain.CodeConflict) || try > 3) {
			return err
		}
	}
}

func (a *Authority) create(ctx context.Context, epoch int, now time.Time) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: fmt.Sprintf("Carillon executors %s %d", a.opt.ClusterID, epoch)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(authorityTTL), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	id := a.opt.NewID()
	sealed, err := a.opt.Sealer.Seal(0, secret.PurposeExecutorAuthority, id, plain)
	if err != nil {
		return err
	}
	err = a.opt.Store.CreateAuthority(ctx, domain.Authority{
		ID: id, Epoch: epoch, Certificate: der, SealedKey: sealed, CreatedAt: now, ExpiresAt: template.NotAfter,
	})
	if err == nil {
		a.log.Info("made an authority for executors' certificates", "epoch", epoch, "expires_at", template.NotAfter)
	}
	return err
}

// use believes all of them and signs with the first.
func (a *Authority) use(known []domain.Authority) error {
	roots := x509.NewCertPool()
	var newest signer
	for i, one := range known {
		certificate, err := x509.ParseCertificate(one.Certificate)
		if err != nil {
			return fmt.Errorf("authority %d: %w", one.Epoch, err)
		}
		roots.AddCert(certificate)
		if i > 0 {
			continue
		}
		plain, err := a.opt.Sealer.Open(0, secret.PurposeExecutorAuthority, one.ID, one.SealedKey)
		if err != nil {
			return fmt.Errorf("authority %d: %w", one.Epoch, err)
		}
		key, err := x509.ParsePKCS8PrivateKey(plain)
		if err != nil {
			return fmt.Errorf("authority %d: %w", one.Epoch, err)
		}
		signing, ok := key.(*ecdsa.PrivateKey)
		if !ok {
			return fmt.Errorf("authority %d: the key is a %T", one.Epoch, key)
		}
		newest = signer{one.Epoch, certificate, signing}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.signer, a.roots = newest, roots
	return nil
}

// Required reports whether a session needs a certificate.
func (a *Authority) Required() bool { return a.opt.Required }

// Issue signs a request for one process. Of the request only the key counts,
// and that its sender has it. CodeInvalid: the request is at fault.
func (a *Authority) Issue(_ context.Context, who domain.ExecutorIdentity, csr []byte) ([]byte, error) {
	request, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		return nil, domain.Errorf(domain.CodeInvalid, "the certificate request cannot be read")
	}
	public, ok := request.PublicKey.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, domain.Errorf(domain.CodeInvalid, "the certificate request must be for an ECDSA key on P-256")
	}
	if err := request.CheckSignature(); err != nil {
		return nil, domain.Errorf(domain.CodeInvalid, "the certificate request is not signed by its key")
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	a.mu.RLock()
	signer := a.signer
	a.mu.RUnlock()
	return x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, URIs: []*url.URL{a.name(who)},
		NotBefore: now.Add(-backdated), NotAfter: now.Add(CertificateTTL), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, signer.certificate, public, signer.key)
}

// name is the URI in a certificate's subject alternative names:
// carillon://CLUSTER/tenant/ID/executor/ID/instance/BOOT, with the query noJobs
// for those that may declare none.
func (a *Authority) name(who domain.ExecutorIdentity) *url.URL {
	name := &url.URL{
		Scheme: "carillon", Host: a.opt.ClusterID,
		Path: fmt.Sprintf("/tenant/%d/executor/%d/instance/%s", who.Tenant, who.Executor, who.BootID),
	}
	if who.NoJobs {
		name.RawQuery = noJobs
	}
	return name
}

const noJobs = "noJobs"

// Verify says whose certificate it is. CodeBadCertificate: it is not one of
// ours, or over.
func (a *Authority) Verify(ctx context.Context, shown *x509.Certificate) (who domain.ExecutorIdentity, err error) {
	err = a.check(shown)
	if err != nil && a.reload.Allow() {
		// Another node may have signed with an authority that is new to us.
		if refreshErr := a.refresh(ctx, time.Now()); refreshErr != nil {
			return who, refreshErr
		}
		err = a.check(shown)
	}
	if err != nil {
		return who, domain.Errorf(domain.CodeBadCertificate, "the certificate does not count here: %w", err)
	}
	if who, err = a.identity(shown); err != nil {
		return who, domain.Errorf(domain.CodeBadCertificate, "the certificate names no process: %w", err)
	}
	return who, nil
}

func (a *Authority) check(shown *x509.Certificate) error {
	a.mu.RLock()
	roots := a.roots
	a.mu.RUnlock()
	_, err := shown.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}

func (a *Authority) identity(shown *x509.Certificate) (who domain.ExecutorIdentity, err error) {
	if len(shown.URIs) != 1 {
		return who, fmt.Errorf("it has %d names", len(shown.URIs))
	}
	name := shown.URIs[0]
	parts := strings.Split(name.Path, "/")
	if name.Scheme != "carillon" || name.Host != a.opt.ClusterID || len(parts) != 7 ||
		parts[1] != "tenant" || parts[3] != "executor" || parts[5] != "instance" {
		return who, fmt.Errorf("%q is none of this cluster", name)
	}
	if who.Tenant, err = domain.ParseID[domain.TenantID](parts[2]); err != nil {
		return who, err
	}
	if who.Executor, err = domain.ParseID[domain.ExecutorID](parts[4]); err != nil {
		return who, err
	}
	who.BootID, who.Serial, who.Until, who.NoJobs = parts[6], shown.SerialNumber.Text(16), shown.NotAfter, name.RawQuery == noJobs
	return who, nil
}

// Named reports whether the executor that a certificate is for has a name, or had it
// before.
func (a *Authority) Named(ctx context.Context, who domain.ExecutorIdentity, name string) (bool, error) {
	e, err := a.opt.Store.FindExecutor(ctx, who.Tenant, who.Executor)
	if err != nil || e.Name == name {
		return err == nil, err
	}
	other, err := a.opt.Store.FindExecutorByName(ctx, who.Tenant, name)
	if domain.Is(err, domain.CodeNotFound) {
		return false, nil
	}
	return other.ID == who.Executor, err
}

// newSerial is random, positive and of 127 bits at most.
func newSerial() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	return n.Add(n, big.NewInt(1)), nil
}
