//go:build proof

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What a reader is to do ends with this where the command stays; the next block
// is for a new terminal.
const stays = "# leave it running"

// TestFirstHandlerAsDocumented does what docs/guide/handlers.md tells a newcomer, word
// by word, from an empty folder on: its commands, its files, a real admin. Only
// the ports, and who types the password, are the test's.
func TestFirstHandlerAsDocumented(t *testing.T) {
	output := newReader(t).follow("First handler in five minutes", "password ", "connected to admin node")
	require.Contains(t, output, "greet ")
	require.Contains(t, output, "greeting name=Ada")
	require.Contains(t, output, "succeeded")
}

// TestCallsAsDocumented does so with the section about calls.
func TestCallsAsDocumented(t *testing.T) {
	r := newReader(t)
	r.leave("make demo", "password ")
	r.newTerminal()
	output := r.follow("Handlers as functions, from another program", "connected to admin node")
	require.Equal(t, "a bell costs 6400\n", output)
}

// follow does what a section tells, and returns what its last commands said.
// ready are what those have to say that stay, one after the other.
func (r *reader) follow(title string, ready ...string) (output string) {
	t := r.t
	t.Helper()
	text, err := os.ReadFile("../../docs/guide/handlers.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "## "+title+"\n")
	require.True(t, ok)
	section, _, ok = strings.Cut(section, "\n## ")
	require.True(t, ok)
	blocks := regexp.MustCompile("(?s)```(\\w+) ?(\\S*)\n(.*?)```").FindAllStringSubmatch(section, -1)
	require.Greater(t, len(blocks), 5)
	for _, block := range blocks {
		kind, file, body := block[1], block[2], block[3]
		if kind == "go" {
			require.NotEmpty(t, file, "a file without a name:\n%s", body)
			require.NoError(t, os.WriteFile(filepath.Join(r.folder(), file), []byte(body), 0o600))
			continue
		}
		require.Equal(t, "sh", kind)
		before, command, stays := cutStaying(body)
		output = r.do(before)
		if stays {
			require.NotEmpty(t, ready, "one command more stays than is known of: %s", command)
			r.leave(command, ready[0])
			ready = ready[1:]
			r.newTerminal()
		}
	}
	require.Empty(t, ready)
	return output
}

func cutStaying(body string) (before, command string, found bool) {
	for line := range strings.Lines(body) {
		if command, ok := strings.CutSuffix(strings.TrimSpace(line), stays); ok {
			return before, strings.TrimSpace(command), true
		}
		before += line
	}
	return body, "", false
}

// reader is somebody who follows the documentation, in one terminal at a time.
type reader struct {
	t        *testing.T
	checkout string // looks like the repository after make build
	state    string // folder with the terminal's environment and working folder
	env      []string
	replace  *strings.Replacer
	password string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	r := &reader{t: t, checkout: t.TempDir()}
	for _, folder := range []string{"executor-sdk", "proto", "schedule"} {
		require.NoError(t, os.Symlink(filepath.Join(root, folder), filepath.Join(r.checkout, folder)))
	}
	bin := filepath.Join(r.checkout, "bin")
	require.NoError(t, os.Mkdir(bin, 0o750))
	require.NoError(t, os.Symlink(program, filepath.Join(bin, "carillon")))
	shop := buildShop(t)
	require.NoError(t, os.WriteFile(filepath.Join(r.checkout, "Makefile"),
		[]byte("demo:\n\t@exec bin/carillon demo --shop "+shop+"\n"), 0o600))

	home, api, executors := t.TempDir(), freeAddress(t), freeAddress(t)
	r.replace = strings.NewReplacer("127.0.0.1:7070", executors, "127.0.0.1:8080", api)
	r.env = []string{
		"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "PATH=" + os.Getenv("PATH"),
		"CARILLON_HTTP=" + api, "CARILLON_EXECUTORS=" + executors, "CARILLON_DATA=" + filepath.Join(home, "data"),
		"CARILLON_URL=http://" + api, "SHELL=/bin/bash",
	}
	for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		r.env = append(r.env, name+"="+strings.TrimSpace(string(value)))
	}
	r.newTerminal()
	return r
}

// newTerminal begins in the checkout, with nothing set.
func (r *reader) newTerminal() {
	r.state = r.t.TempDir()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.state, "env"), nil, 0o600))
	require.NoError(r.t, os.WriteFile(filepath.Join(r.state, "pwd"), []byte(r.checkout), 0o600))
}

func (r *reader) folder() string {
	folder, err := os.ReadFile(filepath.Join(r.state, "pwd"))
	require.NoError(r.t, err)
	return strings.TrimSpace(string(folder))
}

// shell is a command in the terminal as it stands.
func (r *reader) shell(ctx context.Context, script string) *exec.Cmd {
	const login = "carillon login --username admin"
	script = strings.ReplaceAll(r.replace.Replace(script), login, "printf '%s\\n' "+r.password+" | "+login+" --password-stdin")
	cmd := exec.CommandContext(ctx, "bash", "-c", fmt.Sprintf("set -euo pipefail\n. %[1]s/env\ncd \"$(cat %[1]s/pwd)\"\n%[2]s\n", r.state, script))
	cmd.Env = r.env
	return cmd
}

// do runs commands to their end and returns what they said.
func (r *reader) do(script string) string {
	r.t.Helper()
	if strings.TrimSpace(script) == "" {
		return ""
	}
	// The bound is for a machine that compiles the SDK for the first time.
	ctx, cancel := context.WithTimeout(r.t.Context(), 8*time.Minute)
	defer cancel()
	said, err := r.shell(ctx, script+fmt.Sprintf("\nexport -p > %[1]s/env\npwd > %[1]s/pwd", r.state)).CombinedOutput()
	require.NoError(r.t, err, "%s\n%s", script, said)
	return string(said)
}

// leave starts a command that stays, and returns when it has said ready. It gets
// a Ctrl-C at the end of the test, and has to end then.
func (r *reader) leave(command, ready string) {
	r.t.Helper()
	said := &screen{changed: make(chan struct{}, 1)}
	cmd := r.shell(context.Background(), command)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(r.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	r.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		select {
		case err := <-ended: // make and go run pass the signal on as an error
			r.t.Logf("%s: %v", command, err)
		case <-time.After(time.Minute):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			r.t.Errorf("%s did not stop after Ctrl-C:\n%s", command, said)
		}
	})
	timeout := time.After(8 * time.Minute)
	for !strings.Contains(said.String(), ready) {
		select {
		case <-said.changed:
		case err := <-ended:
			ended <- err
			r.t.Fatalf("%s ended: %v\n%s", command, err, said)
		case <-timeout:
			r.t.Fatalf("%s does not say %q:\n%s", command, ready, said)
		}
	}
	if m := regexp.MustCompile(`password +(\S+)\n`).FindStringSubmatch(said.String()); m != nil {
		r.password = m[1]
		r.t.Cleanup(func() {
			require.NotContains(r.t, said.String(), "msg=request", "the log pushes the password off the screen")
		})
	}
}

// screen is what a command has said so far. It is safe for concurrent use.
type screen struct {
	changed chan struct{} // capacity 1; nobody closes it

	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
