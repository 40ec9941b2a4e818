//go:build proof && linux

package packaging

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
)

// TestModulesOfATag tags a clone as a release is tagged, offers its modules as a
// module proxy does, and uses the SDK in a folder of its own: go get, the README's
// first program, tracing and the generator, and no replacement in go.mod.
func TestModulesOfATag(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "clone")
	top := strings.TrimSpace(run(t, "..", nil, "git", "rev-parse", "--show-toplevel"))
	run(t, ".", nil, "git", "clone", "-q", "--depth", "1", "file://"+top, clone)
	author := []string{"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@localhost"}
	run(t, clone, author, "build/tag.sh", testVersion)

	proxy := t.TempDir()
	// What others made is in this machine's cache, if it is of these modules.
	cache := strings.TrimSpace(run(t, ".", nil, "go", "env", "GOMODCACHE"))
	for _, m := range []string{"proto", "schedule", "executor-sdk", "executor-sdk/generate", "executor-sdk/tracing"} {
		offer(t, proxy, clone, m)
		run(t, filepath.Join("..", m), nil, "go", "mod", "download")
	}
	env := []string{
		"GOPROXY=file://" + proxy + ",file://" + filepath.Join(cache, "cache", "download"), "GOSUMDB=off",
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=0",
	}

	app := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(app, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(app, name), []byte(text), 0o600))
	}
	first, err := os.ReadFile("../executor-sdk/examples/first/main.go")
	require.NoError(t, err)
	write("main.go", string(first))
	write("traced/traced.go", "package traced\n\nimport _ \""+repository+"/executor-sdk/tracing\"\n")
	run(t, app, env, "go", "mod", "init", "example.com/shop")
	run(t, app, env, "go", "get", repository+"/executor-sdk@"+testVersion, repository+"/executor-sdk/tracing@"+testVersion)
	run(t, app, env, "go", "mod", "tidy")
	run(t, app, env, "go", "build", "./...", repository+"/executor-sdk/generate/cmd/carillon-generate")

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
	require.Equal(t, 3, own, "SDK, tracing and proto")
}

// offer writes a module of the repository's tag into the folder of a proxy.
func offer(t *testing.T, proxy, clone, dir string) {
	t.Helper()
	v := module.Version{Path: repository + "/" + dir, Version: testVersion}
	versions := filepath.Join(proxy, filepath.FromSlash(v.Path), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	mod := run(t, clone, nil, "git", "show", dir+"/"+testVersion+":"+dir+"/go.mod")
	require.NoError(t, os.WriteFile(filepath.Join(versions, testVersion+".mod"), []byte(mod), 0o600))
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, testVersion, time.Now().UTC().Format(time.RFC3339))
	require.NoError(t, os.WriteFile(filepath.Join(versions, testVersion+".info"), []byte(info), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(versions, "list"), []byte(testVersion+"\n"), 0o600))
	f, err := os.Create(filepath.Join(versions, testVersion+".zip"))
	require.NoError(t, err)
	require.NoError(t, zip.CreateFromVCS(f, v, clone, dir+"/"+testVersion, dir))
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
