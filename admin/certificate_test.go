package admin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/testenv"
)

// tlsFiles writes a certificate for 127.0.0.1 and its key.
func tlsFiles(t *testing.T) (cert, key string) {
	t.Helper()
	pair, _ := testenv.Certificate(t)
	der, err := x509.MarshalECPrivateKey(pair.PrivateKey.(*ecdsa.PrivateKey))
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	return cert, key
}

// instances lists the executor's instances, by state.
func (n *node) instances(executorID string) map[string]string {
	n.t.Helper()
	var list struct{ Items []struct{ ID, State string } }
	n.do(http.MethodGet, "/api/v1/executors/"+executorID+"/instances", nil, &list, 200)
	out := map[string]string{}
	for _, i := range list.Items {
		out[i.State] = i.ID
	}
	return out
}

// TestCertificatesRequired: an executor that knows nothing but its token and
// whom to trust gets a certificate and works; a denial ends that at once, for
// this process only.
func TestCertificatesRequired(t *testing.T) {
	t.Parallel()
	for name, database := range databases {
		t.Run(name, func(t *testing.T) {
			cert, key := tlsFiles(t)
			n := startNode(t, func(c *admin.Config) {
				c.Database = database(t, c.DataDir)
				c.ExecutorTLSCertFile, c.ExecutorTLSKeyFile, c.ExecutorCertificates = cert, key, admin.CertificatesRequired
			})
			lines := &logLines{}
			start := func() {
				n.startExecutor("shop", func(c *executor.Config) {
					c.TLS = &executor.TLS{CAFile: cert}
					c.Logger = slog.New(slog.NewTextHandler(lines, nil))
				}, func(ex *executor.Executor) {
					executor.HandleFunc(ex, "sell", func(context.Context) error { return nil })
				})
			}
			start()
			require.Equal(t, 1, lines.count("the admin gave this process a certificate"))
			job := n.newJob("shop", "sell", nil)
			n.until(n.runNow(job, nil), "succeeded")

			var list struct {
				Items []struct {
					ID              string
					InstancesOnline int
				}
			}
			n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
			shop := list.Items[0].ID
			first := n.instances(shop)["online"]
			require.NotEmpty(t, first)
			n.do(http.MethodDelete, "/api/v1/instances/"+first+"?reason=stolen", nil, nil, 200)
			n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
			require.Zero(t, list.Items[0].InstancesOnline, "it is seen at once")
			require.Empty(t, n.instances(shop), "and in the list")
			n.eventually(func() bool { return lines.count("denied") > 0 }, func() string { return "the process has not heard of it" })
			require.Equal(t, 1, lines.count("the admin gave this process a certificate"))

			start() // a new process
			n.until(n.runNow(job, nil), "succeeded")
		})
	}
}

// TestACleanStopIsSeenAtOnce, on the node's list and not by the lease.
func TestACleanStopIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	access, err := n.admin.Provision(t.Context(), "shop")
	require.NoError(t, err)
	ex, err := executor.New(executor.Config{
		Name: "shop", Addresses: []string{n.admin.ExecutorAddress()}, Token: executor.Secret(access.JoinToken), JournalDir: t.TempDir(),
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	require.NoError(t, err)
	executor.HandleFunc(ex, "sell", func(context.Context) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- ex.Run(ctx) }()
	<-ex.Ready()
	var list struct{ Items []struct{ ID string } }
	n.do(http.MethodGet, "/api/v1/executors", nil, &list, 200)
	require.NotEmpty(t, n.instances(list.Items[0].ID)["online"])
	cancel()
	require.NoError(t, <-done)
	require.Empty(t, n.instances(list.Items[0].ID), "when Run has returned, it is gone")
}
