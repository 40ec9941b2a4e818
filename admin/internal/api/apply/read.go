package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// request is a request with its plan. It belongs to one goroutine.
type request struct {
	with    *DocumentBatch
	entries []*entry
	// deletes are documents to delete, in the order in which they go.
	deletes []*entry
	// members are the documents of the set. leave are members that were deleted since. left is
	// the number of the other members that the request does not hold.
	members map[resource.SetMember]bool
	leave   []resource.SetMember
	left    int
	// newSet: no document belongs to the set yet. sets are the names of the others then.
	newSet bool
	sets   []string
	plan   string
	// tried: an apply has written documents, or could not.
	tried bool
}

// entry is a document of a request with its step.
type entry struct {
	kind  *web.DocumentKind
	raw   json.RawMessage
	write resource.Write
	step  resource.Step
	// unknown has the fields that its kind does not have. The rest of the document is checked all
	// the same.
	unknown error
	// err is why the document is wrong, or why an apply could not write it.
	err error
}

// head is what all documents have.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Name       string            `json:"name"`
	Labels     map[string]string `json:"labels"`
	Spec       json.RawMessage   `json:"spec"`
	Secrets    map[string]string `json:"secrets"`
}

// read checks all documents and plans them, kind by kind. Errors of all documents are told at
// once.
func (a *api) read(ctx context.Context, id auth.Identity, in *DocumentBatch) (*request, error) {
	kinds := a.server.Kinds().List()
	r := &request{with: in, entries: opened(ctx, a.server, id, in.Documents, kinds, !in.Delete)}
	if in.Delete {
		if err := r.planDelete(ctx, id, kinds); err != nil {
			return nil, err
		}
		return r, r.check()
	}
	with := &web.PlanRequest{
		New: map[string]map[string]*resource.Row{}, Coming: r.coming(), TakeOver: in.TakeOver,
		AllowUnknownHandler: in.AllowUnknownHandler, AllowUnfitInput: in.AllowUnfitInput,
	}
	for i := range kinds {
		if err := r.planKind(ctx, id, &kinds[i], with); err != nil {
			return nil, err
		}
	}
	if err := a.readSet(ctx, id, r, kinds); err != nil {
		return nil, err
	}
	return r, r.check()
}

// opened are the entries of documents.
func opened(ctx context.Context, s *web.Server, id auth.Identity, documents []json.RawMessage, kinds []web.DocumentKind, whole bool) []*entry {
	out := make([]*entry, len(documents))
	seen := map[string]bool{}
	for i, raw := range documents {
		e := &entry{raw: raw}
		out[i] = e
		if e.err = e.open(ctx, s, id, kinds, whole); e.err != nil {
			continue
		}
		name := e.kind.Name + "/" + e.write.Name
		if seen[name] {
			e.err = domain.Invalid("body.name", "is in the request twice: %s", e.write.Name)
		}
		seen[name] = true
	}
	return out
}

// coming are the names of the documents of a request.
func (r *request) coming() resource.Coming {
	out := resource.Coming{}
	for _, e := range r.entries {
		if e.kind != nil {
			out[[2]string{e.kind.Name, e.write.Name}] = true
		}
	}
	return out
}

// readHead reads the head of a document. The schema of its kind judges the other fields.
func readHead(raw json.RawMessage) (h head, err error) {
	var r web.Reader
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || fields == nil {
		return h, domain.Invalid("body", "is no document: a document is an object with kind, name and spec")
	}
	for _, f := range []struct {
		name string
		into any
		must string
	}{
		{"apiVersion", &h.APIVersion, "a text such as " + resource.APIVersion}, {"kind", &h.Kind, "a text such as Job"}, {"name", &h.Name, "a text"},
		{"labels", &h.Labels, "an object with texts, such as {team: pay}"}, {"spec", &h.Spec, "an object"}, {"secrets", &h.Secrets, "an object with texts"},
	} {
		if fields[f.name] != nil && json.Unmarshal(fields[f.name], f.into) != nil {
			found := string(fields[f.name])
			if f.name == "secrets" || len(found) > maxFound {
				found = "what is written"
			}
			r.Fail("body."+f.name, nil, "must be %s, not %s", f.must, found)
		}
	}
	return h, r.Err()
}

// maxFound bounds the value that a message repeats, in bytes.
const maxFound = 60

