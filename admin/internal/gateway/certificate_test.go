package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/proto"
)

// fakeTrust believes certificates by their serial numbers.
type fakeTrust struct {
	required bool
	known    map[string]domain.ExecutorIdentity
	denied   atomic.Pointer[string] // a subject
}

func (f *fakeTrust) Issue(_ context.Context, who domain.ExecutorIdentity, csr []byte) ([]byte, error) {
	if len(csr) == 0 {
		return nil, domain.Errorf(domain.CodeInvalid, "no request")
	}
	return []byte("certificate of " + who.BootID), nil
}

func (f *fakeTrust) Verify(_ context.Context, shown *x509.Certificate) (domain.ExecutorIdentity, error) {
	who, ok := f.known[shown.SerialNumber.String()]
	if !ok {
		return who, domain.Errorf(domain.CodeBadCertificate, "the certificate does not count here")
	}
	who.Serial, who.Until = shown.SerialNumber.String(), shown.NotAfter
	return who, nil
}

func (f *fakeTrust) Named(_ context.Context, who domain.ExecutorIdentity, name string) (bool, error) {
	if who.Executor != 2 {
		return false, domain.Errorf(domain.CodeNotFound, "none")
	}
	return name == "shop", nil
}

func (f *fakeTrust) Required() bool { return f.required }

func (f *fakeTrust) Denied(_ context.Context, list []domain.ExecutorIdentity) ([]error, error) {
	out := make([]error, len(list))
	d := f.denied.Load()
	for i, who := range list {
		if d != nil && (*d == who.BootID || *d == who.Serial) {
			out[i] = domain.Errorf(domain.CodeInstanceDenied, "an administrator has denied this")
		}
	}
	return out, nil
}

// clientCertificate is self-signed; only its serial number counts here.
func clientCertificate(t *testing.T, serial int64) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type secureBench struct {
	*bench
	trust  *fakeTrust
	client *tls.Config
}

func startSecure(t *testing.T, required bool) *secureBench {
	t.Helper()
	server, pool := testenv.Certificate(t)
	b := &secureBench{
		trust: &fakeTrust{required: required, known: map[string]domain.ExecutorIdentity{
			"1": {Tenant: 1, Executor: 2, BootID: bootA}, "2": {Tenant: 1, Executor: 99, BootID: bootA},
		}},
		client: &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS13},
	}
	b.bench = startWith(t, func(o *Options) {
		o.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS13}
		o.Certificates, o.Denials = b.trust, b.trust
	})
	return b
}

// dialTLS is dial with TLS, and with a certificate if serial is not 0.
func (b *secureBench) dialTLS(h *proto.ClientHello, serial int64) (net.Conn, *proto.ServerHello) {
	b.t.Helper()
	config := b.client.Clone()
	if serial != 0 {
		config.Certificates = []tls.Certificate{clientCertificate(b.t, serial)}
	}
	conn, err := tls.Dial("tcp", b.addr, config)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	require.NoError(b.t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = conn.Write([]byte(proto.Preface))
	require.NoError(b.t, err)
	require.NoError(b.t, proto.WriteFrame(conn, h, proto.MaxFrame))
	var answer proto.ServerHello
	require.NoError(b.t, proto.ReadHello(conn, &answer))
	return conn, &answer
}

func TestCertificatesAtTheDoor(t *testing.T) {
	b := startSecure(t, true)
	enroll := func(token string) *proto.ClientHello {
		h := hello(token, bootA)
		h.Purpose, h.Csr = proto.Purpose_PURPOSE_ENROLL, []byte("please")
		return h
	}
	noRequest := enroll(goodToken)
	noRequest.Csr = nil
	other := hello("", bootA)
	other.Executor = "payments"
	for name, c := range map[string]struct {
		hello  *proto.ClientHello
		serial int64
		code   string // empty: let in
	}{
		"a token alone":                        {hello(goodToken, bootA), 0, "certificate_required"},
		"a token for a certificate":            {enroll(goodToken), 0, ""},
		"a wrong token for a certificate":      {enroll("cjt_wrong"), 0, "bad_token"},
		"no request":                           {noRequest, 0, "malformed"},
		"a certificate alone":                  {hello("", bootA), 1, ""},
		"a certificate for the next one":       {enroll(""), 1, ""},
		"of another process":                   {hello("", bootB), 1, "bad_certificate"},
		"of another process, and a good token": {hello(goodToken, bootB), 1, "bad_certificate"},
		"for another executor":                 {other, 1, "wrong_executor"},
		"of an executor that is gone":          {hello("", bootA), 2, "bad_certificate"},
		"not one of ours":                      {hello(goodToken, bootA), 77, "bad_certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, answer := b.dialTLS(c.hello, c.serial)
			require.Equal(t, c.code, answer.Error.GetCode())
			if c.code == "" && c.hello.Purpose == proto.Purpose_PURPOSE_ENROLL {
				require.Equal(t, "certificate of "+bootA, string(answer.Certificate))
				require.Zero(t, answer.SessionId)
			}
			require.False(t, answer.Enroll)
		})
	}
}

