package session

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	randv2 "math/rand/v2"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// badge is the certificate of this process, which the admin's own authority
// gave it for its join token. It is kept in memory only: the next process is
// somebody else, and has to come with a token again. It is safe for concurrent use.
type badge struct {
	asking sync.Mutex // held while a certificate is asked for; before mu

	mu     sync.Mutex
	shown  *tls.Certificate // guarded by mu; nil: there is none
	renew  time.Time        // guarded by mu: when to ask for the next one
	ends   time.Time        // guarded by mu
	gained chan struct{}    // guarded by mu: closed and replaced with each certificate
}

func newBadge() *badge { return &badge{gained: make(chan struct{})} }

// current returns the certificate while it counts. Its time is measured from
// when it came, since the two clocks may differ.
func (b *badge) current() *tls.Certificate {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown != nil && time.Now().Before(b.ends) {
		return b.shown
	}
	return nil
}

// drop forgets the certificate, which an admin does not believe.
func (b *badge) drop(refused *tls.Certificate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == refused {
		b.shown = nil
	}
}

// take keeps a certificate. It is renewed after two thirds of its life, each
// process at a moment of its own.
func (b *badge) take(der []byte, key *ecdsa.PrivateKey, now time.Time) (*x509.Certificate, error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, errors.New("the certificate is for another key")
	}
	life := leaf.NotAfter.Sub(leaf.NotBefore)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.shown = &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
	b.renew = now.Add(time.Duration(float64(life) * (0.6 + randv2.Float64()/10)))
	b.ends = now.Add(life - life/100)
	close(b.gained)
	b.gained = make(chan struct{})
	return leaf, nil
}

// due returns when the certificate has to be renewed; zero: there is none.
// changed is closed when there is a new one.
func (b *badge) due() (at time.Time, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil {
		return time.Time{}, b.gained
	}
	return b.renew, b.gained
}

// wear lets secure show the certificate to admins that ask for one; without it
// whatever the application has configured. used is called with what was shown.
func (b *badge) wear(secure *tls.Config, used func(*tls.Certificate)) {
	own, ask := secure.Certificates, secure.GetClientCertificate
	secure.ClientSessionCache = nil // a resumed session shows the certificate of the one before
	secure.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if c := b.current(); c != nil {
			used(c)
			return c, nil
		}
		if ask != nil {
			return ask(r)
		}
		for i := range own {
			if r.SupportsCertificate(&own[i]) == nil {
				return &own[i], nil
			}
		}
		return &tls.Certificate{}, nil // shows none
	}
}

// wantsCertificate reports whether an answer asks for a certificate.
func wantsCertificate(hello *proto.ServerHello, err error) bool {
	if err == nil {
		return hello.GetEnroll()
	}
	var refused *RefusedError
	ok := errors.As(err, &refused)
	return ok && refused.Code == "certificate_required"
}

// enroll asks the admin at address for a certificate: with the one before while
// it counts, else with the join token. Only one question is under way; who
// waited for it has its answer.
func (f *Fleet) enroll(ctx context.Context, address string, before *tls.Certificate) error {
	if f.options.TLS == nil {
		return errors.New("the admin wants a certificate, and gives them over TLS only: set Config.TLS")
	}
	f.badge.asking.Lock()
	defer f.badge.asking.Unlock()
	if c := f.badge.current(); c != nil && c != before {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return err
	}
	conn, shown, err := f.dial(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	hello := f.hello(proto.Purpose_PURPOSE_ENROLL, 0, shown)
	hello.Csr = csr
	reply, err := f.greet(ctx, conn, hello, shown)
	if err != nil {
		return fmt.Errorf("ask for a certificate: %w", err)
	}
	leaf, err := f.badge.take(reply.GetCertificate(), key, time.Now())
	if err != nil {
		return fmt.Errorf("ask for a certificate: %w", err)
	}
	f.options.Logger.Info("the admin gave this process a certificate", "serial", leaf.SerialNumber.Text(16), "until", leaf.NotAfter)
	return nil
}

// renewEvery is the pause between tries to renew a certificate.
const renewEvery = time.Minute

// keepBadge renews the certificate in time until ctx ends. Sessions go on with
// the old one, and end before it does.
func (f *Fleet) keepBadge(ctx context.Context) {
	for {
		at, changed := f.badge.due()
		var later <-chan time.Time
		if !at.IsZero() {
			later = time.After(max(0, time.Until(at)))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			continue
		case <-later:
		}
		for !f.renew(ctx) {
			select {
			case <-ctx.Done():
				return
			case <-time.After(renewEvery/2 + randv2.N(renewEvery)):
			}
		}
	}
}

// renew asks each node once; true when one has answered, or there is nothing
// to renew any more.
func (f *Fleet) renew(ctx context.Context) bool {
	before := f.badge.current()
	if before == nil {
		return true // the next connection asks for one, with the token
	}
	for _, l := range f.current() {
		err := f.enroll(ctx, l.address, before)
		if err == nil {
			return true
		}
		f.options.Logger.Warn("the certificate could not be renewed", "address", l.address, "err", err)
	}
	return false
}
