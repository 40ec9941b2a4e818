package deptest_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

// users are the modules that applications are built with.
var users = []string{"proto", "schedule", "executor-sdk", "executor-sdk/generate", "executor-sdk/tracing"}

// moduleFile is what matters of a go.mod.
type moduleFile struct {
	Go        string
	Toolchain string
	Require   []struct{ Path string }
	Replace   []any
}

func moduleOf(t *testing.T, folder string) (m moduleFile, minor int) {
	t.Helper()
	edit := exec.Command("go", "mod", "edit", "-json")
	edit.Dir = filepath.Join(root, folder)
	out, err := edit.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, json.Unmarshal(out, &m))
	parts := strings.Split(m.Go, ".")
	require.Len(t, parts, 3, "%s: go %s", folder, m.Go)
	minor, err = strconv.Atoi(parts[1])
	require.NoError(t, err)
	return m, minor
}

// alone writes a workspace with the module alone and returns its path for GOWORK. In it the
// versions of libraries are those that a user gets: the workspace of this repository has the
// highest ones of all modules.
func alone(t *testing.T, folder string) string {
	t.Helper()
	below := func(folder string) string {
		abs, err := filepath.Abs(filepath.Join(root, folder))
		require.NoError(t, err)
		return abs
	}
	m, _ := moduleOf(t, folder)
	text := fmt.Sprintf("go %s\n\nuse %s\n", m.Go, below(folder))
	for _, user := range users {
		text += fmt.Sprintf("replace %s/%s v0.0.0 => %s\n", deptest.Module, user, below(user))
	}
	name := filepath.Join(t.TempDir(), "go.work")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// TestUsersNeedNoNewerGo: the modules of applications take the release before the
// one that the admin is built with, from its first version on, and force nobody
// to download another.
func TestUsersNeedNoNewerGo(t *testing.T) {
	_, newest := moduleOf(t, ".")
	for _, folder := range users {
		m, minor := moduleOf(t, folder)
		require.Equal(t, newest-1, minor, folder)
		require.True(t, strings.HasSuffix(m.Go, ".0"), "%s: go %s", folder, m.Go)
		require.Empty(t, m.Toolchain, folder)

		// With that line the compiler refuses what the language had not then; what
		// the libraries ask for is refused where it is newer.
		build := exec.Command("go", "build", "-gcflags=-lang=go1."+strconv.Itoa(minor), "./...")
		build.Dir = filepath.Join(root, folder)
		build.Env = append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=-tags=nomsgpack -trimpath", "GOWORK="+alone(t, folder))
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		list := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.GoVersion}}", "all")
		list.Dir, list.Env = build.Dir, append(build.Env, "GOFLAGS=")
		out, err = list.CombinedOutput()
		require.NoError(t, err, "%s", out)
		for line := range strings.Lines(string(out)) {
			require.NotContains(t, line, " 1."+strconv.Itoa(newest)+".", folder)
		}
	}
}

// TestNoModuleReplacesAnother: a replacement in a go.mod keeps "go install" of the version
// from working, and holds in this repository alone. go.work joins the modules here.
func TestNoModuleReplacesAnother(t *testing.T) {
	for _, folder := range modules(t) {
		m, _ := moduleOf(t, folder)
		require.Empty(t, m.Replace, "%s/go.mod: let go.work replace it", folder)
	}
}

// TestUsersCallNothingNewer holds their sources against the list of what the
// newest release has added to the standard library.
func TestUsersCallNothingNewer(t *testing.T) {
	_, newest := moduleOf(t, ".")
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "api", "go1."+strconv.Itoa(newest)+".txt"))
	require.NoError(t, err)
	added := map[string]bool{} // for example "errors.AsType"
	for _, m := range regexp.MustCompile(`(?m)^pkg ([\w/]+)(?: \([\w-]+\))?, (?:func|type|var|const) (\w+)(.*)`).FindAllStringSubmatch(string(raw), -1) {
		if member := strings.HasPrefix(m[3], " struct, ") || strings.HasPrefix(m[3], " interface, "); !member { // of an older type
			added[m[1]+"."+m[2]] = true
		}
	}
	require.Greater(t, len(added), 5)
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	looked := 0
	for _, source := range sources {
		name, err := filepath.Rel(root, source)
		require.NoError(t, err)
		if top, _, _ := strings.Cut(filepath.ToSlash(name), "/"); !slices.Contains(users, top) {
			continue
		}
		looked++
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		require.NoError(t, err)
		imports := map[string]string{}
		for _, i := range file.Imports {
			at, _ := strconv.Unquote(i.Path.Value)
			called := path.Base(at)
			if i.Name != nil {
				called = i.Name.Name
			}
			imports[called] = at
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && added[imports[x.Name]+"."+s.Sel.Name] {
					t.Errorf("%s uses %s.%s, which Go 1.%d has brought", name, x.Name, s.Sel.Name, newest)
				}
			}
			return true
		})
	}
	require.Greater(t, looked, 100)
}
