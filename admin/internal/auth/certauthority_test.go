package auth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/secret"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// trustStore keeps authorities and denials in memory.
type trustStore struct {
	TrustStore // anything that is not written below must not be called

	mu          sync.Mutex
	authorities []domain.Authority // guarded by mu; newest first
	denials     []domain.Denial    // guarded by mu
	broken      error              // guarded by mu
	marked      []string           // by MarkDenied
}

func (s *trustStore) CreateAuthority(_ context.Context, a domain.Authority) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.authorities) > 0 && s.authorities[0].Epoch >= a.Epoch {
		return domain.Errorf(domain.CodeConflict, "taken")
	}
	s.authorities = append([]domain.Authority{a}, s.authorities...)
	return nil
}

func (s *trustStore) ListAuthorities(context.Context) ([]domain.Authority, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]domain.Authority(nil), s.authorities...), s.broken
}

func (s *trustStore) FindExecutor(_ context.Context, tenant domain.TenantID, id domain.ExecutorID) (domain.Executor, error) {
	if tenant != 1 || id != 2 {
		return domain.Executor{}, domain.Errorf(domain.CodeNotFound, "no executor")
	}
	return domain.Executor{ID: id, TenantID: tenant, Name: "shop"}, nil
}

func (s *trustStore) FindExecutorByName(_ context.Context, tenant domain.TenantID, name string) (domain.Executor, error) {
	id, known := map[string]domain.ExecutorID{"formerly-shop": 2, "other": 3}[name]
	if !known {
		return domain.Executor{}, domain.Errorf(domain.CodeNotFound, "no executor")
	}
	return domain.Executor{ID: id, TenantID: tenant, Name: "shop"}, nil
}

func (s *trustStore) FindDenials(_ context.Context, list []store.DenialQuery) ([]*domain.Denial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, s.broken
	}
	out := make([]*domain.Denial, len(list))
	for i, q := range list {
		for _, d := range s.denials {
			if d.TenantID == q.Tenant && d.Executor == q.Executor && slices.Contains(q.Subjects, d.Subject) {
				out[i] = &d
			}
		}
	}
	return out, nil
}

func (s *trustStore) MarkDenied(_ context.Context, tenant domain.TenantID, executor domain.ExecutorID, instances []domain.InstanceID) error {
	s.marked = append(s.marked, fmt.Sprint(tenant, executor, instances))
	return s.broken
}

func (s *trustStore) ListDenialsSince(_ context.Context, since time.Time) (time.Time, []domain.Denial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []domain.Denial
	for _, d := range s.denials {
		if !d.CreatedAt.Before(since) {
			out = append(out, d)
		}
	}
	return time.UnixMilli(1_800_000_000_000), out, s.broken
}

func sealer(t *testing.T) *secret.Box {
	t.Helper()
	box, err := secret.New(make([]byte, secret.KeySize))
	require.NoError(t, err)
	return box
}

