package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvitationCommands(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t)
	term.logIn(server)
	r := term.run("invitation", "create", "paula", "--role", "operator")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Invited paula as operator")
	require.Equal(t, map[string]any{"username": "paula", "role": "operator"}, server.lastBody("POST /invitations"))
	r = term.run("invitation", "create", "paula", "--role", "caller")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "viewer, operator")
	require.Regexp(t, `91 +paula +operator`, term.run("invitation", "list").stdout)
	require.Regexp(t, `91 +reports +operator`, term.run("invitation", "mine").stdout)
	require.Equal(t, "91\n", term.run("invitation", "mine", "-o", "name").stdout)
	for _, verb := range []string{"take-back", "accept", "decline"} {
		require.Equal(t, 0, term.run("invitation", verb, "91").code, verb)
		require.Equal(t, 3, term.run("invitation", verb, "92").code, verb)
	}
}
