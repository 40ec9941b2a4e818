package deptest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

const root = "../.."

// modules are the folders of go.work.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.work"))
	require.NoError(t, err)
	for _, found := range regexp.MustCompile(`(?m)^\t(\.\S*)$`).FindAllSubmatch(text, -1) {
		folders = append(folders, string(found[1]))
	}
	require.Contains(t, folders, "./executor-sdk")
	return folders
}

func TestImportsFollowTheRooms(t *testing.T) {
	_, err := deptest.Sources(root)
	require.NoError(t, err)
	var packages []deptest.Package
	for _, module := range modules(t) {
		listed, err := deptest.List(t.Context(), filepath.Join(root, module))
		require.NoError(t, err)
		packages = append(packages, listed...)
	}
	require.True(t, slices.ContainsFunc(packages, func(pkg deptest.Package) bool {
		return pkg.ImportPath == deptest.Module+"/internal/deptest"
	}), "go list did not even find this package")
	for _, broken := range deptest.Check(packages, deptest.Carillon()) {
		t.Error(broken)
	}
}

// A test waits for a signal, not for a while. In a synctest bubble Sleep only
// moves virtual time: files that import the package, or the SDK's own that
// makes one, may use it.
func TestSleepOnlyInBubbles(t *testing.T) {
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	for _, source := range sources {
		if !strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		require.NoError(t, err)
		if sleeps(file) && !imports(file, "testing/synctest") && !imports(file, deptest.Module+"/executor-sdk/executortest") {
			t.Errorf("%s sleeps outside of a synctest bubble: wait for a signal", source)
		}
	}
}

func TestSleeps(t *testing.T) {
	for source, want := range map[string]bool{
		"func f() { time.Sleep(1) }":                 true,
		"func f() { x := time.Sleep; x(1) }":         true,
		"// time.Sleep(1)\nvar _ = time.Now":         false,
		"var _ = \"time.Sleep(1)\"; var _ = a.Sleep": false,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+source, 0)
		require.NoError(t, err)
		require.Equal(t, want, sleeps(file), source)
	}
}

func sleeps(file *ast.File) (found bool) {
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == "Sleep" {
			pkg, ok := selector.X.(*ast.Ident)
			found = found || ok && pkg.Name == "time"
		}
		return !found
	})
	return found
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Path.Value == strconv.Quote(path)
	})
}

// The linter's settings repeat the libraries, so that editors can tell at
// once; neither list may know one that the other does not.
func TestLinterKnowsTheSameLibraries(t *testing.T) {
	settings, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	require.NoError(t, err)
	var inLinter, inRules []string
	for _, match := range regexp.MustCompile(`\{ pkg: ([^ ,]+)`).FindAllSubmatch(settings, -1) {
		inLinter = append(inLinter, string(match[1]))
	}
	for _, library := range deptest.Carillon().Libraries {
		inRules = append(inRules, library.Path)
	}
	require.ElementsMatch(t, inRules, inLinter)
}

func TestEveryRuleNamesKnownRoomsAndAReason(t *testing.T) {
	rules := deptest.Carillon()
	known := map[string]bool{}
	for _, room := range rules.Rooms {
		require.False(t, known[room.Path], "%s twice", room.Path)
		known[room.Path] = true
		require.NotEmpty(t, room.Why, room.Path)
	}
	for _, room := range rules.Rooms {
		for _, may := range room.May {
			require.True(t, known[may], "%s may import %q, which is no room", room.Path, may)
		}
	}
	for _, library := range rules.Libraries {
		require.NotEmpty(t, library.Why, library.Path)
		for _, room := range library.Rooms {
			require.True(t, known[room], "%s is for %q, which is no room", library.Path, room)
		}
	}
}
