// Package apply answers: what would change if these documents were written, and write them?
//
// A plan checks documents of any kind against the tenant as it is, and says for each what an
// apply would do. An apply that names a plan is refused if the tenant has changed since.
package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// maxBody bounds the documents of one request, in bytes.
const maxBody = 8 << 20

// DocumentBatch has documents of any kind.
type DocumentBatch struct {
	Documents []json.RawMessage `json:"documents" minItems:"1" maxItems:"1000" doc:"Documents of any kind, each with kind, name and spec"`
	Plan      string            `json:"plan,omitempty" maxLength:"64" doc:"Id of the plan that was looked at; refused if the plan would be another one now. Default: apply without a look"`
}

// Plan says what an apply does.
type Plan struct {
	ID     string     `json:"id" doc:"Names the documents and the versions that they would replace"`
	Items  []PlanItem `json:"items" doc:"One for each document, in the order of the request"`
	Create int        `json:"create" doc:"Number of new documents"`
	Update int        `json:"update" doc:"Number of documents that change"`
	Same   int        `json:"same" doc:"Number of documents that stay as they are"`
	Failed int        `json:"failed" doc:"Number of documents that an apply could not write; 0 in a plan"`
}

// PlanItem is what an apply does with one document.
type PlanItem struct {
	Kind    string       `json:"kind" doc:"Kind of the document"`
	Name    string       `json:"name" doc:"Its name"`
	Action  string       `json:"action" enum:"create,update,same" doc:"What an apply does"`
	ID      string       `json:"id,omitempty" doc:"Id of the document; absent: it is new"`
	Version int64        `json:"version" doc:"Version that is there, or after an apply the version that was written; 0: there is none"`
	Changes []PlanChange `json:"changes,omitempty" doc:"Fields that differ"`
	Error   string       `json:"error,omitempty" doc:"Why an apply could not write it; absent: it could"`
}

// PlanChange is a field that differs.
type PlanChange struct {
	Path   string          `json:"path" doc:"Path of the field, such as spec.zone"`
	Before json.RawMessage `json:"before,omitempty" doc:"Value that is there; absent: none"`
	After  json.RawMessage `json:"after,omitempty" doc:"Value of the document; absent: none"`
}

// DocumentKind is a kind of documents that an apply knows.
type DocumentKind struct {
	Name       string `json:"name" doc:"Value of the field kind"`
	Path       string `json:"path" doc:"Last segment of the address of its list"`
	APIVersion string `json:"apiVersion" doc:"Value of the field apiVersion"`
	// Literal is not empty for few kinds.
	Literal []string `json:"literal" doc:"Paths of texts in which ${{ }} is not the place of a value"`
}

type input struct{ Body DocumentBatch }

type output struct{ Body Plan }

type api struct{ server *web.Server }

// Register adds the operations.
func Register(s *web.Server) {
	a := &api{s}
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/plan", ID: "plan-documents", Tag: "documents", Computes: true, MaxBody: maxBody, Unaudited: "it writes nothing",
		Summary: "Plan an apply", Description: "Checks the documents and says what an apply would do. Nothing is written.",
	}, a.plan)
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/apply", ID: "apply-documents", Tag: "documents", Computes: true, MaxBody: maxBody, Errors: []int{http.StatusConflict},
		Summary: "Apply documents", Description: "Creates and changes documents as a plan says. All are checked before the first is written. A document that was changed in between is not written, and its item says so.",
	}, a.apply)
	web.Register(s, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/kinds", ID: "list-kinds", Tag: "documents",
		Summary: "List the kinds of documents", Description: "In the order in which an apply writes them.",
	}, func(context.Context, auth.Identity, *struct{}) (*web.PageOutput[DocumentKind], error) {
		return web.OnePage(domain.Collect(s.Kinds().List(), func(k *web.DocumentKind) DocumentKind {
			return DocumentKind{k.Documents.Kind().Name, k.Documents.Kind().Path, resource.APIVersion, web.EmptyIfNil(k.Documents.Kind().Literal)}
		})), nil
	})
}

