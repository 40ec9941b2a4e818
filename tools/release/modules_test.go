//go:build proof && linux

package release

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	repository  = "github.com/carillon-sched/carillon"
	testVersion = "v0.76.5-test"
	// page stands for the pages, which Vite would build.
	page = "<!doctype html><title>pages of the tag</title>"
)

// TestModulesOfATag tags a clone as a release is tagged and offers its modules as a module
// proxy does. No subtest knows the workspace.
func TestModulesOfATag(t *testing.T) {
	t.Parallel()
	clone := tagged(t)
	proxy := t.TempDir()
	for _, m := range []string{"", "proto", "schedule", "executor-sdk", "executor-sdk/generate", "executor-sdk/tracing"} {
		offer(t, proxy, clone, m)
	}
	// This machine's cache has the modules of others, after this command.
	run(t, ".", nil, "go", "mod", "download")
	cache := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE"))
	env := []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off",
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
	}
	for name, test := range map[string]func(*testing.T, string, []string){
		"application": testApplication, "sample shop": testSampleShop, "go install": testInstall,
	} {
		t.Run(name, func(t *testing.T) { test(t, clone, env) })
	}
}

// tagged is a clone with the tags of a release. The branch stays as it was.
func tagged(t *testing.T) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "clone")
	top := strings.TrimSpace(run(t, ".", nil, "git", "rev-parse", "--show-toplevel"))
	run(t, ".", nil, "git", "clone", "-q", "--depth", "1", "file://"+top, clone)
	author := []string{"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost"}
	tag := exec.CommandContext(t.Context(), "build/tag.sh", testVersion)
	tag.Dir, tag.Env = clone, append(os.Environ(), author...)
	out, err := tag.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "run make ui", "a release without pages")

	for _, built := range []string{"web-ui/node_modules/.carillon-installed", "web-ui/dist/index.html", ".cache/ui-built"} {
		write(t, clone, built, page)
	}
	before := run(t, clone, nil, "git", "rev-parse", "HEAD")
	run(t, clone, author, "build/tag.sh", testVersion)
	require.Equal(t, before, run(t, clone, nil, "git", "rev-parse", "HEAD"))
	require.Empty(t, run(t, clone, nil, "git", "status", "--porcelain"))
	return clone
}

// testApplication uses the SDK in a folder of its own: go get, the README's first program,
// tracing and the generator.
func testApplication(t *testing.T, clone string, env []string) {
	app := t.TempDir()
	first, err := os.ReadFile(filepath.Join(clone, "executor-sdk/examples/first/main.go"))
	require.NoError(t, err)
	write(t, app, "main.go", string(first))
	write(t, app, "traced/traced.go", "package traced\n\nimport _ \""+repository+"/executor-sdk/tracing\"\n")
	run(t, app, env, "go", "mod", "init", "example.com/shop")
	run(t, app, env, "go", "get", repository+"/executor-sdk@"+testVersion, repository+"/executor-sdk/tracing@"+testVersion)
	run(t, app, env, "go", "mod", "tidy")
	run(t, app, env, "go", "build", "./...")
	requireOwn(t, app, env, "SDK, tracing and proto", 3)

	run(t, app, env, "go", "get", "-tool", repository+"/executor-sdk/generate/cmd/carillon-generate@"+testVersion)
	run(t, app, env, "go", "build", "-o", t.TempDir(), "tool")
}

// testSampleShop builds the shop of the tag outside of the repository, with the go.mod that
// it has there.
func testSampleShop(t *testing.T, clone string, env []string) {
	shop := t.TempDir()
	run(t, clone, nil, "git", "archive", "-o", filepath.Join(shop, "shop.tar"), testVersion+":examples/sample-shop")
	run(t, shop, nil, "tar", "-xf", "shop.tar")
	run(t, shop, env, "go", "mod", "tidy")
	run(t, shop, env, "go", "build", "-o", "sample-shop", ".")
	run(t, shop, env, "go", "tool", "carillon-generate", "-check", "./...")
	requireOwn(t, shop, env, "SDK, tracing, generator, proto, and for tests schedule", 5)
}

// requireOwn looks at the go.mod of an application: it requires so many modules of the
// repository, all in the version of the tag, and replaces none.
func requireOwn(t *testing.T, app string, env []string, which string, n int) {
	t.Helper()
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []any
	}
	require.NoError(t, json.Unmarshal([]byte(run(t, app, env, "go", "mod", "edit", "-json")), &mod))
	require.Empty(t, mod.Replace)
	own := 0
	for _, m := range mod.Require {
		if strings.HasPrefix(m.Path, repository) {
			require.Equal(t, testVersion, m.Version, m.Path)
			own++
		}
	}
	require.Equal(t, n, own, which)
}

// testInstall is go install of the command. Its binary knows its version and has the pages.
func testInstall(t *testing.T, _ string, env []string) {
	bin := t.TempDir()
	run(t, bin, append(env, "GOBIN="+bin), "go", "install", repository+"/cmd/carillon@"+testVersion)
	program := filepath.Join(bin, "carillon")
	require.Contains(t, run(t, bin, nil, program, "version"), testVersion)

	ctx, cancel := context.WithCancel(t.Context())
	server := exec.CommandContext(ctx, program, "server", "--data", t.TempDir(), "--http", "127.0.0.1:0", "--executors", "127.0.0.1:0")
	server.Cancel = func() error { return server.Process.Signal(os.Interrupt) }
	said, err := server.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	var log strings.Builder
	url := ""
	for lines := bufio.NewScanner(said); url == "" && lines.Scan(); {
		log.WriteString(lines.Text() + "\n")
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(lines.Text())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained) // at the end of the server
		_, _ = io.Copy(io.Discard, said)
	}()
	t.Cleanup(func() {
		cancel()
		<-drained
		_ = server.Wait() // it was interrupted
	})
	require.NotEmpty(t, url, log.String())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), "pages of the tag")
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
}

// offer writes a module of the repository's tag into the folder of a proxy.
func offer(t *testing.T, proxy, clone, dir string) {
	t.Helper()
	v := module.Version{Path: path.Join(repository, dir), Version: testVersion}
	tag := path.Join(dir, testVersion)
	versions := filepath.Join(proxy, filepath.FromSlash(v.Path), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	mod := run(t, clone, nil, "git", "show", tag+":"+path.Join(dir, "go.mod"))
	require.NoError(t, os.WriteFile(filepath.Join(versions, testVersion+".mod"), []byte(mod), 0o600))
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, testVersion, time.Now().UTC().Format(time.RFC3339))
	require.NoError(t, os.WriteFile(filepath.Join(versions, testVersion+".info"), []byte(info), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(versions, "list"), []byte(testVersion+"\n"), 0o600))
	f, err := os.Create(filepath.Join(versions, testVersion+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromVCS(f, v, clone, tag, dir))
	require.NoError(t, f.Close())
}

// run runs a program to its end and returns what it says.
func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s\n%s%s", name, strings.Join(args, " "), out, stderr.String())
	return string(out)
}
