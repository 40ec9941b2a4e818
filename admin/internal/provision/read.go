package provision

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/internal/document"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// Bounds of a file, or of a folder. More is made by carillon apply.
const (
	maxBytes     = 1 << 20
	maxDocuments = 1000
	maxUsers     = 100 // each costs a password's hash
)

// Declaration are the documents of a file or a folder.
type Declaration struct {
	name      string
	getenv    func(string) (string, bool)
	documents []*one
	problems  []Problem
}

// one is a document with its place.
type one struct {
	*document.Value
	file, kind, name string
	tenant           string   // empty: the document belongs to the cluster
	wrong            bool     // it has a problem already
	headless         bool     // its kind or its name is not known
	told             []string // paths of its problems
	tenantLine       int      // of the field tenant, which is taken out of the document
}

// clusterKinds have no tenant, in the order in which they are made.
var clusterKinds = []string{"Tenant", "Cell", "User"}

// Error lists mistakes of a file.
type Error struct{ Problems []Problem }

// Problem is one mistake.
type Problem struct {
	File  string
	Line  int    // from 1; 0 = of the file as a whole
	Where string // such as ApiKey orders: spec.role; empty = the file
	Text  string
}

// shownProblems is how many are shown. The others are counted.
const shownProblems = 20

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("the provision file cannot be used:")
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-i)
			break
		}
		b.WriteString("\n  " + p.File + ":")
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

// Read reads a file, or the files of a folder. A file that cannot be read is an *Error. Try tells
// the mistakes of documents. getenv is os.LookupEnv.
func Read(name string, getenv func(string) (string, bool)) (*Declaration, error) {
	d := &Declaration{name: name, getenv: getenv}
	files, err := document.Files(name)
	if err != nil {
		return nil, &Error{Problems: []Problem{{File: name, Text: err.Error()}}}
	}
	left := int64(maxBytes)
	for _, file := range files {
		raw, err := document.ReadFile(file, maxBytes)
		if left -= int64(len(raw)); err == nil && left < 0 {
			return nil, &Error{Problems: []Problem{{File: name, Text: fmt.Sprintf("the files have more than %d bytes", maxBytes)}}}
		}
		var values []*document.Value
		if err == nil {
			values, err = document.Objects(raw)
		}
		if wrong, is := errors.AsType[*document.Error](err); is {
			d.problems = append(d.problems, Problem{File: file, Line: wrong.Line, Text: wrong.Text})
		} else if err != nil {
			d.problems = append(d.problems, Problem{File: file, Text: err.Error()})
		}
		for _, v := range values {
			d.documents = append(d.documents, &one{Value: v, file: file})
		}
	}
	if err := d.err(); err != nil { // the other files may need documents of this one
		return nil, err
	}
	if len(d.documents) == 0 {
		return nil, &Error{Problems: []Problem{{File: name, Line: 1, Text: "the file declares nothing"}}}
	}
	d.heads()
	return d, nil
}

// fail notes a mistake at a path of a document.
func (d *Declaration) fail(o *one, path, format string, args ...any) {
	o.wrong, o.told = true, append(o.told, path)
	where := strings.Trim(strings.TrimSpace(o.kind+" "+o.name)+": "+path, ": ")
	line := cmp.Or(o.LineOf(path), o.Line)
	if path == "tenant" {
		line = cmp.Or(o.tenantLine, line)
	}
	d.problems = append(d.problems, Problem{File: o.file, Line: line, Where: where, Text: fmt.Sprintf(format, args...)})
}

// heads reads the parts that all documents have.
func (d *Declaration) heads() {
	declared, users := map[string]bool{auth.FirstTenant: true}, 0
	for i, o := range d.documents {
		for _, head := range []struct {
			at string
			to *string
		}{{"kind", &o.kind}, {"name", &o.name}, {"tenant", &o.tenant}} {
			switch v := o.Field(head.at); {
			case v == nil || v.Kind == document.Null:
			case !v.IsScalar():
				o.headless = true
				d.fail(o, head.at, "must be a text")
			default:
				*head.to = v.Text
			}
		}
		o.tenantLine = o.LineOf("tenant")
		o.Members = slices.DeleteFunc(o.Members, func(m document.Member) bool { return m.Name == "tenant" })
		unread := o.headless
		o.headless = unread || o.kind == ""
		switch {
		case o.kind == "" && (o.Field("tenants") != nil || o.Field("administrator") != nil || o.Field("users") != nil):
			d.fail(o, "", "lists such as tenants and users are the form of an earlier version: write a document for each, such as kind: Tenant and name: shop (docs/guide/provision.md)")
		case o.kind == "" && unread:
		case o.kind == "":
			d.fail(o, "kind", "is missing: a document has kind, name and spec")
		case slices.Contains(clusterKinds, o.kind) && o.tenant != "":
			d.fail(o, "tenant", "must be left out: %s belongs to the cluster", o.kind)
		case !slices.Contains(clusterKinds, o.kind):
			o.tenant = cmp.Or(o.tenant, auth.FirstTenant)
		case o.kind == "Tenant":
			declared[o.name] = true
		case o.kind == "User":
			if users++; users == maxUsers+1 {
				d.fail(o, "", "there are more than %d users: make the others through the API", maxUsers)
			}
		}
		if i == maxDocuments {
			d.fail(o, "", "there are more than %d documents: apply the others with carillon apply", maxDocuments)
			d.documents = d.documents[:i]
			break
		}
		d.elsewhere(o)
	}
	names := slices.Sorted(maps.Keys(declared))
	for _, o := range d.documents {
		if o.tenant != "" && !declared[o.tenant] {
			d.fail(o, "tenant", "there is no tenant %q in the file: add its document, kind: Tenant%s", o.tenant, hint(o.tenant, names))
		}
		if o.kind == "User" && o.Field("spec") != nil {
			d.places(o)
		}
	}
}

