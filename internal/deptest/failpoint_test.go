package deptest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

// A build without the tag takes two files of the package: its words, and a
// Hit without a body.
func TestReleasesHoldNoFailpoints(t *testing.T) {
	list := exec.Command("go", "list", "-tags=nomsgpack", "-f", "{{.GoFiles}}", "./failpoint")
	list.Dir = filepath.Join(root, "proto")
	list.Env = append(os.Environ(), "GOFLAGS=")
	require.Equal(t, []string{"[doc.go", "off.go]"}, outputOf(t, list))

	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "proto/failpoint/off.go"), nil, 0)
	require.NoError(t, err)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			require.Equal(t, "Hit", f.Name.Name)
			require.Empty(t, f.Body.List)
		}
	}
	for _, script := range []string{"Makefile", ".ci/run", "build/test.sh"} {
		raw, err := os.ReadFile(filepath.Join(root, script))
		require.NoError(t, err)
		withoutVet := regexp.MustCompile(`vet -tags=[^ ]*failpoints`).ReplaceAll(raw, nil) // it makes no program
		require.NotRegexp(t, `tags[= ][^ ]*failpoints`, string(withoutVet), script)
	}
}

// What a point's name costs to make must not be paid in a release: either the
// name is a constant, or the call stands below if failpoint.Enabled, or in a file
// that only builds with failpoints have.
func TestFailpointsCostNothing(t *testing.T) {
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	points := 0
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
		require.NoError(t, err)
		if len(file.Comments) > 0 && file.Comments[0].List[0].Text == "//go:build failpoints" {
			continue
		}
		guarded := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if check, ok := n.(*ast.IfStmt); ok && isFailpoint(check.Cond, "Enabled") {
				ast.Inspect(check.Body, func(n ast.Node) bool { guarded[n] = true; return true })
			}
			call, ok := n.(*ast.CallExpr)
			if !ok || !isFailpoint(call.Fun, "Hit") && !isHit(call.Fun) {
				return true
			}
			points++
			if _, constant := call.Args[0].(*ast.BasicLit); !constant && !guarded[call] {
				t.Errorf("%s calls failpoint.Hit with a computed name outside of if failpoint.Enabled", source)
			}
			return true
		})
	}
	require.Greater(t, points, 3)
}

// isHit finds the calls of the SDK, which reach the package behind a build tag only.
func isHit(e ast.Expr) bool {
	f, ok := e.(*ast.Ident)
	return ok && f.Name == "hitPoint"
}

func isFailpoint(e ast.Expr, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "failpoint"
}

// docs/dev/failpoints.md is the list that people have: it must name every point,
// and no step that the store does not take.
func TestFailpointsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "docs/dev/failpoints.md"))
	require.NoError(t, err)
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	steps := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		store := strings.Contains(filepath.ToSlash(source), "store/gormstore/")
		named := strings.HasPrefix(filepath.Base(source), "failpoint")
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			if store {
				steps[strings.ReplaceAll(text, " ", "-")] = true
			}
			if named && regexp.MustCompile(`^(send|journal)-[a-z-]+$`).MatchString(text) {
				require.Contains(t, string(raw), "`"+text+"`", source)
			}
			return true
		})
	}
	table, _, _ := strings.Cut(string(raw), "Every frame has")
	found := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1)
	require.Greater(t, len(found), 10)
	for _, step := range found {
		require.True(t, steps[step[1]], "no transaction is called %q", step[1])
	}
}
