package generate

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"strconv"
)

// signature is what a marked method takes and gives besides the context and
// the error; nil = nothing.
type signature struct {
	in, out ast.Expr
}

const wantHandler = "want func(context.Context) error, func(context.Context, In) error, " +
	"func(context.Context) (Out, error) or func(context.Context, In) (Out, error)"

// handlerSignature checks the method of a clock.
func (s *source) handlerSignature(m *method) (signature, bool) {
	params, results := flatten(m.decl.Type.Params), flatten(m.decl.Type.Results)
	at := s.fset.Position(m.decl.Name.Pos())
	wrong := func(what string, args ...any) (signature, bool) {
		s.r.add(at, wantHandler, "method %s "+what, append([]any{m.decl.Name.Name}, args...)...)
		return signature{}, false
	}
	switch {
	case len(params) == 0 || !m.isContext(params[0]):
		return wrong("does not take a context.Context first")
	case len(params) > 2:
		return wrong("takes %d values after the context, at most one is possible", len(params)-1)
	case len(results) == 0 || !isError(results[len(results)-1]):
		return wrong("does not return an error last")
	case len(results) > 2:
		return wrong("returns %d values, at most one beside the error is possible", len(results))
	}
	var sig signature
	if len(params) == 2 {
		sig.in = params[1]
	}
	if len(results) == 2 {
		sig.out = results[0]
	}
	for name, t := range map[string]ast.Expr{"input": sig.in, "output": sig.out} {
		switch t.(type) {
		case *ast.Ellipsis:
			return wrong("is variadic")
		case *ast.ChanType, *ast.FuncType:
			return wrong("has an %s that cannot be JSON", name)
		}
	}
	return sig, true
}

// checkCallback checks the method that on-success or on-failure names.
func (s *source) checkCallback(receiver string, o option, handler *method, sig signature) {
	m := s.methods[receiver][o.value]
	if m == nil {
		var names []string
		for _, other := range s.sortedMethods(receiver) {
			if other != handler {
				names = append(names, other.decl.Name.Name)
			}
		}
		fix := "add the method to " + receiver
		if len(names) > 0 {
			fix = nearMiss(o.value, names)
		}
		s.r.add(o.valuePos, fix, "%s=%s: type %s has no such method", o.key, o.value, receiver)
		return
	}
	want, fits := s.callbackFits(o.key, m, handler, sig)
	if !fits {
		s.r.add(s.fset.Position(m.decl.Name.Pos()), "want "+want,
			"method %s does not fit as %s of %s", o.value, o.key, handler.decl.Name.Name)
	}
}

func (s *source) callbackFits(key string, m, handler *method, sig signature) (want string, fits bool) {
	params, results := flatten(m.decl.Type.Params), flatten(m.decl.Type.Results)
	fits = (len(results) == 0 || len(results) == 1 && isError(results[0])) && len(params) > 0 && m.isContext(params[0])
	switch {
	case key == "on-failure":
		return "func(context.Context, error); it may return an error", fits && len(params) == 2 && isError(params[1])
	case sig.out == nil:
		return "func(context.Context), because " + handler.decl.Name.Name + " has no output; it may return an error", fits && len(params) == 1
	default:
		return "func(context.Context, " + s.text(sig.out) + "); it may return an error",
			fits && len(params) == 2 && s.canonical(params[1], m) == s.canonical(sig.out, handler)
	}
}

// mayFail reports whether the method returns something, which callbackFits has
// found to be an error.
func (s *source) mayFail(receiver, name string) bool {
	m := s.methods[receiver][name]
	return m != nil && len(flatten(m.decl.Type.Results)) > 0
}

// canonical writes a type with import paths instead of local names, so that
// files which rename an import still agree.
func (s *source) canonical(t ast.Expr, m *method) string {
	copied, err := parser.ParseExpr(s.text(t)) // a copy that may be changed
	if err != nil {
		return s.text(t)
	}
	ast.Inspect(copied, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok {
				x.Name = strconv.Quote(m.imports[x.Name])
			}
		}
		return true
	})
	return s.text(copied)
}

// text is a type as it stands in the source.
func (s *source) text(t ast.Expr) string {
	if t == nil {
		return ""
	}
	var out bytes.Buffer
	if err := printer.Fprint(&out, token.NewFileSet(), t); err != nil {
		return "?" // only for nodes that no parser makes
	}
	return out.String()
}

func (m *method) isContext(t ast.Expr) bool {
	sel, ok := t.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != "Context" {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && m.imports[x.Name] == "context"
}

func isError(t ast.Expr) bool {
	id, ok := t.(*ast.Ident)
	return ok && id.Name == "error"
}

// flatten lists one type per parameter: "a, b int" is two.
func flatten(fields *ast.FieldList) []ast.Expr {
	if fields == nil {
		return nil
	}
	var out []ast.Expr
	for _, f := range fields.List {
		for range max(len(f.Names), 1) {
			out = append(out, f.Type)
		}
	}
	return out
}
