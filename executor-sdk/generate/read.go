package generate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Package is what the markers of one package say.
type Package struct {
	Name   string
	Groups []Group

	away []away
}

// reader turns the markers of a source into groups.
type reader struct {
	*source
	opts   Options
	groups map[string]*Group
	names  map[string]token.Position // clock name → where it was first used
}

// readPackage reads the markers of dir. It returns nil without an error when
// the package has none.
func readPackage(dir string, opts Options) (*Package, error) {
	r := &report{}
	s, err := loadSource(dir, r)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, r.err()
	}
	rd := &reader{source: s, opts: opts, groups: map[string]*Group{}, names: map[string]token.Position{}}
	rd.readTimers()
	rd.readClocks()
	for _, name := range reserved {
		if pos, taken := s.names[name]; taken && len(rd.groups) > 0 {
			r.add(s.fset.Position(pos), "rename it: the generated code uses this name", "%s is declared already", name)
		}
	}
	s.reportStray()
	p := rd.result()
	if err := r.err(); err != nil {
		return nil, err
	}
	if len(p.Groups) == 0 {
		return nil, nil
	}
	return p, nil
}

// readTimers finds the marked types.
func (rd *reader) readTimers() {
	for _, file := range rd.files {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				continue
			}
			for _, spec := range decl.Specs {
				t := spec.(*ast.TypeSpec) // TYPE declarations have no others
				docs := []*ast.CommentGroup{t.Doc}
				if !decl.Lparen.IsValid() {
					docs = append(docs, decl.Doc)
				}
				rd.readType(t, rd.take(docs...))
			}
		}
	}
}

func (rd *reader) readType(t *ast.TypeSpec, markers []*marker) {
	for i, m := range markers {
		switch {
		case m.kind != kindTimer:
			rd.r.add(m.pos, "put it above a method of "+t.Name.Name, "carillon:clock on a type")
		case i > 0:
			rd.r.add(m.pos, "remove one of them", "type %s has two timer markers", t.Name.Name)
		default:
			rd.checkType(t)
			g := &Group{Name: kebab(t.Name.Name), Type: t.Name.Name, Register: "Register" + t.Name.Name}
			readTimer(m, g, rd.r)
			if g.Proxy && g.ProxyDir == "" {
				for _, n := range proxyNames(g.Type) {
					if pos, taken := rd.source.names[n]; taken {
						rd.r.add(rd.fset.Position(pos), "rename it: the generated proxy has this name", "%s is declared already", n)
					}
				}
			}
			for _, other := range rd.groups {
				if other.Name == g.Name {
					rd.r.add(m.pos, "give one of them another name=…", "timer name %q is used by type %s already", g.Name, other.Type)
				}
			}
			if pos, taken := rd.source.names[g.Register]; taken {
				rd.r.add(rd.fset.Position(pos), "rename it: the generated function has this name", "%s is declared already", g.Register)
			}
			rd.groups[g.Type] = g
		}
	}
}

func (rd *reader) checkType(t *ast.TypeSpec) {
	at := rd.fset.Position(t.Name.Pos())
	_, isInterface := t.Type.(*ast.InterfaceType)
	switch {
	case !t.Name.IsExported():
		rd.r.add(at, "rename it to "+exported(t.Name.Name), "type %s with a timer marker is not exported", t.Name.Name)
	case t.Assign.IsValid():
		rd.r.add(at, "mark the type itself", "type %s with a timer marker is an alias", t.Name.Name)
	case t.TypeParams != nil:
		rd.r.add(at, "mark a type without type parameters", "type %s with a timer marker is generic", t.Name.Name)
	case isInterface:
		rd.r.add(at, "mark the type that implements it", "type %s with a timer marker is an interface", t.Name.Name)
	}
}

// readClocks finds the marked methods.
func (rd *reader) readClocks() {
	for _, file := range rd.files {
		for _, d := range file.Decls {
			decl, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, m := range rd.take(decl.Doc) {
				rd.readMethod(decl, m)
			}
		}
	}
}

func (rd *reader) readMethod(decl *ast.FuncDecl, m *marker) {
	at := rd.fset.Position(decl.Name.Pos())
	if m.kind != kindClock {
		rd.r.add(m.pos, "put it above the type", "carillon:timer on a function")
		return
	}
	if decl.Recv == nil {
		rd.r.add(m.pos, "make it a method of a type with a //carillon:timer marker, or call executor.Handle yourself",
			"carillon:clock on the function %s", decl.Name.Name)
		return
	}
	receiver := receiverName(decl)
	g := rd.groups[receiver]
	if g == nil {
		rd.r.add(m.pos, "add //carillon:timer above type "+receiver, "the receiver type %s has no timer marker", receiver)
		return
	}
	if !decl.Name.IsExported() {
		rd.r.add(at, "rename it to "+exported(decl.Name.Name), "method %s with a clock marker is not exported", decl.Name.Name)
	}
	c := readClock(m, rd.opts, rd.r)
	handler := rd.methods[receiver][decl.Name.Name]
	if sig, ok := rd.handlerSignature(handler); ok {
		c.clock.Input, c.clock.Output = rd.text(sig.in), rd.text(sig.out)
		c.clock.sig, c.clock.imports = sig, handler.importsOf(sig.in, sig.out)
		c.clock.successFails, c.clock.failureFails = rd.mayFail(receiver, c.clock.OnSuccess), rd.mayFail(receiver, c.clock.OnFailure)
		if o, given := c.at["name"]; given && len(c.clock.Name) > longest(c.clock) {
			rd.r.add(o.valuePos, fmt.Sprintf("use at most %d bytes: callbacks add to it", longest(c.clock)), "name=%q is too long for a clock with callbacks", c.clock.Name)
		}
		for _, key := range []string{"on-success", "on-failure"} {
			if o, given := c.at[key]; given {
				rd.checkCallback(receiver, o, handler, sig)
			}
		}
		if o, given := c.at["input"]; given && sig.in == nil {
			rd.r.add(o.pos, "remove it, or take the input as second parameter", "method %s takes no input", decl.Name.Name)
		}
	}
	if first, taken := rd.names[c.clock.Name]; taken {
		rd.r.add(m.pos, "give one of them another name", "clock name %q is used at %s already", c.clock.Name, first)
	} else if c.clock.Name != "" {
		rd.names[c.clock.Name] = m.pos
	}
	c.clock.Method = decl.Name.Name
	g.Clocks = append(g.Clocks, c.clock)
}

// result sorts groups by type and clocks by name, so that moving code around
// does not change the output.
func (rd *reader) result() *Package {
	p := &Package{Name: rd.pkg}
	for _, typ := range slices.Sorted(maps.Keys(rd.groups)) {
		g := rd.groups[typ]
		if len(g.Clocks) == 0 {
			rd.r.add(rd.fset.Position(rd.types[typ].Name.Pos()),
				"mark a method with //carillon:clock name=…, or remove the timer marker", "type %s has a timer marker but no clock", typ)
		}
		slices.SortFunc(g.Clocks, func(a, b Clock) int { return cmp.Compare(a.Name, b.Name) })
		p.Groups = append(p.Groups, *g)
	}
	p.away = rd.proxiesAway(p)
	return p
}

func exported(name string) string {
	runes := []rune(name)
	runes[0] = unicode.ToUpper(runes[0])
	return string(runes)
}

// kebab turns ShopOrders into shop-orders and HTTPPing into http-ping.
func kebab(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, c := range runes {
		if unicode.IsUpper(c) && i > 0 {
			next := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(runes[i-1]) || next {
				out.WriteByte('-')
			}
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}
