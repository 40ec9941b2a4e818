package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// away is the file with the proxies that belong into another folder: for
// callers that must not inherit what the handlers depend on. The types that
// handlers take and give are copied into it.
type away struct {
	dir     string // as the marker says, relative to the handlers' folder
	pkg     string
	groups  []Group
	imports map[string]string // local name → path, of what the copies name
	types   []string          // declarations, in the order in which they are needed
}

// declaration is a package-level type, and the comment and imports that it has.
type declaration struct {
	spec    *ast.TypeSpec
	doc     *ast.CommentGroup
	imports map[string]string // of its file
	file    string
}

// methodsOfJSON decide how a type is written: a copy without them is another type.
var methodsOfJSON = []string{"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "IsZero"}

// proxyDir reads proxy=../shopclient.
func proxyDir(o option, r *report) string {
	dir := path.Clean(o.value)
	relative := strings.HasPrefix(o.value, "./") || strings.HasPrefix(o.value, "../")
	if !relative || strings.Contains(o.value, `\`) || dir == "." {
		r.add(o.valuePos, "write proxy alone, or a folder like proxy=../shopclient", "proxy=%q is no folder beside this one", o.value)
		return ""
	}
	return dir
}

// proxiesAway collects, by folder, the proxies that are not written beside the
// handlers.
func (rd *reader) proxiesAway(p *Package) []away {
	var out []away
	for _, g := range p.Groups {
		if g.ProxyDir == "" {
			continue
		}
		i := slices.IndexFunc(out, func(a away) bool { return a.dir == g.ProxyDir })
		if i < 0 {
			i = len(out)
			out = append(out, away{dir: g.ProxyDir, imports: map[string]string{}})
		}
		out[i].groups = append(out[i].groups, g)
	}
	for i := range out {
		at := rd.fset.Position(rd.types[out[i].groups[0].Type].Name.Pos())
		var err error
		if out[i].pkg, err = packageName(filepath.Join(rd.dir, filepath.FromSlash(out[i].dir))); err != nil {
			rd.r.add(at, "name another folder", "proxy=%s: %v", out[i].dir, err)
		}
		rd.copyTypes(&out[i])
	}
	return out
}

// packageName is that of the Go files in dir, and without any made of its name.
func packageName(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if base := filepath.Base(file); strings.HasSuffix(base, "_test.go") || base == ClientFile {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err != nil {
			return "", err
		}
		return parsed.Name.Name, nil
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	name := strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) {
			return unicode.ToLower(c)
		}
		return -1
	}, filepath.Base(dir))
	if !token.IsIdentifier(name) {
		return "", fmt.Errorf("%q makes no package name", filepath.Base(dir))
	}
	return name, nil
}

// copyTypes copies what the methods of a's groups take and give, and what
// those types are made of, as far as it is declared in the handlers' package.
func (rd *reader) copyTypes(a *away) {
	queue := []string{}
	for _, g := range a.groups {
		for _, c := range proxied(g) {
			m := rd.methods[g.Type][c.Method]
			at := rd.fset.Position(m.decl.Name.Pos())
			for _, t := range []ast.Expr{c.sig.in, c.sig.out} {
				names := rd.needs(a, t, nil, m.imports, at)
				for _, name := range names {
					if !ast.IsExported(name) {
						rd.r.add(at, "rename it to "+exported(name), "type %s is not exported, so no other package can call %s", name, c.Method)
					}
				}
				queue = append(queue, names...)
			}
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		d := rd.declared[name]
		at := rd.fset.Position(d.spec.Name.Pos())
		for _, g := range a.groups {
			if slices.Contains(proxyNames(g.Type), name) {
				rd.r.add(at, "rename it: the generated proxy has this name", "%s is declared already", name)
			}
		}
		for _, method := range methodsOfJSON {
			if rd.methods[name][method] != nil {
				rd.r.add(at, "move it to a package of its own, which handlers and callers import",
					"type %s has the method %s, so it cannot be copied to proxy=%s", name, method, a.dir)
				break
			}
		}
		queue = append(queue, rd.needs(a, d.spec.Type, d.spec.TypeParams, d.imports, at)...)
		a.types = append(a.types, rd.declarationText(d))
	}
}

// needs lists the types of this package that t names, and notes its imports.
func (rd *reader) needs(a *away, t ast.Expr, params *ast.FieldList, imports map[string]string, at token.Position) []string {
	if t == nil {
		return nil
	}
	var out []string
	own := map[string]bool{} // type parameters
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field: // not its names
			ast.Inspect(n.Type, visit)
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				rd.noteImport(a, x.Name, imports, at)
			}
			return false
		case *ast.Ident:
			_, isType := rd.declared[n.Name]
			switch {
			case own[n.Name]:
			case isType:
				out = append(out, n.Name)
			case types.Universe.Lookup(n.Name) == nil && n.Name != "_":
				rd.r.add(at, "write it out, or move the type to a package that callers import too",
					"a type that callers need names %s, which cannot be copied", n.Name)
			}
		}
		return true
	}
	if params != nil {
		for _, f := range params.List {
			for _, name := range f.Names {
				own[name.Name] = true
			}
		}
		for _, f := range params.List {
			ast.Inspect(f.Type, visit)
		}
	}
	ast.Inspect(t, visit)
	return out
}

func (rd *reader) noteImport(a *away, name string, imports map[string]string, at token.Position) {
	p := imports[name]
	if p == "" {
		return // the compiler tells
	}
	if other := a.imports[name]; other != "" && other != p {
		rd.r.add(at, "give one of them another name", "the import %q is called %s here, and %q elsewhere", p, name, other)
	}
	a.imports[name] = p
}

// declarationText is the declaration of one type as it stands in the source, with its
// comments, but for directives.
func (rd *reader) declarationText(d declaration) string {
	source, err := os.ReadFile(d.file)
	if err != nil {
		rd.r.add(rd.fset.Position(d.spec.Pos()), "", "read source: %v", err)
		return ""
	}
	var out strings.Builder
	if d.doc != nil {
		for _, c := range d.doc.List {
			if strings.HasPrefix(c.Text, prefix) || strings.HasPrefix(c.Text, "//go:") {
				continue
			}
			out.WriteString(c.Text + "\n")
		}
	}
	end := d.spec.End()
	if d.spec.Comment != nil {
		end = d.spec.Comment.End()
	}
	out.WriteString("type ")
	out.Write(source[rd.fset.Position(d.spec.Pos()).Offset:rd.fset.Position(end).Offset])
	return strings.TrimSuffix(out.String(), "\n")
}

// goneClients lists the files that an earlier manifest of dir says were written
// elsewhere, and that are not wanted any more.
func goneClients(dir string, wanted []File) ([]File, error) {
	raw, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read generated file: %w", err)
	}
	var old struct{ Groups []Group }
	if json.Unmarshal(raw, &old) != nil {
		return nil, nil // it is replaced
	}
	var out []File
	for _, g := range old.Groups {
		name := clientFile(g.ProxyDir)
		has := func(f File) bool { return f.Name == name }
		if g.ProxyDir != "" && !slices.ContainsFunc(wanted, has) && !slices.ContainsFunc(out, has) {
			out = append(out, File{Name: name})
		}
	}
	return out, nil
}

// clientFile is the path of the file for a folder, from the handlers' folder.
func clientFile(dir string) string {
	return filepath.Join(filepath.FromSlash(dir), ClientFile)
}
