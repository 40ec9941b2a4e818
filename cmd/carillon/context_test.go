package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContexts(t *testing.T) {
	one, two := newFakeServer(t), newFakeServer(t)
	term := newTerminal(t)
	login := func(server *fakeServer, args ...string) {
		t.Helper()
		r := term.pipe("tower-bell-64\n", append([]string{"login", "--url", server.url, "--username", "admin", "--password-stdin"}, args...)...)
		require.Equal(t, 0, r.code, r.stderr)
	}
	servers := func() map[string]string {
		t.Helper()
		r := term.run("context", "list", "-o", "json")
		require.Equal(t, 0, r.code, r.stderr)
		require.NotContains(t, r.stdout, "accessToken")
		var list struct {
			Items []struct {
				Name, Server, Login string
				Current             bool
			}
		}
		require.NoError(t, json.Unmarshal([]byte(r.stdout), &list))
		out := map[string]string{}
		for _, c := range list.Items {
			out[c.Name] = c.Server + " " + c.Login
			if c.Current {
				out[c.Name] += " current"
			}
		}
		return out
	}
	asked := func(args ...string) string {
		t.Helper()
		r := term.run(append([]string{"whoami", "-v"}, args...)...)
		require.Equal(t, 0, r.code, r.stderr)
		return r.stderr
	}

	require.Equal(t, 0, term.run("context", "list").code, "an empty list is no mistake")
	login(one, "--context", "prod")
	login(two) // takes the name of the server
	host := two.url[len("http://"):]
	require.Equal(t, map[string]string{"prod": one.url + " session", host: two.url + " session current"}, servers())
	require.Contains(t, asked(), two.url)
	require.Contains(t, asked("--context", "prod"), one.url)
	require.Contains(t, asked("--url", one.url), one.url)
	require.Equal(t, 0, term.run("whoami", "--url", one.url).code, "the session is found by the address, too")

	require.Equal(t, 0, term.run("context", "use", "prod").code)
	require.Equal(t, 0, term.run("context", "rename", host, "test").code)
	require.Equal(t, map[string]string{"prod": one.url + " session current", "test": two.url + " session"}, servers())

	// The nearer one counts: a flag before a variable.
	term.env = append(term.env, "CARILLON_CONTEXT=test")
	require.Contains(t, asked(), two.url)
	require.Contains(t, asked("--context", "prod"), one.url)
	require.Contains(t, asked("--url", one.url), one.url)
	require.Equal(t, 2, term.run("whoami", "--url", one.url, "--context", "test").code)
	term.env = append(term.env, "CARILLON_URL="+one.url)
	require.Equal(t, 2, term.run("whoami").code, "both as variables")
	require.Contains(t, asked("--context", "test"), two.url)
	term.env = term.env[:len(term.env)-2]

	// Logged out, the name stays; and a login by it alone goes back there.
	require.Equal(t, 0, term.run("logout", "--context", "test").code)
	require.Equal(t, two.url+" none", servers()["test"])
	r := term.run("whoami", "--context", "test")
	require.Equal(t, 4, r.code)
	r = term.pipe("tower-bell-64\n", "login", "--context", "test", "--username", "admin", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, two.url+" session current", servers()["test"])

	// A context stays at its server: a nearer URL counts, and beside it is a mistake.
	term.env = append(term.env, "CARILLON_CONTEXT=test")
	r = term.pipe("tower-bell-64\n", "login", "--url", one.url, "--username", "admin", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	require.Contains(t, r.stderr, "Note: the context test, which a variable or a file names, stays at its server.")
	require.Contains(t, r.stderr, "need: --context prod")
	require.Equal(t, map[string]string{"prod": one.url + " session current", "test": two.url + " session"}, servers())
	r = term.pipe("tower-bell-64\n", "login", "--username", "admin", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	require.NotContains(t, r.stderr, "Note: the context")
	term.env = term.env[:len(term.env)-1]
	r = term.pipe("tower-bell-64\n", "login", "--url", one.url, "--context", "test", "--username", "admin", "--password-stdin")
	require.Equal(t, 5, r.code)
	require.Contains(t, r.stderr, `the context "test" is `+two.url+`, not `+one.url)
	require.Equal(t, map[string]string{"prod": one.url + " session", "test": two.url + " session current"}, servers())

	// A key instead of a session.
	r = term.run("context", "add", "ci", "--url", one.url, "--api-key-file", keyFile(t))
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, one.url+" api_key", servers()["ci"])
	require.Equal(t, 0, term.run("job", "list", "--context", "ci").code)
	require.Equal(t, 5, term.run("context", "add", "ci", "--url", one.url).code)
	require.Equal(t, 2, term.run("context", "add", "other").code)
	require.Equal(t, 2, term.run("context", "add", "a b", "--url", one.url).code)
	require.Equal(t, 5, term.run("context", "rename", "ci", "prod").code)

	require.Equal(t, 0, term.run("context", "remove", "ci").code)
	two.stop()
	r = term.run("context", "remove", "test")
	require.Equal(t, 0, r.code, "also when the server is gone")
	require.Contains(t, r.stderr, "ends by itself")
	require.Equal(t, map[string]string{"prod": one.url + " session"}, servers())
	for _, args := range [][]string{{"context", "use", "prdo"}, {"context", "remove", "prdo"}, {"whoami", "--context", "prdo"}} {
		r = term.run(args...)
		require.Equal(t, 3, r.code)
		require.Contains(t, r.stderr, `there is no context "prdo"; did you mean "prod"?`)
	}
	require.Equal(t, "prod\n", term.run("context", "list", "-o", "name").stdout)

	file := filepath.Join(homeOf(term), "config", "carillon", "credentials.json")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
