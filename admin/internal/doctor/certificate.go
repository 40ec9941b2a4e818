package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/internal/spelling"
)

// renewWithin is how long before its end a certificate is worth a warning.
const renewWithin = 14 * 24 * time.Hour

// Certificate looks at a certificate and its key. names are those under which
// clients reach it; empty ones are left out.
func Certificate(certFile, keyFile string, now time.Time, names ...string) []Result {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return []Result{Fail("certificate_unusable", "Give a certificate and the key that belongs to it, both in PEM and readable for the server's user.",
			"%s with %s: %v", certFile, keyFile, err)}
	}
	leaf := pair.Leaf
	var out []Result
	switch until := leaf.NotAfter; {
	case now.After(until):
		out = append(out, Fail("certificate_expired", "Renew it and restart the node: it reads its certificate when it starts.",
			"%s has expired on %s", certFile, stamp(until)))
	case now.Before(leaf.NotBefore):
		out = append(out, Fail("certificate_not_yet_valid", "Look at this machine's clock, or wait.", "%s is valid from %s on only", certFile, stamp(leaf.NotBefore)))
	case until.Sub(now) < renewWithin:
		out = append(out, Warn("certificate_expires_soon", "Renew it and restart the node: it reads its certificate when it starts.",
			"%s expires on %s, in %s", certFile, stamp(until), days(until.Sub(now))))
	}
	for _, name := range names {
		if name != "" && leaf.VerifyHostname(name) != nil {
			out = append(out, Warn("certificate_of_another_name", "Use a certificate with this name, or an address whose name it has.",
				"%s is for %s, and clients are told to reach it as %s", certFile, namesOf(leaf), name))
		}
	}
	if info, err := os.Stat(keyFile); err == nil && info.Mode().Perm()&0o007 != 0 {
		out = append(out, Warn("key_readable", "Run chmod 640 "+keyFile+", with the server's group.", "every user of this machine can read %s (mode %04o)", keyFile, info.Mode().Perm()))
	}
	if len(out) == 0 {
		out = append(out, Passed("for %s, until %s, in %s", namesOf(leaf), stamp(leaf.NotAfter), days(leaf.NotAfter.Sub(now))))
	}
	return out
}

// Loaded looks whether who listens on the address, if anybody does, uses the
// certificate of the file: a node reads it when it starts. It returns nothing when
// all is well.
func Loaded(ctx context.Context, address, certFile, keyFile string) []Result {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil // Certificate says so
	}
	ours := pair.Leaf
	roots := x509.NewCertPool()
	roots.AddCert(ours)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "doctor.invalid", MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close() // nothing was said
		return nil
	}
	// The name fits no certificate, so that the handshake ends here, with what is used.
	used, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(used.UnverifiedCertificates) == 0 || used.UnverifiedCertificates[0].Equal(ours) {
		return nil
	}
	return []Result{Warn("certificate_not_loaded", "Restart the node: it reads its certificate when it starts.",
		"whoever listens on %s uses another certificate than that of %s, until %s", address, certFile, stamp(used.UnverifiedCertificates[0].NotAfter))}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

func days(d time.Duration) string {
	if d < 48*time.Hour {
		return spelling.Count(int(d.Hours()), "hour", "")
	}
	return spelling.Count(int(d.Hours()/24), "day", "")
}

func namesOf(c *x509.Certificate) string {
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		return "no name"
	}
	return strings.Join(names, ", ")
}
