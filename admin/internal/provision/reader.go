package provision

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Error lists what is wrong with a file, by line.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	Line  int    // from 1; 0 = of the file as a whole
	Where string // "tenants[0].apiKeys[1].role"; empty = the file
	Text  string
}

// shownProblems is how many are shown; the others are counted.
const shownProblems = 20

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("the provision file cannot be used:")
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-i)
			break
		}
		b.WriteString("\n  " + e.File + ":")
		if p.Line > 0 {
			b.WriteString(strconv.Itoa(p.Line) + ":")
		}
		if p.Where != "" {
			b.WriteString(" " + p.Where + ":")
		}
		b.WriteString(" " + p.Text)
	}
	return b.String()
}

// fields are what an object may have.
type fields map[string]func(n *document.Value, at string)

// reader walks a file and notes what is wrong, with lines.
type reader struct {
	dir      string
	getenv   func(string) string
	problems []Problem
	things   int
	names    map[string]int // line of "tenant x" and "user x"
	secrets  map[string]int // line of each secret of a key or a token
	atEnd    []func()       // checks that need the whole file
}

func (r *reader) fail(n *document.Value, at, format string, args ...any) {
	r.problems = append(r.problems, Problem{Line: n.Line, Where: at, Text: fmt.Sprintf(format, args...)})
}

func (r *reader) sorted() []Problem {
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return r.problems
}

func below(at, field string) string {
	if at == "" {
		return field
	}
	return at + "." + field
}

func (r *reader) object(n *document.Value, at string, known fields, required ...string) {
	names := slices.Sorted(maps.Keys(known))
	if n.Kind != document.Object {
		r.fail(n, at, "must be an object with some of %s", strings.Join(names, ", "))
		return
	}
	seen := map[string]bool{}
	for _, m := range n.Members {
		read, ok := known[m.Name]
		switch {
		case !ok:
			hint := spelling.Hint(m.Name, names)
			if hint == "" {
				hint = "there are " + strings.Join(names, ", ")
			}
			r.fail(&document.Value{Line: m.Line}, below(at, m.Name), "there is no such field; %s", hint)
		case m.Value.Kind != document.Null:
			seen[m.Name] = true
			read(m.Value, below(at, m.Name))
		}
	}
	for _, name := range required {
		if !seen[name] {
			r.fail(n, at, "needs %s", name)
		}
	}
}

func (r *reader) list(n *document.Value, at string, each func(n *document.Value, at string)) {
	if n.Kind != document.List {
		r.fail(n, at, "must be a list")
		return
	}
	for i, item := range n.Items {
		if r.things++; r.things > maxThings {
			if r.things == maxThings+1 {
				r.fail(item, at, "the file declares more than %d things: make the others through the API", maxThings)
			}
			return
		}
		each(item, fmt.Sprintf("%s[%d]", at, i))
	}
}

func (r *reader) text(n *document.Value, at string) string {
	if !n.IsScalar() {
		r.fail(n, at, "must be a text")
		return ""
	}
	return n.Text
}

// label is a name for people.
func (r *reader) label(n *document.Value, at string) string {
	text := strings.TrimSpace(r.text(n, at))
	if wrong := domain.WrongName(text, domain.MaxNameLength); n.IsScalar() && wrong != "" {
		r.fail(n, at, "%s", wrong)
	}
	return text
}

func (r *reader) name(n *document.Value, at string, form *regexp.Regexp, must string) string {
	text := r.text(n, at)
	if n.IsScalar() && !form.MatchString(text) {
		r.fail(n, at, "%q %s", text, must)
	}
	return text
}

func (r *reader) unique(n *document.Value, at, kind, name string) {
	r.uniqueIn(r.names, n, at, kind, name)
}

func (r *reader) uniqueIn(names map[string]int, n *document.Value, at, kind, name string) {
	if line, twice := names[kind+" "+name]; twice {
		r.fail(n, at, "the %s %q stands in line %d already", kind, name, line)
		return
	}
	names[kind+" "+name] = n.Line
}

