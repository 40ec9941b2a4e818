package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAServerBelowAPath runs the real command line at a real server. Its base URL has a path.
func TestAServerBelowAPath(t *testing.T) {
	s := startServer(t, "sqlite:"+filepath.Join(t.TempDir(), "c.db"), "--base-url", "https://example.com/ops/carillon/")
	term := newTerminal(t)
	ready := term.run("ready", "--http", strings.TrimPrefix(s.url, "http://"), "--wait", "60s")
	require.Zero(t, ready.code, ready.stderr)
	address := s.url + "/ops/carillon"
	require.Equal(t, address, s.line("admin node serves").URL)

	r := term.pipe("tower-bell-64\n", "login", "--url", address+"/", "--username", "admin", "--password-stdin")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr+r.stdout, "Logged in at "+address)
	for _, args := range [][]string{{"executor", "create", "shop"}, {"executor", "list", "--url", address}, {"job", "list"}, {"logout"}} {
		r = term.run(args...)
		require.Zero(t, r.code, "%v: %s", args, r.stderr)
	}
	r = term.run("job", "list")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "carillon login --url "+address)
}

func TestABaseURLNeedsItsScheme(t *testing.T) {
	r := newTerminal(t).run("server", "--data", t.TempDir(), "--base-url", "example.com/carillon")
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, `base URL: "example.com/carillon" is no complete address: use the address that people open, with http:// or https://`)
}
