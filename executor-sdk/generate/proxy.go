package generate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"maps"
	"path"
	"slices"
	"strings"
)

// importsOf lists the imports that types name, as their file calls them.
func (m *method) importsOf(types ...ast.Expr) map[string]string {
	out := map[string]string{}
	for _, t := range types {
		if t == nil {
			continue
		}
		ast.Inspect(t, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && m.imports[x.Name] != "" {
					out[x.Name] = m.imports[x.Name]
				}
			}
			return true
		})
	}
	return out
}

// renderProxy writes the proxies of the timers that ask for one; nil when none
// does.
func renderProxy(p *Package) ([]byte, error) {
	var here []Group
	for _, g := range p.Groups {
		if g.Proxy && g.ProxyDir == "" {
			here = append(here, g)
		}
	}
	return renderProxies(p.Name, here, map[string]string{}, "", nil)
}

// renderAway writes the proxies for another folder, and the types that they need.
func renderAway(p *Package, a away) ([]byte, error) {
	note := fmt.Sprintf("\n// Package %s has what callers of the handlers of package %s need. Its types\n// are copies: change them there.", a.pkg, p.Name)
	return renderProxies(a.pkg, a.groups, maps.Clone(a.imports), note, a.types)
}

// renderProxies writes a file; nil when there are no groups. note stands above
// the package clause, and types are declarations to be written behind.
func renderProxies(pkg string, groups []Group, imports map[string]string, note string, types []string) ([]byte, error) {
	const sdk = "github.com/carillon-sched/carillon/executor-sdk/"
	for name, at := range map[string]string{"context": "context", "proxy": sdk + "proxy", "timers": sdk + "timers"} {
		if other := imports[name]; other != "" && other != at {
			return nil, fmt.Errorf("the types that callers need name the import %q as %s, as the generated code does another: give it another name", other, name)
		}
		imports[name] = at
	}
	var body bytes.Buffer
	for _, g := range groups {
		writeProxy(&body, g)
		writeTimers(&body, g)
		for _, c := range proxied(g) {
			for name, at := range c.imports {
				if other := imports[name]; other != "" && other != at {
					return nil, fmt.Errorf("the types of %s.%s name the import %q as %s, and others name %q so: give one of them another name", g.Type, c.Method, at, name, other)
				}
				imports[name] = at
			}
		}
	}
	if body.Len() == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	out.WriteString(header + note + "\npackage " + pkg + "\n\nimport (\n")
	for _, standard := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(imports)) {
			at := imports[name]
			switch first, _, _ := strings.Cut(at, "/"); {
			case strings.Contains(first, ".") == standard:
			case path.Base(at) == name:
				fmt.Fprintf(&out, "%q\n", at)
			default:
				fmt.Fprintf(&out, "%s %q\n", name, at)
			}
		}
		out.WriteString("\n")
	}
	out.WriteString(")\n")
	out.Write(body.Bytes())
	for _, t := range types {
		out.WriteString("\n" + t + "\n")
	}
	code, err := format.Source(out.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format generated proxy: %w", err)
	}
	return code, nil
}

// proxied has one clock per method: of several, the first by name.
func proxied(g Group) []Clock {
	seen := map[string]bool{}
	var out []Clock
	for _, c := range g.Clocks {
		if !seen[c.Method] {
			seen[c.Method] = true
			out = append(out, c)
		}
	}
	return out
}

// proxyNames are what the generated code declares for a type.
func proxyNames(typ string) []string {
	return []string{typ + "Proxy", "New" + typ + "Proxy", typ + "Timers", "New" + typ + "Timers"}
}

// writeTimers writes a type with the timers of each handler as a field.
func writeTimers(w *bytes.Buffer, g Group) {
	name := g.Type + "Timers"
	var fields, values strings.Builder
	for _, c := range proxied(g) {
		typ, build := "timers.Plain", "timers.NewPlain"
		if c.Input != "" {
			typ, build = "timers.Handler["+c.Input+"]", "timers.New["+c.Input+"]"
		}
		fmt.Fprintf(&fields, "%s %s // %s\n", c.Method, typ, c.Name)
		fmt.Fprintf(&values, "%s: %s(client, executor, %q),\n", c.Method, build, c.Name)
	}
	fmt.Fprintf(w, `
// %[1]s sets timers for the handlers of %[2]s: each is one run at one instant.
type %[1]s struct {
%[3]s}

// New%[1]s returns the timers of handlers that executor has registered.
func New%[1]s(client *proxy.Client, executor string) *%[1]s {
	return &%[1]s{
%[4]s	}
}
`, name, g.Name, fields.String(), values.String())
}

func writeProxy(w *bytes.Buffer, g Group) {
	name := g.Type + "Proxy"
	fmt.Fprintf(w, `
// %[1]s calls the handlers of timer %[2]s, wherever they run.
type %[1]s struct {
	client   *proxy.Client
	executor string
}

// New%[1]s returns a proxy for the handlers that executor has registered.
func New%[1]s(client *proxy.Client, executor string) *%[1]s {
	return &%[1]s{client, executor}
}
`, name, g.Name)
	for _, c := range proxied(g) {
		writeProxyMethods(w, name, c)
	}
}

func writeProxyMethods(w *bytes.Buffer, typ string, c Clock) {
	in, arg, out := "", "nil", c.Output
	if c.Input != "" {
		in, arg = "in "+c.Input+", ", "in"
	}
	if out == "" {
		out = "proxy.None"
	}
	about := ""
	if c.Description != "" {
		about = ": " + strings.ReplaceAll(c.Description, "\n", " ")
	}
	if c.Output == "" {
		fmt.Fprintf(w, "\n// %s runs %s and waits for its end%s.\n", c.Method, c.Name, about)
		fmt.Fprintf(w, `func (p *%s) %s(ctx context.Context, %sopts ...proxy.Option) error {
	_, err := proxy.Call[proxy.None](ctx, p.client, p.executor, %q, %s, opts...)
	return err
}
`, typ, c.Method, in, c.Name, arg)
	} else {
		fmt.Fprintf(w, "\n// %s runs %s and returns its output%s.\n", c.Method, c.Name, about)
		fmt.Fprintf(w, `func (p *%s) %s(ctx context.Context, %sopts ...proxy.Option) (%s, error) {
	return proxy.Call[%s](ctx, p.client, p.executor, %q, %s, opts...)
}
`, typ, c.Method, in, out, out, c.Name, arg)
	}
	fmt.Fprintf(w, `
// Start%[2]s runs %[3]s and does not wait for its end.
func (p *%[1]s) Start%[2]s(ctx context.Context, %[4]sopts ...proxy.Option) (*proxy.Run[%[5]s], error) {
	return proxy.Start[%[5]s](ctx, p.client, p.executor, %[3]q, %[6]s, opts...)
}
`, typ, c.Method, c.Name, in, out, arg)
}
