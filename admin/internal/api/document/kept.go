package document

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// List is an answer with a page of documents.
type List struct{ Body json.RawMessage }

// Kept plans and writes documents that the engine keeps in tables of its own, with specs of
// type S. It is a web.Planner.
type Kept[S any] struct {
	// fixed after construction
	Kind  *resource.Kind
	NewID func() int64
	// Read finds documents by names and by ids, in their order. nil: there is none.
	Read func(ctx context.Context, id auth.Identity, names []string, ids []int64) ([]*resource.Document[S], error)
	// Check completes and checks a draft, and asks for the right to write it. Its errors have
	// locations below body.
	Check func(ctx context.Context, id auth.Identity, d *resource.Draft[S], coming resource.Coming) error
	// Write creates a document if old is nil, or else changes it. It returns the new version.
	Write func(ctx context.Context, id auth.Identity, meta resource.Meta, old *resource.Document[S], spec *S) (int64, error)
	// Removable is the check of Remove, after the going documents are gone. nil: Remove refuses
	// none.
	Removable func(ctx context.Context, id auth.Identity, old *resource.Document[S], going resource.Going) error
	// Remove deletes a document at its version. nil: documents of the kind are not deleted so.
	Remove func(ctx context.Context, id auth.Identity, old *resource.Document[S]) error
}

// keptWork is what a step needs. old is nil for a new document.
type keptWork[S any] struct {
	old  *resource.Document[S]
	meta resource.Meta
	spec S
}

// Add gives the kind its schemas, its place in an apply and its list. It returns the operation
// that lists its documents.
func (k *Kept[S]) Add(server *web.Server) web.Operation {
	write, page := Describe(server.Kinds().Registry(k.Kind), k.Kind)
	server.Kinds().Add(web.DocumentKind{Kind: k.Kind, Write: write, Lists: k.Kind.ID() + "-documents", First: true, Planner: k})
	return web.Operation{
		Method: http.MethodGet, Path: web.Base + "/" + k.Kind.ID() + "-documents", ID: "list-" + k.Kind.ID() + "-documents", Answer: page,
	}
}

// answer is a document as the API shows it.
func (k *Kept[S]) answer(d *resource.Document[S]) (Answer, error) {
	spec, err := json.Marshal(&d.Spec)
	return Answer{
		APIVersion: resource.APIVersion, Kind: k.Kind.Name, ID: domain.JobID(d.ID).String(), Name: d.Name, Version: d.Version, Spec: spec,
		CreatedAt: web.Instant(d.CreatedAt), UpdatedAt: web.Instant(d.UpdatedAt), CreatedBy: d.CreatedBy, UpdatedBy: d.UpdatedBy,
	}, err
}