func openAuthority(t *testing.T, s *trustStore, cluster string) *Authority {
	t.Helper()
	id := int64(0)
	a, err := OpenAuthority(t.Context(), AuthorityOptions{
		Store: s, Sealer: sealer(t), ClusterID: cluster, NewID: func() int64 { id++; return id }, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return a
}

var process = domain.ExecutorIdentity{Tenant: 1, Executor: 2, BootID: "0123456789abcdef0123456789abcdef"}

func request(t *testing.T, key any) []byte {
	t.Helper()
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	require.NoError(t, err)
	return csr
}

func ecKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

func issued(t *testing.T, a *Authority, who domain.ExecutorIdentity) *x509.Certificate {
	t.Helper()
	der, err := a.Issue(t.Context(), who, request(t, ecKey(t, elliptic.P256())))
	require.NoError(t, err)
	out, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return out
}

func TestCertificatesNameOneProcess(t *testing.T) {
	a := openAuthority(t, &trustStore{}, "c1")
	c := issued(t, a, process)
	require.Equal(t, "carillon://c1/tenant/1/executor/2/instance/0123456789abcdef0123456789abcdef", c.URIs[0].String())
	require.False(t, c.IsCA)
	require.Equal(t, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, c.ExtKeyUsage)
	who, err := a.Verify(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, process.BootID, who.BootID)
	require.Equal(t, process.Tenant, who.Tenant)
	require.Equal(t, process.Executor, who.Executor)
	require.Equal(t, c.SerialNumber.Text(16), who.Serial)
	require.Equal(t, c.NotAfter, who.Until)
	for name, want := range map[string]bool{"shop": true, "formerly-shop": true, "other": false, "nobody": false} {
		named, err := a.Named(t.Context(), who, name)
		require.NoError(t, err)
		require.Equal(t, want, named, name)
	}
	require.NotEqual(t, c.SerialNumber, issued(t, a, process).SerialNumber)
}

func TestForeignCertificatesDoNotCount(t *testing.T) {
	store := &trustStore{}
	a := openAuthority(t, store, "c1")
	for name, c := range map[string]*x509.Certificate{
		"another authority":   issued(t, openAuthority(t, &trustStore{}, "c1"), process),
		"the authority's own": a.signer.certificate,
		"another cluster":     issued(t, &Authority{opt: AuthorityOptions{ClusterID: "c2"}, signer: a.signer}, process),
		"no tenant":           issued(t, a, domain.ExecutorIdentity{Executor: 2, BootID: process.BootID}),
		"a name with a slash": issued(t, a, domain.ExecutorIdentity{Tenant: 1, Executor: 2, BootID: "x/../y"}),
	} {
		_, err := a.Verify(t.Context(), c)
		require.Equal(t, domain.CodeBadCertificate, domain.CodeOf(err), "%s: %v", name, err)
	}
}

func TestCertificateRequestsAreChecked(t *testing.T) {
	a := openAuthority(t, &trustStore{}, "c1")
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	good := request(t, ecKey(t, elliptic.P256()))
	forged := append([]byte(nil), good...)
	forged[len(forged)-1] ^= 1
	for name, csr := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "RSA": request(t, big), "another curve": request(t, ecKey(t, elliptic.P384())), "not signed by its key": forged,
	} {
		_, err := a.Issue(t.Context(), process, csr)
		require.Equal(t, domain.CodeInvalid, domain.CodeOf(err), "%s: %v", name, err)
	}
}

// TestNodesShareTheAuthority: what one issues the other believes, also when it
// was made after the other had looked.
func TestNodesShareTheAuthority(t *testing.T) {
	store := &trustStore{}
	first, second := openAuthority(t, store, "c1"), openAuthority(t, store, "c1")
	require.Len(t, store.authorities, 1)
	_, err := second.Verify(t.Context(), issued(t, first, process))
	require.NoError(t, err)

	// The first one is about to end: its successor signs, both are believed.
	old := issued(t, first, process)
	store.authorities[0].ExpiresAt = time.Now().Add(authorityRenewal - time.Hour)
	require.NoError(t, first.refresh(t.Context(), time.Now()))
	require.Len(t, store.authorities, 2)
	fresh := issued(t, first, process)
	require.NotEqual(t, old.AuthorityKeyId, fresh.AuthorityKeyId)
	for _, node := range []*Authority{second, first} {
		for _, c := range []*x509.Certificate{fresh, old} {
			_, err := node.Verify(t.Context(), c)
			require.NoError(t, err)
		}
	}
	require.NoError(t, second.refresh(t.Context(), time.Now()))
	require.Len(t, store.authorities, 2, "one of them makes it")
}

func TestTheAuthoritysKeyIsSealed(t *testing.T) {
	store := &trustStore{}
	a := openAuthority(t, store, "c1")
	plain, err := x509.MarshalPKCS8PrivateKey(a.signer.key)
	require.NoError(t, err)
	require.NotContains(t, string(store.authorities[0].SealedKey), string(plain[len(plain)-32:]))
	store.authorities[0].ID++ // moved to another place
	require.ErrorIs(t, a.refresh(t.Context(), time.Now()), secret.ErrUnreadable)
}

func TestDenials(t *testing.T) {
	boom := errors.New("no database")
	store := &trustStore{denials: []domain.Denial{
		{ID: 1, TenantID: 1, Executor: 2, Kind: domain.DenyInstance, Subject: "b00", CreatedAt: time.UnixMilli(1_700_000_000_000)},
		{ID: 2, TenantID: 1, Executor: 2, Kind: domain.DenyCertificate, Subject: "5e", CreatedAt: time.UnixMilli(1_800_000_000_000)},
	}}
	var ended []int64
	d := NewDenials(store, func(d domain.Denial) []domain.InstanceID {
		ended = append(ended, d.ID)
		return []domain.InstanceID{domain.InstanceID(40 + d.ID)}[:d.ID%2] // the second has no session here
	}, slog.New(slog.DiscardHandler))
	for name, c := range map[string]struct {
		tenant       domain.TenantID
		boot, serial string
		denied       bool
	}{
		"the boot":          {1, "b00", "", true},
		"its certificate":   {1, "b01", "5e", true},
		"another process":   {1, "b01", "5f", false},
		"with a token":      {1, "b01", "", false},
		"of another tenant": {3, "b00", "5e", false},
	} {
		errs, err := d.Denied(t.Context(), []domain.ExecutorIdentity{
			{Tenant: 1, Executor: 2, BootID: "b01"}, {Tenant: c.tenant, Executor: 2, BootID: c.boot, Serial: c.serial},
		})
		require.NoError(t, err, name)
		require.NoError(t, errs[0], "who comes along with %s", name)
		if c.denied {
			require.Equal(t, domain.CodeInstanceDenied, domain.CodeOf(errs[1]), name)
		} else {
			require.NoError(t, errs[1], name)
		}
	}
	require.NoError(t, d.follow(t.Context()))
	require.Equal(t, []int64{1, 2}, ended)
	require.Equal(t, []string{"1 2 [41]"}, store.marked)
	require.NoError(t, d.follow(t.Context()))
	require.Equal(t, []int64{1, 2}, ended, "each is followed once")
	store.denials = append(store.denials, domain.Denial{ID: 3, CreatedAt: time.UnixMilli(1_799_999_990_000)})
	require.NoError(t, d.follow(t.Context()))
	require.Equal(t, []int64{1, 2, 3}, ended, "one that became visible late")
	store.broken = boom
	require.ErrorIs(t, d.follow(t.Context()), boom)
	_, err := d.Denied(t.Context(), []domain.ExecutorIdentity{{Tenant: 1, Executor: 2, BootID: "b01"}})
	require.ErrorIs(t, err, boom, "without an answer nobody comes in")
}
