package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the real binary, so that exit codes, signals and streams are
// those of a real process. It is built without the race detector, also when
// the tests have it: that makes a start ten times slower, and there are a
// hundred of them.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "carillon-test-*")
	if err == nil {
		program = filepath.Join(dir, "carillon")
		build := exec.Command("go", "build", "-o", program, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
		var output []byte
		if output, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("build the program: %w\n%s", err, output)
		}
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// terminal is one user's shell: an environment and a folder of their own.
type terminal struct {
	t   *testing.T
	env []string
}

func newTerminal(t *testing.T, env ...string) *terminal {
	t.Helper()
	home := t.TempDir()
	return &terminal{t: t, env: append([]string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "PATH=" + os.Getenv("PATH"),
	}, env...)}
}

// result is what a process left behind.
type result struct {
	code           int
	stdout, stderr string
}

func (term *terminal) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = term.env
	return cmd
}

func (term *terminal) run(args ...string) result { return term.pipe("", args...) }

func (term *terminal) pipe(stdin string, args ...string) result {
	term.t.Helper()
	ctx, cancel := context.WithTimeout(term.t.Context(), time.Minute)
	defer cancel()
	cmd := term.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		term.t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// logIn begins a session at the fake server.
func (term *terminal) logIn(server *fakeServer) {
	term.t.Helper()
	r := term.pipe("tower-bell-64\n", "login", "--url", server.url, "--username", "admin", "--password-stdin")
	require.Equal(term.t, 0, r.code, r.stderr)
}

// Every exit code of the documentation, by the shortest way to it.
func TestExitCodes(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t)
	term.logIn(server)
	tests := []struct {
		name   string
		args   string
		code   int
		stderr string
	}{
		{"ok", "job list", 0, ""},
		{"help", "job run --help", 0, ""},
		{"unknown command", "jbo list", 2, `did you mean "job"?`},
		{"unknown subcommand", "job lits", 2, `did you mean "list"?`},
		{"unknown flag", "job list --stat", 2, "unknown flag: --stat"},
		{"missing argument", "job get", 2, "JOB is missing: write carillon job get JOB"},
		{"bad flag value", "job list -n many", 2, `--limit: "many" is no number`},
		{"negative limit of jobs", "job list -n -1", 2, "--limit: -1 is too small: use 0 or more"},
		{"negative limit of runs", "run list --limit -1", 2, "--limit: -1 is too small: use 0 or more"},
		{"bad format", "job list -o xml", 2, `output format "xml" is none of table, wide, json, yaml, name`},
		{"bad address", "job list --url localhost:8080", 2, "want something like"},
		{"bad input", "job run close-day --input {", 2, "--input: line 1: it is no JSON"},
		{"missing file", "job create -f /no/such/file", 2, "no such file"},
		{"no confirmation", "job delete close-day", 2, "pass --yes"},
		{"server fault", "job pause broken", 1, "request id for the server's log: req-"},
		{"no server", "job list --url http://127.0.0.1:1 --api-key-file " + keyFile(t), 1, "Is the server running there?"},
		{"job not found by name", "job get close-dya", 3, `there is no job "close-dya"; did you mean "close-day"?`},
		{"job not found by id", "job get 999", 3, `there is no job "999"`},
		{"run not found", "run get 999", 3, "See what there is with: carillon run list"},
		{"executor not found", "executor token create nope", 3, `there is no executor "nope"; see: carillon executor list`},
		{"not logged in", "job list --url http://127.0.0.1:1", 4, "carillon login --url http://127.0.0.1:1"},
		{"denied", "executor create secret", 4, "Your role does not allow this"},
		{"refused by policy", "executor create scripts", 4, "scripts in shell are off for this tenant"},
		{"conflict", "executor create shop", 5, "exists already"},
		{"already finished", "run cancel 70", 5, "already_finished"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := term.run(strings.Fields(test.args)...)
			require.Equal(t, test.code, r.code, r.stderr)
			require.Contains(t, r.stderr, test.stderr)
			if test.code != 0 {
				require.Empty(t, r.stdout, "errors are talk")
			}
			if test.name == "refused by policy" {
				require.NotContains(t, r.stderr, "role", "no role would help")
			}
		})
	}
}

