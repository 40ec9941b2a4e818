package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
	"github.com/carillon-sched/carillon/proto"
)

// certified is an admin that lets nobody in without a certificate.
type certified struct {
	*fakeadmin.Admin
	life     atomic.Int64 // of the certificates, in nanoseconds
	distrust atomic.Bool  // refuse the next certificate that is shown
	client   *tls.Config
}

func startCertified(t *testing.T) *certified {
	t.Helper()
	server, pool := authority(t)
	authority, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &certified{client: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	a.life.Store(int64(24 * time.Hour))
	a.Admin = &fakeadmin.Admin{
		TLS: &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12},
		Refuse: func(h *proto.ClientHello) *proto.Error {
			switch {
			case h.GetJoinToken() == "" && a.distrust.CompareAndSwap(true, false):
				return &proto.Error{Code: "bad_certificate"}
			case h.GetJoinToken() == "" || h.GetPurpose() == proto.Purpose_PURPOSE_ENROLL:
				return nil
			}
			return &proto.Error{Code: "certificate_required"}
		},
		Enroll: func(h *proto.ClientHello) []byte {
			csr, err := x509.ParseCertificateRequest(h.GetCsr())
			if err != nil || csr.CheckSignature() != nil {
				return nil
			}
			now := time.Now()
			template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now, NotAfter: now.Add(time.Duration(a.life.Load()))}
			der, _ := x509.CreateCertificate(rand.Reader, template, template, csr.PublicKey, authority)
			return der
		},
	}
	startAdmin(t, a.Admin)
	return a
}

// kinds are the purposes of the hellos, those with a token marked.
func kinds(s fakeadmin.Seen) (out []string) {
	for _, h := range s.Hellos {
		kind := map[proto.Purpose]string{1: "control", 2: "logs", 3: "enroll"}[h.GetPurpose()]
		if h.GetJoinToken() != "" {
			kind += " with token"
		}
		out = append(out, kind)
	}
	return out
}

// TestACertificateIsAskedFor when the admin wants one; from then on it speaks
// for the process, and the token is not sent any more.
func TestACertificateIsAskedFor(t *testing.T) {
	a := startCertified(t)
	f := startFleet(t, func(o *Options) { o.Addresses, o.TLS = []string{a.Address()}, a.client })
	f.events.waitUp(t, 1)
	conn, err := f.DialLogs(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	seen := saw(t, a.Admin, func(s fakeadmin.Seen) bool { return s.LogConns == 1 && s.Sessions == 1 })
	require.Equal(t, []string{"control with token", "enroll with token", "control", "logs"}, kinds(seen))
	require.NotContains(t, f.logs.String(), "level=WARN")

	a.Sessions()[0].Cut()
	seen = saw(t, a.Admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	require.Equal(t, []string{"control"}, kinds(seen)[4:])
}

func TestACertificateIsRenewed(t *testing.T) {
	a := startCertified(t)
	a.life.Store(int64(2 * time.Second))
	f := startFleet(t, func(o *Options) { o.Addresses, o.TLS = []string{a.Address()}, a.client })
	seen := saw(t, a.Admin, func(s fakeadmin.Seen) bool { return len(s.Hellos) >= 5 })
	require.Equal(t, []string{"control with token", "enroll with token", "control", "enroll", "enroll"}, kinds(seen)[:5])
	require.Zero(t, seen.Ended, "the session goes on")
	f.events.waitUp(t, 1)
}

// TestACertificateThatDoesNotCountAnyMore is given up for the token.
func TestACertificateThatDoesNotCountAnyMore(t *testing.T) {
	a := startCertified(t)
	f := startFleet(t, func(o *Options) { o.Addresses, o.TLS = []string{a.Address()}, a.client })
	f.events.waitUp(t, 1)
	saw(t, a.Admin, func(s fakeadmin.Seen) bool { return s.Sessions == 1 })
	a.distrust.Store(true)
	a.Sessions()[0].Cut()
	seen := saw(t, a.Admin, func(s fakeadmin.Seen) bool { return s.Sessions == 2 })
	require.Equal(t, []string{"control", "control with token", "enroll with token", "control"}, kinds(seen)[3:])
}

// TestAnOfferThatCannotBeTaken keeps nobody out.
func TestAnOfferThatCannotBeTaken(t *testing.T) {
	server, pool := authority(t)
	a := startAdmin(t, &fakeadmin.Admin{
		TLS: &tls.Config{Certificates: []tls.Certificate{server}}, Offer: true,
		Refuse: func(h *proto.ClientHello) *proto.Error {
			if h.GetPurpose() == proto.Purpose_PURPOSE_ENROLL {
				return &proto.Error{Code: "unavailable"}
			}
			return nil
		},
	})
	f := startFleet(t, func(o *Options) { o.Addresses, o.TLS = []string{a.Address()}, &tls.Config{RootCAs: pool} })
	f.events.waitUp(t, 1)
	require.Contains(t, f.logs.String(), "this process got none")
	require.NotContains(t, f.logs.String(), "trying again")
}

func TestCertificatesNeedTLS(t *testing.T) {
	a := startAdmin(t, &fakeadmin.Admin{Refuse: func(*proto.ClientHello) *proto.Error { return &proto.Error{Code: "certificate_required"} }})
	f := startFleet(t, to(a.Address()))
	require.Eventually(t, func() bool { return f.Health() != nil && f.logs.String() != "" }, patience, time.Millisecond)
	require.Contains(t, f.logs.String(), "set Config.TLS")
}

func TestBadgeChecksWhatItIsGiven(t *testing.T) {
	b := newBadge()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	_, err = b.take([]byte("noise"), own, time.Now())
	require.Error(t, err)
	server, _ := authority(t)
	_, err = b.take(server.Certificate[0], own, time.Now())
	require.ErrorContains(t, err, "another key")
	require.Nil(t, b.current())
	key := server.PrivateKey.(*ecdsa.PrivateKey)
	_, err = b.take(server.Certificate[0], key, time.Now().AddDate(-400, 0, 0))
	require.NoError(t, err)
	require.Nil(t, b.current(), "it is over, by our own clock")
	_, err = b.take(server.Certificate[0], key, time.Now())
	require.NoError(t, err)
	require.NotNil(t, b.current())
	b.drop(&tls.Certificate{})
	require.NotNil(t, b.current(), "another one was refused")
}