// open reads the fields that all kinds have, and checks the document with the schema of its kind.
func (e *entry) open(ctx context.Context, s *web.Server, id auth.Identity, kinds []web.DocumentKind, whole bool) error {
	h, misread := readHead(e.raw)
	if h.Kind == "" && misread != nil {
		return misread
	}
	if h.APIVersion != "" && h.APIVersion != resource.APIVersion {
		return domain.Invalid("body.apiVersion", "%q is unknown: use %s", h.APIVersion, resource.APIVersion)
	}
	for i := range kinds {
		if kinds[i].Name == h.Kind {
			e.kind = &kinds[i]
		}
	}
	if e.kind == nil {
		var names []string
		for i := range kinds {
			if kinds[i].MayEdit(id) {
				names = append(names, kinds[i].Name)
			}
		}
		return domain.Invalid("body.kind", "%q is no kind: use %s", h.Kind, strings.Join(names, ", "))
	}
	if e.kind.Local && id.Kind != auth.KindNode {
		return domain.Invalid("body.kind", "%s stands in a provision file only: carillon server --provision", h.Kind)
	}
	if !e.kind.MayEdit(id) {
		return domain.Errorf(domain.CodeDenied, "your role %q does not allow to write %s", id.Role, e.kind.A())
	}
	e.write = resource.Write{Name: strings.TrimSpace(h.Name), Labels: h.Labels, Spec: h.Spec, Secrets: h.Secrets}
	if !whole {
		return misread
	}
	err := s.Kinds().Check(ctx, e.kind, e.raw)
	if web.OnlyUnknown(err) {
		e.unknown, err = err, nil
	}
	if err == nil {
		err = misread
	}
	return err
}

// of are the documents of a kind.
func (r *request) of(k *web.DocumentKind) (out []*entry) {
	for _, e := range r.entries {
		if e.kind != nil && e.kind.Name == k.Name && e.err == nil {
			out = append(out, e)
		}
	}
	return out
}

func writesOf(entries []*entry) []resource.Write {
	return domain.Collect(entries, func(e **entry) resource.Write { return (*e).write })
}

// planKind plans the documents of a kind, and lets later kinds know them.
func (r *request) planKind(ctx context.Context, id auth.Identity, k *web.DocumentKind, with *web.PlanRequest) error {
	of := r.of(k)
	if len(of) == 0 {
		return nil
	}
	steps, wrong, err := k.Planner.Plan(ctx, id, writesOf(of), with)
	if err != nil {
		return err
	}
	rows := map[string]*resource.Row{}
	for i, e := range of {
		if e.step, e.err = steps[i], wrong[i]; e.err == nil && e.step.New != nil && e.step.Action != resource.ActionSame {
			rows[e.step.Name] = e.step.New
		}
	}
	with.New[k.Name] = rows
	return nil
}

// maxMistakes bounds the mistakes that one answer names.
const maxMistakes = 200

// check tells what is wrong with the documents, and names the plan.
func (r *request) check() error {
	wrong := &domain.Error{Code: domain.CodeInvalid, Message: "documents are wrong"}
	sum := sha256.New()
	for i, e := range r.entries {
		at := fmt.Sprintf("body.documents[%d]", i)
		if domain.Is(e.err, domain.CodeDenied) || domain.Is(e.err, domain.CodePolicyRefused) {
			fields, _ := web.FieldsOf(at, e.err)
			return &domain.Error{Code: domain.CodeOf(e.err), Message: message(e.err), Fields: fields}
		}
		known := len(wrong.Fields)
		for _, err := range []error{e.unknown, e.err} {
			if err == nil {
				continue
			}
			fields, told := web.FieldsOf(at, err)
			if !told {
				return err
			}
			wrong.Fields = append(wrong.Fields, fields...)
		}
		if len(wrong.Fields) > known {
			continue
		}
		fmt.Fprintf(sum, "%d %s/%s %d %s\n", len(e.raw), e.kind.Name, e.step.Name, e.step.Version, e.step.Seen)
		sum.Write(e.raw)
	}
	for _, e := range r.deletes {
		fmt.Fprintf(sum, "delete %s/%d %d\n", e.kind.Name, e.step.ID, e.step.Version)
	}
	fmt.Fprintf(sum, "set %q\n", r.with.Set)
	if len(wrong.Fields) > 0 {
		if n := len(wrong.Fields); n > maxMistakes {
			wrong.Message = fmt.Sprintf("documents are wrong: the first %d of %d mistakes", maxMistakes, n)
			wrong.Fields = wrong.Fields[:maxMistakes]
		}
		return wrong
	}
	r.plan = hex.EncodeToString(sum.Sum(nil)[:16])
	return nil
}