func keyFile(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte("ck_good\n"), 0o600))
	return path
}

func TestLogin(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t)

	r := term.pipe("wrong\n", "login", "--url", server.url, "-u", "admin", "--password-stdin")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stderr, "wrong user name or password")
	require.Equal(t, 2, term.run("login", "--url", server.url, "-u", "admin").code, "no prompt without a terminal")
	require.Equal(t, 2, term.run("login", "--url", server.url, "-u", "admin", "--password-stdin").code, "an empty password")

	term.logIn(server)
	// The server is remembered, the password is not.
	r = term.run("whoami", "-o", "name")
	require.Equal(t, result{0, "admin\n", ""}, r)
	require.NoError(t, filepath.WalkDir(filepath.Join(homeOf(term), "config"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NotContains(t, string(raw), "tower-bell")
		return err
	}))

	// An expired token is renewed with the cookie, as often as it takes.
	for range 3 {
		server.expire()
		require.Equal(t, 0, term.run("job", "list").code)
	}
	require.Equal(t, 3, server.renewals())

	require.Equal(t, 0, term.run("logout").code)
	require.Equal(t, 4, term.run("whoami").code)
	require.Equal(t, 4, term.run("logout").code)
}

func homeOf(term *terminal) string { return strings.TrimPrefix(term.env[0], "HOME=") }

func TestPassword(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t)
	term.logIn(server)
	r := term.pipe("tower-bell-64\nlonger-bell-65\n", "password", "--password-stdin")
	require.Equal(t, 0, r.code, r.stderr)
	require.Equal(t, 0, term.run("whoami").code, "the session goes on with the cookie of the answer")
	r = term.pipe("tower-bell-64\n", "login", "--url", server.url, "-u", "admin", "--password-stdin")
	require.Equal(t, 4, r.code, "the old password is gone")
}

// Flags win over variables, variables over the file.
func TestSettings(t *testing.T) {
	server := newFakeServer(t)
	config := filepath.Join(t.TempDir(), "cli.yaml")
	require.NoError(t, os.WriteFile(config, []byte("url: "+server.url+"\noutput: name\n"), 0o600))

	term := newTerminal(t, "CARILLON_API_KEY=ck_good", "CARILLON_CONFIG="+config)
	require.Equal(t, "close-day\nbroken\n", term.run("job", "list").stdout)
	require.Contains(t, term.run("job", "list", "-o", "json").stdout, `"items"`)

	term.env = append(term.env, "CARILLON_OUTPUT=table")
	require.Contains(t, term.run("job", "list").stdout, "SCHEDULE")
	require.Equal(t, "close-day\nbroken\n", term.run("job", "list", "-o", "name").stdout)

	require.NoError(t, os.WriteFile(config, []byte("ulr: x\n"), 0o600))
	r := term.run("job", "list")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, `no setting "ulr"`)
}

func TestWrongKey(t *testing.T) {
	server := newFakeServer(t)
	term := newTerminal(t, "CARILLON_URL="+server.url, "CARILLON_API_KEY=ck_bad")
	r := term.run("job", "list")
	require.Equal(t, 4, r.code)
	require.Contains(t, r.stderr, "check CARILLON_API_KEY")
	require.NotContains(t, term.run("job", "list", "-v").stderr, "ck_bad")
}

func TestVersionOfTheProgram(t *testing.T) {
	fetched := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.3", Sum: "h1:abc="}}
	checkout := &debug.BuildInfo{Main: debug.Module{Version: "v1.2.4-0.20261129090000-0123456789ab+dirty"}}
	for name, c := range map[string]struct {
		set  string
		info *debug.BuildInfo
		want string
	}{
		"go install":  {"dev", fetched, "v1.2.3"},
		"a release":   {"v1.2.2", fetched, "v1.2.2"},
		"in checkout": {"dev", checkout, "dev"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, versionOf(c.set, c.info)) })
	}
}
