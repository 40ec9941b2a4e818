package deptest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/internal/deptest"
)

// rootFiles is how many files without tests package admin has: it is wiring.
const rootFiles = 10

// mostFiles is how many files a package of the product has, without tests: more are
// not read as one thing.
const mostFiles = 40

func TestPackagesAreSmall(t *testing.T) {
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	files := map[string]int{}
	for _, source := range sources {
		name, err := filepath.Rel(root, source)
		require.NoError(t, err)
		if !strings.HasSuffix(name, "_test.go") {
			files[filepath.ToSlash(filepath.Dir(name))]++
		}
	}
	require.Greater(t, len(files), 100)
	require.Less(t, files["admin"], rootFiles+1, "behaviour belongs to a room of its own")
	rules := deptest.Carillon()
	for path, n := range files {
		if n > mostFiles && !rules.IsMachine(deptest.Module+"/"+path) {
			t.Errorf("%s has %d files without tests, and the most is %d: cut it by noun", path, n, mostFiles)
		}
	}
}

// mostMethods is how many methods a type of the product has, without generated code.
const mostMethods = 45

// large are the types with more methods, and how many they have. They may lose some.
var large = map[string]int{}

func TestTypesAreSmall(t *testing.T) {
	sources, err := deptest.Sources(root)
	require.NoError(t, err)
	methods := map[string]int{}
	rules := deptest.Carillon()
	for _, source := range sources {
		name, err := filepath.Rel(root, source)
		require.NoError(t, err)
		path := filepath.ToSlash(filepath.Dir(name))
		if strings.HasSuffix(name, "_test.go") || rules.IsMachine(deptest.Module+"/"+path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.ParseComments)
		require.NoError(t, err)
		if ast.IsGenerated(file) {
			continue
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				methods[path+"."+receiver(f.Recv.List[0].Type)]++
			}
		}
	}
	require.Positive(t, methods["admin.Admin"])
	for name, n := range methods {
		if n > max(mostMethods, large[name]) {
			t.Errorf("%s has %d methods, and the most is %d: cut it by noun", name, n, max(mostMethods, large[name]))
		}
	}
	for name, n := range large {
		require.Equal(t, n, methods[name], "%s has fewer methods now: lower its bound, or take it out", name)
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
