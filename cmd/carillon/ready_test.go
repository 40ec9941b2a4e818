package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv"
)

func TestReady(t *testing.T) {
	term := newTerminal(t)
	nobody := freeAddress(t)
	r := term.run("ready", "--http", nobody)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the node does not answer")

	asked := 0
	held := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			w.WriteHeader(http.StatusNotFound)
		} else if asked++; asked == 1 {
			http.Error(w, "this node drains", http.StatusServiceUnavailable)
		}
	}))
	defer held.Close()
	address := strings.TrimPrefix(held.URL, "http://")
	r = term.run("ready", "--http", address)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the node does not serve (503 Service Unavailable): this node drains")
	require.Zero(t, term.run("ready", "--http", address).code)

	// By the settings that the server has: a file, and an address that is all of the machine's.
	asked = 0
	_, port, _ := strings.Cut(address, ":")
	file := filepath.Join(t.TempDir(), "server.yaml")
	require.NoError(t, os.WriteFile(file, []byte("http: 0.0.0.0:"+port+"\ndata: /nowhere\n"), 0o600))
	r = term.run("ready", "--config", file, "--wait", "30s")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, 2, asked, "asked again")
}

func TestReadyOverTLS(t *testing.T) {
	cert, key := testenv.CertificateFiles(t)
	database := "sqlite:" + filepath.Join(t.TempDir(), "c.db")
	s := startServer(t, database, "--tls-cert", cert, "--tls-key", key)
	address := strings.TrimPrefix(s.url, "http://")
	term := newTerminal(t)
	r := term.run("ready", "--http", address, "--tls-cert", cert, "--wait", "60s")
	require.Zero(t, r.code, r.stderr)
	second := term.run("server", "--data", t.TempDir(), "--http", freeAddress(t), "--executors", freeAddress(t), "--database", database)
	require.Equal(t, 1, second.code)
	require.Contains(t, second.stderr, "another server works on")
	other, _ := testenv.CertificateFiles(t)
	r = term.run("ready", "--http", address, "--tls-cert", other)
	require.Equal(t, 1, r.code, "somebody else listens there")
	require.Contains(t, r.stderr, "certificate")
}