// places refuses executors of a User's memberships that are not in the file. Accounts are made
// before executors, so that their kind cannot look for them.
func (d *Declaration) places(o *one) {
	all := o.Field("spec").Field("memberships")
	if all == nil {
		return
	}
	for i, m := range all.Items {
		tenant, executors := m.Field("tenant"), m.Field("executors")
		if tenant == nil || executors == nil {
			continue
		}
		for j, e := range executors.Items {
			var names []string
			for _, other := range d.documents {
				if other.kind == "Executor" && other.tenant == tenant.Text {
					names = append(names, other.name)
				}
			}
			if e.Kind == document.Text && !strings.Contains(e.Text, "${{") && !slices.Contains(names, e.Text) {
				d.fail(o, fmt.Sprintf("spec.memberships[%d].executors[%d]", i, j), "there is no executor %q of the tenant %s in the file: add its document, kind: Executor%s", e.Text, tenant.Text, hint(e.Text, names))
			}
		}
	}
}

func hint(name string, names []string) string {
	if text := spelling.Hint(name, names); text != "" {
		return "; " + text
	}
	return ""
}

// place is a text that only says where a value is.
var place = regexp.MustCompile(`^\$\{\{\s*(env|file):[^{}]+\}\}$`)

// elsewhere refuses secrets that stand in the file.
func (d *Declaration) elsewhere(o *one) {
	secrets := map[string]*document.Value{}
	if all := o.Field("secrets"); all != nil {
		for _, m := range all.Members {
			secrets["secrets."+m.Name] = m.Value
		}
	}
	if spec := o.Field("spec"); spec != nil && o.kind == "Job" {
		if alert := spec.Field("alert"); alert != nil && alert.Field("webhookSecret") != nil {
			secrets["spec.alert.webhookSecret"] = alert.Field("webhookSecret")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(secrets)) {
		if v := secrets[path]; v.Kind != document.Text || !place.MatchString(v.Text) {
			d.fail(o, path, "a secret must not stand in this file: say where it is, ${{ file:PATH }} or ${{ env:VARIABLE }}")
		}
	}
}

// fill puts values into the documents. literal are the paths of a kind whose texts stay. A secret
// without its value gets a random one, so that the trial can judge the rest of its document.
func (d *Declaration) fill(literal func(kind string) []string) {
	seen := map[string]*one{}
	for _, o := range d.documents {
		if o.headless {
			continue
		}
		places := document.Places{Getenv: d.getenv, Dir: filepath.Dir(o.file), Advice: "a provision file takes ${{ env:VARIABLE }} and ${{ file:PATH }}"}
		misplaced, _ := places.Fill(o.Value, literal(o.kind))
		for _, m := range misplaced {
			if !slices.Contains(o.told, m.Path) {
				d.fail(o, m.Path, "%s", m.Err)
			}
		}
		secrets := o.Field("secrets")
		if secrets != nil {
			o.invent(secrets)
		}
		if secrets == nil || o.kind != "JoinToken" && o.kind != "ApiKey" {
			continue
		}
		for _, m := range secrets.Members {
			if slices.Contains(o.told, "secrets."+m.Name) {
				continue
			}
			if other := seen[m.Value.Text]; other != nil {
				d.fail(o, "secrets."+m.Name, "it is the same as that of %s %s: each token and key has its own", other.kind, other.name)
			}
			seen[m.Value.Text] = o
		}
	}
}

// invent gives random values to the secrets that have a problem.
func (o *one) invent(secrets *document.Value) {
	kind := map[string]string{"JoinToken": "join-token", "ApiKey": "api-key"}[o.kind]
	for i, m := range secrets.Members {
		if !slices.Contains(o.told, "secrets."+m.Name) {
			continue
		}
		if text, err := auth.NewSecret(cmp.Or(kind, "password")); err == nil {
			secrets.Members[i].Value = &document.Value{Kind: document.Text, Text: text, Line: m.Value.Line}
		}
	}
}

// AdminPassword is the password of the first administrator. Empty: the file has none. It is
// known after Try.
func (d *Declaration) AdminPassword() string {
	for _, o := range d.documents {
		if secrets := o.Field("secrets"); o.kind == "User" && o.name == auth.FirstUser && secrets != nil && secrets.Field("password") != nil {
			return secrets.Field("password").Text
		}
	}
	return ""
}

// Given is the mistake of a file with a password that a setting of the node names, too.
func (d *Declaration) Given() error {
	for _, o := range d.documents {
		if o.kind == "User" && o.name == auth.FirstUser {
			d.fail(o, "secrets.password", "it is given by --admin-password-file or CARILLON_ADMIN_PASSWORD, too: leave one of them out")
		}
	}
	return d.err()
}

func (d *Declaration) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(d.problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &Error{Problems: d.problems}
}

// Summary counts the declared documents.
func (d *Declaration) Summary() string {
	var kinds []string
	counts := map[string]int{}
	for _, o := range d.documents {
		if counts[o.kind]++; counts[o.kind] == 1 {
			kinds = append(kinds, o.kind)
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", counts[kind], kind)
	}
	return strings.Join(kinds, ", ")
}
