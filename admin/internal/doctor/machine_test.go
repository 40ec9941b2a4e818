package doctor_test

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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/doctor"
)

// keyPair writes a certificate for one name, and its key.
func keyPair(t *testing.T, from, until time.Time, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, DNSNames: []string{name}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

func codes(results ...doctor.Result) (out []string) {
	for _, r := range results {
		out = append(out, string(r.Status)+" "+r.Code)
		if r.Status == doctor.Warning || r.Status == doctor.Failed {
			if r.Do == "" || r.Code == "" {
				panic("nothing is said of what to do: " + r.Found)
			}
		}
	}
	return out
}

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	cert, key := keyPair(t, now.Add(-day), now.Add(90*day), "admin.example.com")
	good := doctor.Certificate(cert, key, now, "admin.example.com", "")
	require.Equal(t, []string{"ok "}, codes(good...))
	require.Equal(t, "for admin.example.com, until 2027-02-24 12:00 UTC, in 90 days", good[0].Found)
	require.Equal(t, []string{"warn certificate_expires_soon"}, codes(doctor.Certificate(cert, key, now.Add(80*day))...))
	require.Equal(t, []string{"fail certificate_expired"}, codes(doctor.Certificate(cert, key, now.Add(91*day))...))
	require.Equal(t, []string{"fail certificate_not_yet_valid"}, codes(doctor.Certificate(cert, key, now.Add(-2*day))...))
	require.Equal(t, []string{"warn certificate_of_another_name"}, codes(doctor.Certificate(cert, key, now, "10.0.0.1")...))
	_, other := keyPair(t, now, now.Add(day), "admin.example.com")
	require.Equal(t, []string{"fail certificate_unusable"}, codes(doctor.Certificate(cert, other, now)...))
	require.Equal(t, []string{"fail certificate_unusable"}, codes(doctor.Certificate(cert, filepath.Join(t.TempDir(), "none"), now)...))
	require.NoError(t, os.Chmod(key, 0o644))
	require.Equal(t, []string{"warn key_readable"}, codes(doctor.Certificate(cert, key, now)...))
}

// A certificate that was renewed counts from the node's next start on.
func TestACertificateThatIsNotLoaded(t *testing.T) {
	now := time.Now()
	cert, key := keyPair(t, now.Add(-time.Hour), now.Add(time.Hour), "admin.example.com")
	renewed, renewedKey := keyPair(t, now.Add(-time.Hour), now.Add(90*24*time.Hour), "admin.example.com")
	pair, err := tls.LoadX509KeyPair(cert, key)
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	require.NoError(t, err)
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.(*tls.Conn).Handshake() // the client breaks it off
			_ = conn.Close()
		}
	})
	address := listener.Addr().String()
	require.Empty(t, doctor.Loaded(t.Context(), address, cert, key))
	require.Equal(t, []string{"warn certificate_not_loaded"}, codes(doctor.Loaded(t.Context(), address, renewed, renewedKey)...))
	require.NoError(t, listener.Close())
	served.Wait()
	require.Empty(t, doctor.Loaded(t.Context(), address, renewed, renewedKey), "nobody is there")
	require.Empty(t, doctor.Loaded(t.Context(), address, renewed, key), "told elsewhere")
}

func TestPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.Equal(t, []string{"warn port_in_use"}, codes(doctor.Port(t.Context(), address, nil)))
	require.Equal(t, []string{"ok "}, codes(doctor.Port(t.Context(), address, func(context.Context) doctor.Result { return doctor.Passed("a node") })))
	require.NoError(t, listener.Close())
	require.Equal(t, []string{"ok "}, codes(doctor.Port(t.Context(), address, nil)))
	require.Equal(t, []string{"fail address_not_here"}, codes(doctor.Port(t.Context(), "192.0.2.1:7070", nil)))
	require.Equal(t, []string{"fail port_unusable"}, codes(doctor.Port(t.Context(), "127.0.0.1:http-alt-alt", nil)))
	if os.Geteuid() != 0 {
		require.Equal(t, []string{"fail port_not_allowed"}, codes(doctor.Port(t.Context(), "127.0.0.1:80", nil)))
	}
}

func TestFolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	require.Equal(t, []string{"ok "}, codes(doctor.Folder(dir, "signing.key")...))
	missing := filepath.Join(dir, "a", "b")
	require.Equal(t, []string{"ok "}, codes(doctor.Folder(missing)...))
	require.NoDirExists(t, filepath.Dir(missing), "it only looks")
	file := filepath.Join(dir, "signing.key")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.Equal(t, []string{"fail folder_is_a_file"}, codes(doctor.Folder(file)...))
	require.NoError(t, os.Chmod(file, 0o640))
	require.NoError(t, os.Chmod(dir, 0o777))
	require.Equal(t, []string{"warn folder_open", "fail key_readable"}, codes(doctor.Folder(dir, "signing.key")...))
	require.NoError(t, os.Chmod(dir, 0o500))
	if os.Geteuid() != 0 {
		require.Equal(t, []string{"fail folder_not_writable", "fail key_readable"}, codes(doctor.Folder(dir, "signing.key")...))
		require.Equal(t, []string{"fail folder_not_writable"}, codes(doctor.Folder(missing)...))
	} else {
		require.NoError(t, os.Chown(dir, 1, 1))
		require.Equal(t, []string{"warn another_user"}, codes(doctor.Folder(dir)...))
		require.NoError(t, os.Chown(dir, 0, 0))
	}
	require.NoError(t, os.Chmod(dir, 0o700))
}

func TestSpaceAndFiles(t *testing.T) {
	require.Contains(t, []doctor.Status{doctor.OK, doctor.Warning}, doctor.Space(filepath.Join(t.TempDir(), "not yet")).Status)
	require.Equal(t, []string{"ok "}, codes(doctor.JudgeSpace("/", 30<<30, 100<<30, 5)))
	require.Equal(t, []string{"warn disk_nearly_full"}, codes(doctor.JudgeSpace("/", 4<<30, 100<<30, 5)))
	require.Equal(t, []string{"warn disk_nearly_full"}, codes(doctor.JudgeSpace("/", 512<<20, 1<<30, 5)))
	require.Equal(t, []string{"fail disk_full"}, codes(doctor.JudgeSpace("/", 1<<20, 100<<30, 5)))
	require.Equal(t, []string{"fail disk_full"}, codes(doctor.JudgeSpace("/", 30<<30, 100<<30, 0)))
	require.Equal(t, []string{"ok "}, codes(doctor.OpenFiles(1)))
	require.Equal(t, []string{"warn too_few_files"}, codes(doctor.JudgeFiles(1024, 24000)))
}