func TestCertificatesMayBeOffered(t *testing.T) {
	b := startSecure(t, false)
	_, answer := b.dialTLS(hello(goodToken, bootA), 0)
	require.Nil(t, answer.Error)
	require.True(t, answer.Enroll, "a newer SDK asks for one; an older one goes on")
	_, answer = b.dialTLS(hello("", bootA), 1)
	require.Nil(t, answer.Error)
	require.False(t, answer.Enroll)
}

func TestWithoutAnAuthorityNobodyEnrolls(t *testing.T) {
	b := start(t)
	h := hello(goodToken, bootA)
	h.Purpose, h.Csr = proto.Purpose_PURPOSE_ENROLL, []byte("please")
	_, answer := b.dial(h)
	require.Equal(t, "malformed", answer.Error.GetCode())
	_, answer = b.dial(hello(goodToken, bootA))
	require.False(t, answer.Enroll)
}

// TestTheDenied stay out, whatever they show, and living sessions end.
func TestTheDenied(t *testing.T) {
	b := startSecure(t, false)
	conn, answer := b.dialTLS(hello("", bootA), 1)
	b.joinOver(conn, answer, &proto.Register{Slots: 1})
	s := get(t, b.rec.joined)
	conn, answer = b.dialTLS(hello(goodToken, bootB), 0)
	b.joinOver(conn, answer, &proto.Register{Slots: 1})
	byToken := get(t, b.rec.joined)

	require.Empty(t, b.gate.EndDenied(domain.Denial{TenantID: 9, Executor: 2, Kind: domain.DenyInstance, Subject: bootA}))
	require.Empty(t, b.gate.EndDenied(domain.Denial{TenantID: 1, Executor: 2, Kind: domain.DenyCertificate, Subject: ""}), "who has none is not meant")
	require.Equal(t, []domain.InstanceID{s.Instance}, b.gate.EndDenied(domain.Denial{TenantID: 1, Executor: 2, Kind: domain.DenyCertificate, Subject: "1"}))
	require.Same(t, s, get(t, b.rec.left))
	require.ErrorIs(t, s.err(), errDenied)
	require.Equal(t, []domain.InstanceID{byToken.Instance}, b.gate.EndDenied(domain.Denial{TenantID: 1, Executor: 2, Kind: domain.DenyInstance, Subject: bootB}))
	require.Same(t, byToken, get(t, b.rec.left))

	for _, subject := range []string{"1", bootA} {
		b.trust.denied.Store(&subject)
		_, answer = b.dialTLS(hello("", bootA), 1)
		require.Equal(t, "denied", answer.Error.GetCode())
		require.EqualValues(t, -1, answer.Error.GetRetryAfterMs())
	}
	_, answer = b.dialTLS(hello(goodToken, bootA), 0)
	require.Equal(t, "denied", answer.Error.GetCode(), "nor with the token")
}