func (r *reader) flag(n *document.Value, at string) bool {
	if n.Kind != document.Bool {
		r.fail(n, at, "must be true or false")
	}
	return n.Text == "true"
}

func (r *reader) number(n *document.Value, at string, most int64) int64 {
	value, err := strconv.ParseInt(n.Text, 10, 64)
	if n.Kind != document.Number || err != nil || value < 0 || value > most {
		r.fail(n, at, "must be a whole number from 0 (no limit) to %d", most)
	}
	return value
}

func (r *reader) instant(n *document.Value, at string) time.Time {
	t, err := time.Parse(time.RFC3339, r.text(n, at))
	if err != nil {
		r.fail(n, at, "must be an instant such as 2027-01-31T00:00:00Z")
	}
	return t.UTC()
}

// role reads a role of a person.
func (r *reader) role(n *document.Value, at string) domain.Role {
	roles := []domain.Role{domain.RoleViewer, domain.RoleOperator, domain.RoleEditor, domain.RoleScripter, domain.RoleAdmin}
	role := domain.Role(r.text(n, at))
	if n.IsScalar() && !slices.Contains(roles, role) {
		r.fail(n, at, "%q is none of %s", role, roleNames(roles))
	}
	return role
}

// keyRole reads the role of an API key.
func (r *reader) keyRole(n *document.Value, at string) domain.Role {
	text := r.text(n, at)
	role, ok := domain.KeyRole(text)
	if n.IsScalar() && !ok {
		r.fail(n, at, "%q is none of %s, or several of them joined by +", text, roleNames(domain.KeyRoles))
	}
	return role
}

func roleNames(roles []domain.Role) string {
	return strings.Join(domain.Collect(roles, func(r *domain.Role) string { return string(*r) }), ", ")
}

// strong judges a password that could be read.
func (r *reader) strong(n *document.Value, at, username, password string) {
	if password == "" {
		return
	}
	if err := auth.CheckPassword(at, username, password); err != nil {
		r.fail(n, at, "it %s", strings.TrimPrefix(err.Error(), at+": "))
	}
}

// imported is the secret of a token or a key; kind is what makes one.
func (r *reader) imported(n *document.Value, at string, check func(string) (auth.Imported, error), kind string) (prefix string, hash [32]byte) {
	secret := r.secret(n, at)
	if secret == "" {
		return "", hash
	}
	in, err := check(secret)
	if err != nil {
		r.fail(n, at, "it %s; make one with: carillon provision secret %s", err.Error(), kind)
	}
	if line, twice := r.secrets[secret]; twice {
		r.fail(n, at, "it is the same as that of line %d: each token and key has its own", line)
	}
	r.secrets[secret] = n.Line
	return in.Prefix, in.Hash
}

// secret reads what a file or a variable holds. It is empty when that failed.
func (r *reader) secret(n *document.Value, at string) string {
	if n.IsScalar() {
		r.fail(n, at, "a secret must not stand in this file: say where it is, {file: PATH} or {env: VARIABLE}")
		return ""
	}
	known := len(r.problems)
	var path, variable string
	r.object(n, at, fields{
		"file": func(n *document.Value, at string) { path = r.label(n, at) },
		"env":  func(n *document.Value, at string) { variable = r.label(n, at) },
	})
	if len(r.problems) > known {
		return ""
	}
	if (path == "") == (variable == "") {
		r.fail(n, at, "say where it is: either {file: PATH} or {env: VARIABLE}")
		return ""
	}
	if variable != "" {
		return r.oneLine(n, at, "the variable "+variable, r.getenv(variable))
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	raw, err := readBounded(path, maxSecret)
	if err != nil {
		r.fail(n, at, "%s", err.Error())
		return ""
	}
	return r.oneLine(n, at, path, string(raw))
}

func (r *reader) oneLine(n *document.Value, at, from, text string) string {
	text = strings.TrimRight(text, "\r\n")
	switch {
	case text == "":
		r.fail(n, at, "%s is empty or not set", from)
	case strings.ContainsAny(text, "\r\n"):
		r.fail(n, at, "%s has more than one line", from)
		return ""
	}
	return text
}
