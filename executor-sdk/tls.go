package executor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says how to check the admin's certificate, and which one to show. The
// zero value checks against the system's roots. Nothing switches the check off.
type TLS struct {
	// CAFile holds the certificates (PEM) of the authorities to trust, instead
	// of the system's. CARILLON_EXECUTOR_TLS_CA
	CAFile string
	// CertFile and KeyFile hold this executor's own certificate and key (PEM),
	// for admins that ask for one. CARILLON_EXECUTOR_TLS_CERT, …_TLS_KEY
	CertFile, KeyFile string
	// ServerName is the name to expect in the admin's certificate. Default:
	// the host part of the address. CARILLON_EXECUTOR_TLS_SERVER_NAME
	ServerName string
	// Config is used instead of all of the above when it is set.
	Config *tls.Config
}

// config reads the files. It returns nil for nil: plain TCP.
func (t *TLS) config() (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	if t.Config != nil {
		return t.Config.Clone(), nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read TLS authorities: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read TLS authorities: %s holds no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("TLS: CertFile and KeyFile belong together")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read TLS key pair: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
