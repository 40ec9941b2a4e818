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

	"go.yaml.in/yaml/v3"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
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
type fields map[string]func(n *yaml.Node, at string)

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

func (r *reader) fail(n *yaml.Node, at, format string, args ...any) {
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

// meant follows an alias to what it stands for.
func meant(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (r *reader) object(n *yaml.Node, at string, known fields, required ...string) {
	n = meant(n)
	names := slices.Sorted(maps.Keys(known))
	if n.Kind != yaml.MappingNode {
		r.fail(n, at, "must be an object with some of %s", strings.Join(names, ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], meant(n.Content[i+1])
		read, ok := known[key.Value]
		switch {
		case !ok:
			hint := spelling.Hint(key.Value, names)
			if hint == "" {
				hint = "there are " + strings.Join(names, ", ")
			}
			r.fail(key, below(at, key.Value), "there is no such field; %s", hint)
		case seen[key.Value]:
			r.fail(key, below(at, key.Value), "stands here twice")
		case !isNull(value):
			seen[key.Value] = true
			read(value, below(at, key.Value))
		}
	}
	for _, name := range required {
		if !seen[name] {
			r.fail(n, at, "needs %s", name)
		}
	}
}

func (r *reader) list(n *yaml.Node, at string, each func(n *yaml.Node, at string)) {
	if n = meant(n); n.Kind != yaml.SequenceNode {
		r.fail(n, at, "must be a list")
		return
	}
	for i, item := range n.Content {
		if r.things++; r.things > maxThings {
			if r.things == maxThings+1 {
				r.fail(item, at, "the file declares more than %d things: make the others through the API", maxThings)
			}
			return
		}
		each(meant(item), fmt.Sprintf("%s[%d]", at, i))
	}
}

func (r *reader) text(n *yaml.Node, at string) string {
	if n.Kind != yaml.ScalarNode {
		r.fail(n, at, "must be a text")
		return ""
	}
	return n.Value
}

// label is a name for people.
func (r *reader) label(n *yaml.Node, at string) string {
	text := strings.TrimSpace(r.text(n, at))
	if wrong := domain.WrongName(text, domain.MaxNameLength); n.Kind == yaml.ScalarNode && wrong != "" {
		r.fail(n, at, "%s", wrong)
	}
	return text
}

func (r *reader) name(n *yaml.Node, at string, form *regexp.Regexp, must string) string {
	text := r.text(n, at)
	if n.Kind == yaml.ScalarNode && !form.MatchString(text) {
		r.fail(n, at, "%q %s", text, must)
	}
	return text
}

func (r *reader) unique(n *yaml.Node, at, kind, name string) { r.uniqueIn(r.names, n, at, kind, name) }

func (r *reader) uniqueIn(names map[string]int, n *yaml.Node, at, kind, name string) {
	if line, twice := names[kind+" "+name]; twice {
		r.fail(n, at, "the %s %q stands in line %d already", kind, name, line)
		return
	}
	names[kind+" "+name] = n.Line
}

func (r *reader) flag(n *yaml.Node, at string) (on bool) {
	if n.Decode(&on) != nil {
		r.fail(n, at, "must be true or false")
	}
	return on
}

func (r *reader) number(n *yaml.Node, at string, most int64) (value int64) {
	if n.Decode(&value) != nil || value < 0 || value > most {
		r.fail(n, at, "must be a whole number from 0 (no limit) to %d", most)
	}
	return value
}

func (r *reader) instant(n *yaml.Node, at string) time.Time {
	t, err := time.Parse(time.RFC3339, r.text(n, at))
	if err != nil {
		r.fail(n, at, "must be an instant such as 2027-01-31T00:00:00Z")
	}
	return t.UTC()
}

// role reads one of those of people, or one of others.
func (r *reader) role(n *yaml.Node, at string, others ...domain.Role) domain.Role {
	roles := append(others, domain.RoleViewer, domain.RoleOperator, domain.RoleEditor, domain.RoleScripter, domain.RoleAdmin)
	role := domain.Role(r.text(n, at))
	if n.Kind == yaml.ScalarNode && !slices.Contains(roles, role) {
		var names []string
		for _, known := range roles {
			names = append(names, string(known))
		}
		r.fail(n, at, "%q is none of %s", role, strings.Join(names, ", "))
	}
	return role
}

// strong judges a password that could be read.
func (r *reader) strong(n *yaml.Node, at, username, password string) {
	if password == "" {
		return
	}
	if err := auth.CheckPassword(at, username, password); err != nil {
		r.fail(n, at, "it %s", strings.TrimPrefix(err.Error(), at+": "))
	}
}

// imported is the secret of a token or a key; kind is what makes one.
func (r *reader) imported(n *yaml.Node, at string, check func(string) (auth.Imported, error), kind string) (prefix string, hash [32]byte) {
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
func (r *reader) secret(n *yaml.Node, at string) string {
	if n.Kind == yaml.ScalarNode {
		r.fail(n, at, "a secret must not stand in this file: say where it is, {file: PATH} or {env: VARIABLE}")
		return ""
	}
	known := len(r.problems)
	var path, variable string
	r.object(n, at, fields{
		"file": func(n *yaml.Node, at string) { path = r.label(n, at) },
		"env":  func(n *yaml.Node, at string) { variable = r.label(n, at) },
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

func (r *reader) oneLine(n *yaml.Node, at, from, text string) string {
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