// Page is a page of documents.
func (k *Kept[S]) Page(list []*resource.Document[S], next *string) (*List, error) {
	out := web.OnePage(make([]Answer, len(list)))
	out.Body.NextCursor = next
	for i, d := range list {
		var err error
		if out.Body.Items[i], err = k.answer(d); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(out.Body)
	return &List{Body: body}, err
}

// Plan implements web.Planner.
func (k *Kept[S]) Plan(ctx context.Context, id auth.Identity, docs []resource.Write, r *web.PlanRequest) (steps []resource.Step, wrong []error, err error) {
	old, err := k.Read(ctx, id, domain.Collect(docs, func(w *resource.Write) string { return w.Name }), nil)
	if err != nil {
		return nil, nil, err
	}
	for i := range docs {
		step, err := k.plan(ctx, id, &docs[i], old[i], r.Coming)
		if err != nil && web.OurFault(err) {
			return nil, nil, err
		}
		steps, wrong = append(steps, step), append(wrong, err)
	}
	return steps, wrong, nil
}

func (k *Kept[S]) plan(ctx context.Context, id auth.Identity, doc *resource.Write, old *resource.Document[S], coming resource.Coming) (resource.Step, error) {
	draft := resource.Draft[S]{Tenant: id.Tenant, Name: doc.Name, Old: old}
	if err := json.Unmarshal(doc.Spec, &draft.Spec); err != nil {
		return resource.Step{}, domain.Misfit("body.spec", err)
	}
	if len(doc.Labels) > 0 {
		return resource.Step{}, domain.Invalid("body.labels", "%s has no labels", k.Kind.A())
	}
	if err := k.Check(ctx, id, &draft, coming); err != nil {
		return resource.Step{}, err
	}
	step := resource.Step{Action: resource.ActionCreate, Name: doc.Name, Warnings: draft.Warnings}
	if old == nil {
		meta := resource.Meta{ID: k.NewID(), Tenant: id.Tenant, Name: doc.Name}
		step.New, step.Work = &resource.Row{Meta: meta}, keptWork[S]{meta: meta, spec: draft.Spec}
		return step, nil
	}
	step.Action, step.ID, step.Version = resource.ActionUpdate, old.ID, old.Version
	step.Work = keptWork[S]{old: old, meta: old.Meta, spec: draft.Spec}
	sides := make([]map[string]any, 2)
	for i, spec := range []*S{&old.Spec, &draft.Spec} {
		raw, err := json.Marshal(spec)
		if err != nil {
			return step, err
		}
		if i == 0 {
			step.Seen = string(raw)
		}
		var fields any
		if err := json.Unmarshal(raw, &fields); err != nil {
			return step, err
		}
		sides[i] = map[string]any{"spec": fields}
	}
	changes, err := resource.Compare(sides[0], sides[1])
	if step.Changes = changes; len(changes) == 0 {
		step.Action = resource.ActionSame
	}
	return step, err
}

// PlanDelete implements web.Planner.
func (k *Kept[S]) PlanDelete(ctx context.Context, id auth.Identity, names []string, ids []int64, going resource.Going) (steps []resource.Step, err error) {
	if k.Remove == nil && len(names) == 0 {
		return nil, nil // they leave their set, and stay
	}
	found, err := k.Read(ctx, id, names, ids)
	for _, d := range found {
		if d == nil {
			continue
		}
		step := resource.Step{Action: resource.ActionDelete, Name: d.Name, ID: d.ID, Version: d.Version, Work: keptWork[S]{old: d, meta: d.Meta}}
		if k.Remove == nil {
			step.Refused = domain.Errorf(domain.CodeConflict, "%s is not deleted by a document: use carillon %s delete", k.Kind.A(), k.Kind.Noun)
		}
		if k.Removable != nil {
			if step.Refused = k.Removable(ctx, id, d, going); step.Refused != nil && web.OurFault(step.Refused) {
				return nil, step.Refused
			}
		}
		steps = append(steps, step)
	}
	return steps, err
}

// Do implements web.Planner.
func (k *Kept[S]) Do(ctx context.Context, id auth.Identity, steps []*resource.Step) []error {
	return web.DoEach(ctx, steps, func(ctx context.Context, step *resource.Step) (err error) {
		work := step.Work.(keptWork[S])
		domain.AuditOf(ctx).Object(k.audited(&work, step.Action))
		if step.Action == resource.ActionDelete {
			return k.Remove(ctx, id, work.old)
		}
		version, err := k.Write(ctx, id, work.meta, work.old, &work.spec)
		if err == nil {
			step.ID, step.Version = work.meta.ID, version
		}
		return err
	})
}

func (k *Kept[S]) audited(work *keptWork[S], action resource.Action) domain.AuditObject {
	object := domain.AuditObject{Kind: k.Kind.Noun, ID: domain.JobID(work.meta.ID).String(), Name: work.meta.Name}
	text := func(spec *S) string {
		raw, err := json.Marshal(spec)
		if err != nil {
			return ""
		}
		return string(raw)
	}
	if work.old != nil {
		object.Before = text(&work.old.Spec)
	}
	if action != resource.ActionDelete {
		object.After = text(&work.spec)
	}
	return object
}
