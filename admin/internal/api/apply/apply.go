// Package apply answers: what would change if these documents were written, and write them?
//
// A plan checks documents of any kind against the tenant as it is, and says for each what an
// apply would do. An apply that names a plan is refused if the tenant has changed since.
package apply

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// maxBody bounds the documents of one request, in bytes.
const maxBody = 8 << 20

type input struct{ Body DocumentBatch }

type output struct{ Body Plan }

type kindsInput struct {
	All bool `query:"all" doc:"Also kinds that the caller may not read, or that stand in provision files only: User, JoinToken and ApiKey"`
}

// Sets keeps which documents belong to which set (store.DocumentSets).
type Sets interface {
	ListDocumentSet(ctx context.Context, tenant domain.TenantID, set string) ([]resource.SetMember, error)
	ListDocumentSetNames(ctx context.Context, tenant domain.TenantID) ([]string, error)
	SaveDocumentSet(ctx context.Context, tenant domain.TenantID, set string, join, leave []resource.SetMember) error
}

type api struct {
	server *web.Server
	sets   Sets
}

// Register adds the operations.
func Register(s *web.Server, sets Sets) {
	a := &api{s, sets}
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/plan", ID: "plan-documents", Tag: "documents", Computes: true, MaxBody: maxBody, Unaudited: "it writes nothing",
		Summary: "Plan an apply", Description: "Checks the documents and says what an apply would do. Nothing is written.",
	}, a.plan)
	web.Register(s, web.May(domain.PermEdit), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/apply", ID: "apply-documents", Tag: "documents", Computes: true, MaxBody: maxBody, Errors: []int{http.StatusConflict},
		Summary: "Apply documents", Description: "Creates, changes and deletes documents as a plan says. All are checked before the first is written. A document that was changed in between is not written, and its item says so.",
	}, a.apply)
	web.Register(s, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/kinds", ID: "list-kinds", Tag: "documents",
		Summary: "List the kinds of documents", Description: "Those that the caller may read, in the order in which an apply writes them. With all: those of which there is a schema, such as the kinds that stand in provision files only.",
	}, func(_ context.Context, id auth.Identity, in *kindsInput) (*web.PageOutput[DocumentKind], error) {
		kinds := slices.DeleteFunc(slices.Clone(s.Kinds().List()), func(k web.DocumentKind) bool { return !in.All && !k.MayRead(id) })
		return web.OnePage(domain.Collect(kinds, func(k *web.DocumentKind) DocumentKind {
			return DocumentKind{k.Name, k.Lists, resource.APIVersion, k.Brief, web.EmptyIfNil(k.Literal)}
		})), nil
	})
	a.registerSchema()
}

// registerSchema adds the schemas by which editors check documents.
func (a *api) registerSchema() {
	web.Register(a.server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/kinds/{kind}/schema", ID: "get-kind-schema", Tag: "documents",
		Summary: "JSON schema of a kind of documents", Description: "Draft 2020-12, with descriptions and bounds, and without references to other addresses. Editors complete and check files with it.",
		Answer: web.AnyJSON,
	}, a.schema)
}

// ready reads and plans the documents of a request, and refuses another plan than was looked at.
func (a *api) ready(ctx context.Context, id auth.Identity, in *DocumentBatch) (*request, error) {
	r, err := a.read(ctx, id, in)
	if err != nil {
		return nil, err
	}
	if in.Plan != "" && in.Plan != r.plan {
		return nil, domain.Errorf(domain.CodeConflict, "the plan would be another one now: documents or versions have changed since; look at a new plan")
	}
	return r, nil
}

func (a *api) plan(ctx context.Context, id auth.Identity, in *input) (*output, error) {
	r, err := a.ready(ctx, id, &in.Body)
	if err != nil {
		return nil, err
	}
	return &output{r.answer()}, nil
}

func (a *api) apply(ctx context.Context, id auth.Identity, in *input) (*output, error) {
	r, err := a.ready(ctx, id, &in.Body)
	if err != nil {
		return nil, err
	}
	for _, e := range append(r.entries[:len(r.entries):len(r.entries)], r.deletes...) {
		if e.step.Refused != nil {
			return nil, e.step.Refused
		}
	}
	if in.Body.Delete {
		domain.AuditOf(ctx).Operation("delete-documents")
	}
	domain.AuditOf(ctx).Drop() // each document has an entry of its own
	kinds := a.server.Kinds().List()
	for i := range kinds {
		if err := a.write(ctx, id, r, &kinds[i]); err != nil {
			return nil, err
		}
	}
	if err := do(ctx, id, r.deletes); err != nil {
		return nil, err
	}
	out := &output{r.answer()}
	return out, a.saveSet(ctx, id, r)
}

// write writes the documents of one kind. Those that name documents of other kinds are planned
// anew: only now these are there.
func (a *api) write(ctx context.Context, id auth.Identity, r *request, k *web.DocumentKind) error {
	of := r.of(k)
	if k.Last && len(of) > 0 && r.tried {
		if err := r.again(ctx, id, k, of); err != nil {
			return err
		}
	}
	r.tried = r.tried || slices.ContainsFunc(of, func(e *entry) bool { return e.step.Action != resource.ActionSame })
	return do(ctx, id, of)
}

// do does the steps that change something, those of one kind together.
func do(ctx context.Context, id auth.Identity, of []*entry) error {
	of = slices.DeleteFunc(slices.Clone(of), func(e *entry) bool { return e.step.Action == resource.ActionSame || e.err != nil })
	for len(of) > 0 {
		n := 1
		for n < len(of) && of[n].kind.Name == of[0].kind.Name {
			n++
		}
		errs := of[0].kind.Planner.Do(ctx, id, stepsOf(of[:n]))
		for i, err := range errs {
			if err != nil && web.OurFault(err) {
				return err
			}
			of[i].err = err
		}
		of = of[n:]
	}
	return nil
}

// again plans documents once more. One that would now be another change is not written.
func (r *request) again(ctx context.Context, id auth.Identity, k *web.DocumentKind, of []*entry) error {
	steps, wrong, err := k.Planner.Plan(ctx, id, writesOf(of), &web.PlanRequest{
		TakeOver: r.with.TakeOver, AllowUnknownHandler: r.with.AllowUnknownHandler, AllowUnfitInput: r.with.AllowUnfitInput,
	})
	if err != nil {
		return err
	}
	for i, e := range of {
		switch was := e.step; {
		case wrong[i] != nil:
			e.err = wrong[i]
		case steps[i].Refused != nil:
			e.err = steps[i].Refused
		case steps[i].Action != was.Action || !reflect.DeepEqual(steps[i].Changes, was.Changes):
			e.err = domain.Errorf(domain.CodeRevisionMismatch, "it was changed while the apply ran; look at a new plan")
		default:
			e.step = steps[i]
			e.step.Fires, e.step.Warnings = was.Fires, was.Warnings
		}
	}
	return nil
}

// message is an error in the words for people.
func message(err error) string {
	var known *domain.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}
