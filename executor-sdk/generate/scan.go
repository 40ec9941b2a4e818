package generate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the generated files.
const (
	GoFile       = "carillon_gen.go"
	ProxyFile    = "carillon_proxy.go"
	ClientFile   = "carillon_client.go" // the proxies, in the folder that proxy=… names
	ManifestFile = "carillon_manifest.json"
)

// source is one package as syntax, with its markers.
type source struct {
	dir      string
	pkg      string
	fset     *token.FileSet
	files    []*ast.File
	markers  map[*ast.Comment]*marker
	types    map[string]*ast.TypeSpec
	declared map[string]declaration        // the same, with what surrounds it
	methods  map[string]map[string]*method // receiver type → name → method
	names    map[string]token.Pos          // package-level names
	r        *report
}

// method is a method with what its file's imports are called.
type method struct {
	decl    *ast.FuncDecl
	imports map[string]string // local name → path
}

// loadSource parses the Go files of dir that the current platform builds,
// without tests and without our own output. It returns nil when there are none.
func loadSource(dir string, r *report) (*source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	s := &source{
		dir: dir, declared: map[string]declaration{}, fset: token.NewFileSet(), markers: map[*ast.Comment]*marker{}, r: r,
		types: map[string]*ast.TypeSpec{}, methods: map[string]map[string]*method{}, names: map[string]token.Pos{},
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || name == GoFile || name == ProxyFile {
			continue
		}
		if err := s.parse(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	if len(s.files) == 0 {
		return nil, nil
	}
	return s, nil
}

func (s *source) parse(path string) error {
	file, err := parser.ParseFile(s.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	var list scanner.ErrorList
	if errors.As(err, &list) {
		for _, e := range list {
			s.r.add(e.Pos, "", "%s", e.Msg)
		}
		return nil
	} else if err != nil {
		return fmt.Errorf("read source: %w", err)
	}
	built, err := build.Default.MatchFile(filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return fmt.Errorf("read build constraints: %w", err)
	}
	if !built {
		s.refuseMarkers(file)
		return nil
	}
	if s.pkg == "" {
		s.pkg = file.Name.Name
	} else if s.pkg != file.Name.Name {
		s.r.add(s.fset.Position(file.Name.Pos()), "keep one package per folder",
			"package %s beside package %s", file.Name.Name, s.pkg)
	}
	s.files = append(s.files, file)
	s.index(file)
	for _, group := range file.Comments {
		for _, c := range group.List {
			if m := parseMarker(c.Text, s.fset.Position(c.Pos()), s.r); m != nil {
				s.markers[c] = m
			}
		}
	}
	return nil
}

// refuseMarkers reports markers in a file that this platform does not build:
// the registration code would not compile elsewhere, or miss handlers here.
func (s *source) refuseMarkers(file *ast.File) {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, prefix) {
				s.r.add(s.fset.Position(c.Pos()), "move the marked type and its methods to a file without them",
					"marker in a file with build constraints")
			}
		}
	}
}

// index notes types, methods and package-level names of one file.
func (s *source) index(file *ast.File) {
	imports := importNames(file)
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				s.names[d.Name.Name] = d.Name.Pos()
				continue
			}
			receiver := receiverName(d)
			if s.methods[receiver] == nil {
				s.methods[receiver] = map[string]*method{}
			}
			s.methods[receiver][d.Name.Name] = &method{decl: d, imports: imports}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					s.types[spec.Name.Name] = spec
					s.declared[spec.Name.Name] = s.declaration(d, spec, imports)
					s.names[spec.Name.Name] = spec.Name.Pos()
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						s.names[n.Name] = n.Pos()
					}
				}
			}
		}
	}
}

// declaration notes a type with its comment, which stands above it or, when it
// is alone, above the keyword.
func (s *source) declaration(d *ast.GenDecl, spec *ast.TypeSpec, imports map[string]string) declaration {
	doc := spec.Doc
	if doc == nil && !d.Lparen.IsValid() {
		doc = d.Doc
	}
	return declaration{spec: spec, doc: doc, imports: imports, file: s.fset.Position(spec.Pos()).Filename}
}

// take returns the markers among a declaration's comments and forgets them,
// so that what is left over in the end stands in a wrong place.
func (s *source) take(docs ...*ast.CommentGroup) []*marker {
	var out []*marker
	for _, doc := range docs {
		if doc == nil {
			continue
		}
		for _, c := range doc.List {
			if m := s.markers[c]; m != nil {
				out = append(out, m)
				delete(s.markers, c)
			}
		}
	}
	return out
}

// reportStray reports markers that stand above no type and no method.
func (s *source) reportStray() {
	for _, m := range s.markers {
		s.r.add(m.pos, "put it directly above a type (timer) or a method (clock), without a blank line between",
			"carillon:%s belongs to nothing", m.kind)
	}
}

// importNames maps the local names of a file's imports to their paths. The
// default name is the last path element without a version.
func importNames(file *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, "\"`")
		if spec.Name != nil {
			out[spec.Name.Name] = path
			continue
		}
		parts := strings.Split(path, "/")
		if n := len(parts); n > 1 && isMajor(parts[n-1]) {
			parts = parts[:n-1]
		}
		out[parts[len(parts)-1]] = path
	}
	return out
}

func isMajor(s string) bool {
	return len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789") == ""
}

// receiverName is the name of a method's receiver type, without pointer and
// type parameters.
func receiverName(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// sortedMethods returns the methods of a type in the order of the source:
// by file name, then by position.
func (s *source) sortedMethods(receiver string) []*method {
	var out []*method
	for _, m := range s.methods[receiver] {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *method) int { return int(a.decl.Pos() - b.decl.Pos()) })
	return out
}
