package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/testenv/lab"
)

// TestTenantAndUserCommands on a real server: what is made can be renamed, shut and
// unmade, and who is shut out is told so.
func TestTenantAndUserCommands(t *testing.T) {
	dir := t.TempDir()
	fleet, err := lab.NewFleet(lab.Options{Dir: dir, Binary: program, DSN: func(int) string { return "sqlite:" + filepath.Join(dir, "carillon.db") }})
	require.NoError(t, err)
	t.Cleanup(fleet.Close)
	node, err := fleet.AddAdmin(t.Context())
	require.NoError(t, err)
	logIn := func(user, password string) (*terminal, result) {
		term := newTerminal(t)
		return term, term.pipe(password+"\n", "login", "--url", node.API.Base, "--username", user, "--password-stdin")
	}
	term, r := logIn("admin", fleet.Password)
	require.Equal(t, 0, r.code, r.stderr)
	must := func(args ...string) result {
		t.Helper()
		r := term.run(args...)
		require.Equal(t, 0, r.code, "%v: %s", args, r.stderr)
		return r
	}

	must("tenant", "create", "acme")
	must("tenant", "rename", "acme", "acme-europe")
	require.Equal(t, 3, term.run("tenant", "disable", "acme").code)
	refused := term.run("tenant", "delete", "acme-europe", "--confirm", "acme-europe")
	require.NotEqual(t, 0, refused.code, "it is enabled")
	require.Contains(t, must("tenant", "disable", "acme-europe", "--note", "unpaid").stderr, "carillon tenant enable acme-europe")
	require.Regexp(t, `acme-europe +disabled +.*unpaid`, must("tenant", "list").stdout)
	refused = term.run("tenant", "delete", "acme-europe", "--confirm", "acme")
	require.NotEqual(t, 0, refused.code)
	require.Contains(t, refused.stderr, "must be the tenant's name")
	r = term.pipe("acme-europe\n", "tenant", "delete", "acme-europe")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "carillon tenant restore acme-europe")
	must("tenant", "restore", "acme-europe")
	must("tenant", "enable", "acme-europe")
	require.Regexp(t, `acme-europe +enabled`, must("tenant", "list").stdout)

	password := strings.TrimSpace(must("user", "create", "paula", "--role", "editor").stdout)
	_, r = logIn("paula", password)
	require.Equal(t, 0, r.code, r.stderr)
	must("user", "role", "paula", "operator")
	require.Regexp(t, `paula +operator`, must("user", "list").stdout)
	must("user", "disable", "paula")
	_, r = logIn("paula", password)
	require.NotEqual(t, 0, r.code, "locked")
	must("user", "enable", "paula")
	next := strings.TrimSpace(must("user", "reset-password", "paula").stdout)
	_, r = logIn("paula", password)
	require.NotEqual(t, 0, r.code, "the former password")
	_, r = logIn("paula", next)
	require.Equal(t, 0, r.code, r.stderr)
	must("user", "remove", "paula", "--yes")
	require.NotContains(t, must("user", "list").stdout, "paula")
	require.NotEqual(t, 0, term.run("user", "remove", "admin", "--yes").code, "nobody would be left")
}
