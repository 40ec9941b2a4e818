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
	tenant           string // empty: the document belongs to the cluster
	wrong            bool   // it has a problem already
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
	fail := func(file string, line int, text string) (*Declaration, error) {
		return nil, &Error{Problems: []Problem{{File: file, Line: line, Text: text}}}
	}
	files, err := document.Files(name)
	if err != nil {
		return fail(name, 0, err.Error())
	}
	left := int64(maxBytes)
	for _, file := range files {
		raw, err := document.ReadFile(file, maxBytes)
		if err != nil {
			return fail(file, 0, err.Error())
		}
		if left -= int64(len(raw)); left < 0 {
			return fail(name, 0, fmt.Sprintf("the files have more than %d bytes", maxBytes))
		}
		values, err := document.Objects(raw)
		if err != nil {
			wrong, is := errors.AsType[*document.Error](err)
			if !is {
				return fail(file, 0, err.Error())
			}
			return fail(file, wrong.Line, wrong.Text)
		}
		for _, v := range values {
			d.documents = append(d.documents, &one{Value: v, file: file})
		}
	}
	if len(d.documents) == 0 {
		return fail(name, 1, "the file declares nothing")
	}
	d.heads()
	return d, nil
}

// fail notes a mistake at a path of a document.
func (d *Declaration) fail(o *one, path, format string, args ...any) {
	o.wrong = true
	where := strings.Trim(strings.TrimSpace(o.kind+" "+o.name)+": "+path, ": ")
	d.problems = append(d.problems, Problem{File: o.file, Line: cmp.Or(o.LineOf(path), o.Line), Where: where, Text: fmt.Sprintf(format, args...)})
}

// heads reads the parts that all documents have.
func (d *Declaration) heads() {
	declared, users := map[string]bool{auth.FirstTenant: true}, 0
	for i, o := range d.documents {
		for at, to := range map[string]*string{"kind": &o.kind, "name": &o.name, "tenant": &o.tenant} {
			switch v := o.Field(at); {
			case v == nil || v.Kind == document.Null:
			case !v.IsScalar():
				d.fail(o, at, "must be a text")
			default:
				*to = v.Text
			}
		}
		o.Members = slices.DeleteFunc(o.Members, func(m document.Member) bool { return m.Name == "tenant" })
		switch {
		case o.kind == "" && (o.Field("tenants") != nil || o.Field("administrator") != nil || o.Field("users") != nil):
			d.fail(o, "", "lists such as tenants and users are the form of an earlier version: write a document for each, such as kind: Tenant and name: shop (docs/guide/provision.md)")
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
	for _, o := range d.documents {
		if o.tenant != "" && !declared[o.tenant] {
			d.fail(o, "tenant", "there is no tenant %q in the file: add its document, kind: Tenant", o.tenant)
		}
	}
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

// fill puts values into the documents. literal are the paths of a kind whose texts stay.
func (d *Declaration) fill(literal func(kind string) []string) {
	seen := map[string]*one{}
	for _, o := range d.documents {
		if o.wrong {
			continue
		}
		places := document.Places{Getenv: d.getenv, Dir: filepath.Dir(o.file)}
		for _, m := range places.Fill(o.Value, literal(o.kind)) {
			d.fail(o, m.Path, "%s", m.Err)
		}
		secrets := o.Field("secrets")
		if secrets == nil || o.wrong || o.kind != "JoinToken" && o.kind != "ApiKey" {
			continue
		}
		for _, m := range secrets.Members {
			if other := seen[m.Value.Text]; other != nil {
				d.fail(o, "secrets."+m.Name, "it is the same as that of %s %s: each token and key has its own", other.kind, other.name)
			}
			seen[m.Value.Text] = o
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
