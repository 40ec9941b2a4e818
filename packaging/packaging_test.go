//go:build proof && linux

package packaging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the server and sampleShop the sample application, built once for all
// tests.
var program, sampleShop string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "carillon-packaging")
	if err != nil {
		panic(err)
	}
	program, sampleShop = filepath.Join(dir, "carillon"), filepath.Join(dir, "sample-shop")
	build := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "../cmd/carillon", "../examples/sample-shop")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped; the race detector's tests have it on
	out, err := build.CombinedOutput()
	if err != nil {
		panic(fmt.Sprintf("build: %v\n%s", err, out))
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // in the system's folder for what is left behind
	os.Exit(code)
}

// image is what the Dockerfile says of a stage.
type image struct {
	env        []string
	user       string
	command    []string
	health     []string
	entrypoint []string
}

var quoted = regexp.MustCompile(`"([^"]*)"`)

func readImage(t *testing.T, stage string) (i image) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	words := func(line string) (out []string) {
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			out = append(out, m[1])
		}
		return out
	}
	within := false
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if instruction == "FROM" {
			within = strings.HasSuffix(rest, " AS "+stage)
		}
		if !within {
			continue
		}
		switch instruction {
		case "ENV":
			i.env = append(i.env, strings.Fields(rest)...)
		case "USER":
			i.user = rest
		case "CMD":
			i.command = words(rest)
		case "ENTRYPOINT":
			i.entrypoint = words(rest)
		case "HEALTHCHECK":
			i.health = words(rest)
		}
	}
	return i
}

const imageUser = 65532

// container is a process that sees the image's files alone, as its user, who may
// write to /data only.
type container struct {
	root string
	env  []string
}

func (c container) command(ctx context.Context, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Path, cmd.Dir, cmd.Env = args[0], "/data", c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser}}
	if os.Getuid() != 0 { // as root of a name space of its own
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: imageUser, HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.Credential.NoSetGroups = true
	}
	return cmd
}

// TestTheImageRuns runs what the Dockerfile says in a folder that has what the
// image has: no shell, no other program, no root, nothing to write to but /data.
func TestTheImageRuns(t *testing.T) {
	i := readImage(t, "admin")
	require.Equal(t, "65532:65532", i.user)
	c := newContainer(t)
	// Other ports than the image's: somebody may use those.
	c.env = append(i.env, "CARILLON_INSECURE_BIND=true", "CARILLON_ADMIN_PASSWORD=tower-bell-64",
		"CARILLON_HTTP="+freePort(t, i.env, "CARILLON_HTTP"), "CARILLON_EXECUTORS="+freePort(t, i.env, "CARILLON_EXECUTORS"))
	healthy := func() bool { return c.command(t.Context(), i.health).Run() == nil }
	stop := c.serve(t, append(i.entrypoint, i.command...), healthy)
	require.FileExists(t, filepath.Join(c.root, "data", "carillon.db"))
	stop()
	require.ErrorIs(t, c.command(t.Context(), []string{"/bin/sh"}).Run(), os.ErrNotExist)
	err := c.command(t.Context(), i.health).Run()
	require.True(t, errors.As(err, new(*exec.ExitError)), "nobody is healthy: %v", err)
}

// newContainer makes a folder that has what the image has, and in files what is
// mounted there. It can be written to in /data only.
func newContainer(t *testing.T, files ...[2]string) container {
	t.Helper()
	root, err := os.MkdirTemp("", "image") // below TempDir's folders the user must not go
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(root)) })
	data := filepath.Join(root, "data")
	require.NoError(t, os.Mkdir(data, 0o700))
	if os.Getuid() == 0 {
		require.NoError(t, os.Chown(data, imageUser, imageUser))
	}
	raw, err := os.ReadFile(program)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "carillon"), raw, 0o755))
	for _, file := range files {
		path := filepath.Join(root, file[0])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(file[1]), 0o644))
	}
	require.NoError(t, os.Chmod(root, 0o555))
	t.Cleanup(func() { require.NoError(t, os.Chmod(root, 0o700)) })
	return container{root: root}
}

// serve starts a node, waits until it is ready, and returns how to stop it.
func (c container) serve(t *testing.T, args []string, ready func() bool) (stop func()) {
	t.Helper()
	server := c.command(context.Background(), args)
	var log strings.Builder
	server.Stderr = &log
	require.NoError(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { _ = server.Process.Kill() })
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v\n%s", err, log.String())
		default:
		}
		return ready()
	}, time.Minute, 100*time.Millisecond, "ready")
	return func() {
		require.NoError(t, server.Process.Signal(syscall.SIGTERM))
		select {
		case err := <-ended:
			require.NoError(t, err, "it stops as it is told")
		case <-time.After(time.Minute):
			t.Fatal("it does not stop")
		}
	}
}

// freePort is a port of the address that the image has.
func freePort(t *testing.T, env []string, name string) string {
	t.Helper()
	for _, v := range env {
		if address, is := strings.CutPrefix(v, name+"="); is {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			_, port, err := net.SplitHostPort(l.Addr().String())
			require.NoError(t, err)
			return net.JoinHostPort(host, port)
		}
	}
	t.Fatalf("the image sets no %s", name)
	return ""
}

// TestTheUnit: systemd understands it, and what it starts exists.
func TestTheUnit(t *testing.T) {
	text, err := os.ReadFile("carillon.service")
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "carillon.service")
	require.NoError(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(text), "/usr/bin/carillon", program)), 0o600))
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "carillon.service", "warnings")
	for _, m := range regexp.MustCompile(`(?m)^Exec\w+=/usr/bin/carillon (\w+) (.*)$`).FindAllStringSubmatch(string(text), -1) {
		help, err := exec.CommandContext(t.Context(), program, m[1], "--help").Output()
		require.NoError(t, err)
		for _, flag := range regexp.MustCompile(`--[a-z-]+`).FindAllString(m[2], -1) {
			require.Contains(t, string(help), flag+" ", m[1])
		}
	}
}

// TestTheDebianPackage: what is in it, and the same twice. What the binary is does
// not matter to it, and to pack a small one takes less time.
func TestTheDebianPackage(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "binary")
	require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o700))
	pack := func(name string) string {
		path := filepath.Join(dir, name)
		cmd := exec.CommandContext(t.Context(), "./deb.sh", binary, "amd64", "1.2.3", path)
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return path
	}
	first := pack("a.deb")
	one, err := os.ReadFile(first)
	require.NoError(t, err)
	two, err := os.ReadFile(pack("b.deb"))
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(one), sha256.Sum256(two), "reproducible")

	root := filepath.Join(dir, "root")
	for _, args := range [][]string{{"-x", first, root}, {"-e", first, filepath.Join(root, "DEBIAN")}} {
		out, err := exec.CommandContext(t.Context(), "dpkg-deb", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	for file, mode := range map[string]os.FileMode{
		"usr/bin/carillon": 0o755, "lib/systemd/system/carillon.service": 0o644, "etc/carillon/server.yaml": 0o644, "usr/share/doc/carillon/copyright": 0o644,
	} {
		info, err := os.Stat(filepath.Join(root, file))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), file)
	}
	for _, script := range []string{"postinst", "prerm"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-n", filepath.Join(root, "DEBIAN", script)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	// Its settings are some that the server has.
	out, err := exec.CommandContext(t.Context(), program, "ready", "--config", filepath.Join(root, "etc/carillon/server.yaml"),
		"--http", freePort(t, []string{"X=127.0.0.1:0"}, "X")).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the node does not answer")
}
