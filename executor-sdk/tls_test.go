package executor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/internal/fakeadmin"
)

// writeCertificate makes a certificate for 127.0.0.1 that signs itself.
func writeCertificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return certFile, keyFile
}

// Both sides show a certificate, on the control and on the log connection.
func TestMutualTLS(t *testing.T) {
	serverCert, serverKey := writeCertificate(t)
	clientCert, clientKey := writeCertificate(t)
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	require.NoError(t, err)
	clients := x509.NewCertPool()
	text, err := os.ReadFile(clientCert)
	require.NoError(t, err)
	require.True(t, clients.AppendCertsFromPEM(text))
	admin := startAdmin(t, &fakeadmin.Admin{TLS: &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}})
	a := start(t, admin, func(ex *executor.Executor) {
		executor.HandleFunc(ex, "h", func(ctx context.Context) error {
			executor.Logger(ctx).Info("over TLS")
			return nil
		})
	}, func(c *executor.Config) {
		c.TLS = &executor.TLS{CAFile: serverCert, CertFile: clientCert, KeyFile: clientKey}
	})
	require.NoError(t, session(t, admin, 1).Offer(offer(1, "h")))
	saw(t, admin, func(seen fakeadmin.Seen) bool { return len(seen.Results) == 1 && len(seen.Lines) == 1 })
	require.NoError(t, a.stop())
}