// planned is a document of a request with its step.
type planned struct {
	kind *resource.Kind
	docs *resource.Documents
	name string
	step resource.Step
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

// read checks all documents and plans them. Errors of all documents are told at once.
func (a *api) read(ctx context.Context, id auth.Identity, in *DocumentBatch) (list []planned, plan string, err error) {
	wrong := &domain.Error{Code: domain.CodeInvalid, Message: "documents are wrong"}
	sum := sha256.New()
	seen := map[string]bool{}
	coming := comingOf(in.Documents)
	for i, raw := range in.Documents {
		p, err := a.one(ctx, id, raw, coming)
		at := fmt.Sprintf("body.documents[%d]", i)
		if err == nil && seen[p.kind.Name+"/"+p.name] {
			err = domain.Invalid("body.name", "is in the request twice: %s", p.name)
		}
		if err != nil {
			fields, ok := fieldsOf(at, err)
			if !ok {
				return nil, "", err
			}
			wrong.Fields = append(wrong.Fields, fields...)
			continue
		}
		seen[p.kind.Name+"/"+p.name] = true
		list = append(list, p)
		version := int64(0)
		if p.step.Old != nil {
			version = p.step.Old.Version
		}
		fmt.Fprintf(sum, "%d %s/%s %d\n", len(raw), p.kind.Name, p.name, version)
		sum.Write(raw)
	}
	if len(wrong.Fields) > 0 {
		wrong.Fields = wrong.Fields[:min(len(wrong.Fields), 20)]
		return nil, "", wrong
	}
	return list, hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// comingOf are the names of all documents of a request. They may refer to each other.
func comingOf(documents []json.RawMessage) resource.Coming {
	out := resource.Coming{}
	for _, raw := range documents {
		var h head
		if json.Unmarshal(raw, &h) == nil { // the plan tells what is wrong
			out[[2]string{h.Kind, strings.TrimSpace(h.Name)}] = true
		}
	}
	return out
}

// fieldsOf are the wrong fields of one document.
func fieldsOf(at string, err error) (out []domain.FieldError, ok bool) {
	var problem *web.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity {
		for _, e := range problem.Errors {
			out = append(out, domain.FieldError{Location: e.Location, Message: e.Message, Value: e.Value, Hint: e.Hint, Position: -1})
		}
	}
	var invalid *domain.Error
	if errors.As(err, &invalid) && invalid.Code == domain.CodeInvalid {
		out = slices.Clone(invalid.Fields)
	}
	for i := range out {
		out[i].Location = at + strings.TrimPrefix(out[i].Location, "body")
	}
	return out, len(out) > 0
}

func (a *api) one(ctx context.Context, id auth.Identity, raw json.RawMessage, coming resource.Coming) (planned, error) {
	var h head
	if err := json.Unmarshal(raw, &h); err != nil {
		return planned{}, domain.Invalid("body", "is no document: %s", err)
	}
	if h.APIVersion != "" && h.APIVersion != resource.APIVersion {
		return planned{}, domain.Invalid("body.apiVersion", "%q is unknown: use %s", h.APIVersion, resource.APIVersion)
	}
	kinds := a.server.Kinds().List()
	at := slices.IndexFunc(kinds, func(k web.DocumentKind) bool { return k.Documents.Kind().Name == h.Kind })
	if at < 0 {
		names := domain.Collect(kinds, func(k *web.DocumentKind) string { return k.Documents.Kind().Name })
		return planned{}, domain.Invalid("body.kind", "%q is no kind: use %s", h.Kind, strings.Join(names, ", "))
	}
	found := kinds[at]
	k := found.Documents.Kind()
	if !id.May(k.Edit) {
		return planned{}, domain.Errorf(domain.CodeDenied, "your role %q does not allow to write %s", id.Role, k.A())
	}
	if err := a.server.Kinds().Check(ctx, found.Write, raw); err != nil {
		return planned{}, err
	}
	step, err := found.Documents.Plan(ctx, id.Tenant, id.Actor(), resource.Write{Name: h.Name, Labels: h.Labels, Spec: h.Spec, Secrets: h.Secrets}, coming)
	return planned{k, found.Documents, strings.TrimSpace(h.Name), step}, err
}

func (a *api) plan(ctx context.Context, id auth.Identity, in *input) (*output, error) {
	list, plan, err := a.read(ctx, id, &in.Body)
	if err != nil {
		return nil, err
	}
	if in.Body.Plan != "" && in.Body.Plan != plan {
		return nil, changed()
	}
	out := &output{Plan{ID: plan, Items: []PlanItem{}}}
	for i := range list {
		out.Body.add(itemOf(&list[i]))
	}
	return out, nil
}

func changed() error {
	return domain.Errorf(domain.CodeConflict, "the plan would be another one now: documents or versions have changed since; look at a new plan")
}

func (p *Plan) add(item PlanItem) {
	switch {
	case item.Error != "":
		p.Failed++
	case item.Action == string(resource.ActionCreate):
		p.Create++
	case item.Action == string(resource.ActionUpdate):
		p.Update++
	default:
		p.Same++
	}
	p.Items = append(p.Items, item)
}

func itemOf(p *planned) PlanItem {
	item := PlanItem{Kind: p.kind.Name, Name: p.name, Action: string(p.step.Action)}
	if p.step.Old != nil {
		item.ID, item.Version = domain.JobID(p.step.Old.ID).String(), p.step.Old.Version
	}
	for _, c := range p.step.Changes {
		item.Changes = append(item.Changes, PlanChange(c))
	}
	return item
}

func (a *api) apply(ctx context.Context, id auth.Identity, in *input) (*output, error) {
	list, plan, err := a.read(ctx, id, &in.Body)
	if err != nil {
		return nil, err
	}
	if in.Body.Plan != "" && in.Body.Plan != plan {
		return nil, changed()
	}
	domain.AuditOf(ctx).Drop() // each document has an entry of its own
	items := make([]PlanItem, len(list))
	for _, i := range a.order(list) {
		p := &list[i]
		item := itemOf(p)
		row, err := p.docs.Do(domain.WithAudit(ctx, domain.AuditOf(ctx).Another()), id.Tenant, id.Actor(), &p.step)
		var known *domain.Error
		switch {
		case err == nil:
			item.ID, item.Version = domain.JobID(row.ID).String(), row.Version
		case errors.As(err, &known):
			item.Error = known.Message
		default:
			return nil, err
		}
		items[i] = item
	}
	out := &output{Plan{ID: plan, Items: []PlanItem{}}}
	for _, item := range items {
		out.Body.add(item)
	}
	return out, nil
}

// order is the order in which documents are written. A kind comes after the kinds that it
// refers to, which were registered before it.
func (a *api) order(list []planned) []int {
	kinds := a.server.Kinds().List()
	of := func(i int) int {
		return slices.IndexFunc(kinds, func(k web.DocumentKind) bool { return k.Documents == list[i].docs })
	}
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(i, j int) int { return of(i) - of(j) })
	return out
}
