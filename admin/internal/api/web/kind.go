package web

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/resource"
)

// DocumentKind is a kind of documents that the API has.
type DocumentKind struct {
	*resource.Kind
	// Write is the schema of a document that is written.
	Write *huma.Schema
	// Lists is the last segment of the address of its list. Brief: the list leaves long parts
	// out.
	Lists string
	Brief bool
	// First kinds are named by documents of other kinds: the last one that was added is written
	// first. Last kinds name documents of other kinds, and are written after all others.
	First, Last bool
	Planner     Planner
	// Documents are those of the kind; nil: the engine keeps them.
	Documents *resource.Documents
}

// MayRead reports whether a caller may read documents of the kind.
func (k *DocumentKind) MayRead(id auth.Identity) bool {
	return id.May(k.Read) && k.isFor(id)
}

// MayEdit reports whether a caller may write documents of the kind.
func (k *DocumentKind) MayEdit(id auth.Identity) bool {
	return id.May(k.Edit) && k.isFor(id)
}

func (k *DocumentKind) isFor(id auth.Identity) bool {
	return (!k.Cluster || id.PlatformAdmin) && (!k.Local || id.Kind == auth.KindNode)
}

// Planner plans and writes documents of a kind.
type Planner interface {
	// Plan says what Do would do: a step or an error for each document, in their order.
	Plan(ctx context.Context, id auth.Identity, docs []resource.Write, r *PlanRequest) (steps []resource.Step, wrong []error, err error)
	// PlanDelete finds documents by their names, and others by their ids. Those that are not
	// there are left out. Those that are needed by others than the going ones are refused.
	PlanDelete(ctx context.Context, id auth.Identity, names []string, ids []int64, going resource.Going) ([]resource.Step, error)
	// Do does steps that change something, and returns an error or nil for each. It writes the
	// new ids and versions into them. CodeRevisionMismatch: the document was changed after the
	// plan. Each document has an audit entry of its own.
	Do(ctx context.Context, id auth.Identity, steps []*resource.Step) []error
}

// PlanRequest is what a plan needs beside the documents of a kind.
type PlanRequest struct {
	// New are documents of other kinds that the same request writes, by kind and name.
	New map[string]map[string]*resource.Row
	// Coming are the names of all documents of the request, which may refer to each other.
	Coming resource.Coming
	// TakeOver lets a document decide about a job that code has decided about so far.
	TakeOver bool
	// AllowUnknownHandler and AllowUnfitInput are those of create-job.
	AllowUnknownHandler, AllowUnfitInput bool
}

// Kinds are the kinds of documents that the API has. They are added at construction.
type Kinds struct {
	server *Server
	list   []DocumentKind
	last   []DocumentKind
	local  huma.Registry // of local kinds
}

// Kinds has the kinds of documents that the API has.
func (s *Server) Kinds() *Kinds { return &s.kinds }

// Add says that the API has a kind.
func (k *Kinds) Add(kind DocumentKind) {
	if kind.Last {
		k.last = append(k.last, kind)
		return
	}
	if kind.First {
		k.list = slices.Insert(k.list, 0, kind)
		return
	}
	k.list = append(k.list, kind)
}

// List lists the kinds in the order in which an apply writes them.
func (k *Kinds) List() []DocumentKind { return append(k.list[:len(k.list):len(k.list)], k.last...) }

// Registry has the schemas of a kind: those of the OpenAPI document, or of local kinds.
func (k *Kinds) Registry(kind *resource.Kind) huma.Registry {
	if !kind.Local {
		return k.server.huma.OpenAPI().Components.Schemas
	}
	if k.local == nil {
		k.local = huma.NewMapRegistry(components, huma.DefaultSchemaNamer)
	}
	return k.local
}

// Check holds a document against the schema of its kind, as the body of a request is. Errors
// name the wrong fields, with locations below body.
func (k *Kinds) Check(ctx context.Context, kind *DocumentKind, raw json.RawMessage) error {
	return checkBody(ctx, k.Registry(kind.Kind), kind.Write, raw)
}

// ForEach lets a kind whose documents are planned one by one have a Planner.
type ForEach struct{ *resource.Documents }

// Plan implements Planner.
func (f ForEach) Plan(ctx context.Context, id auth.Identity, docs []resource.Write, r *PlanRequest) (steps []resource.Step, wrong []error, err error) {
	steps, wrong = make([]resource.Step, len(docs)), make([]error, len(docs))
	for i := range docs {
		steps[i], wrong[i] = f.Documents.Plan(ctx, id.Tenant, id.Actor(), docs[i], r.Coming)
		if wrong[i] != nil && OurFault(wrong[i]) {
			return nil, nil, wrong[i]
		}
	}
	return steps, wrong, nil
}

// PlanDelete implements Planner.
func (f ForEach) PlanDelete(ctx context.Context, id auth.Identity, names []string, ids []int64, going resource.Going) (steps []resource.Step, err error) {
	add := func(row resource.Row, err error) error {
		if domain.Is(err, domain.CodeNotFound) {
			return nil
		}
		var step resource.Step
		if err == nil {
			step, err = f.Documents.DeleteStep(ctx, row, going)
			steps = append(steps, step)
		}
		return err
	}
	for _, name := range names {
		if err := add(f.Store().FindByName(ctx, id.Tenant, name)); err != nil {
			return nil, err
		}
	}
	for _, one := range ids {
		if err := add(f.Store().Find(ctx, id.Tenant, one)); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// Do implements Planner.
func (f ForEach) Do(ctx context.Context, id auth.Identity, steps []*resource.Step) []error {
	return DoEach(ctx, steps, func(ctx context.Context, step *resource.Step) error {
		return f.Documents.Do(ctx, id.Tenant, id.Actor(), step)
	})
}

// DoEach does steps one by one. The first fault of the server ends it: the others have it, too.
func DoEach(ctx context.Context, steps []*resource.Step, do func(ctx context.Context, step *resource.Step) error) []error {
	errs := make([]error, len(steps))
	for i, step := range steps {
		if i > 0 && errs[i-1] != nil && OurFault(errs[i-1]) {
			errs[i] = errs[i-1]
			continue
		}
		errs[i] = do(domain.WithAudit(ctx, domain.AuditOf(ctx).Another()), step)
	}
	return errs
}

// OnlyUnknown reports whether all that is wrong are fields that are not known.
func OnlyUnknown(err error) bool {
	var p *Problem
	return errors.As(err, &p) && len(p.Errors) > 0 && !slices.ContainsFunc(p.Errors, func(e ProblemItem) bool { return e.Message != validation.MsgUnexpectedProperty })
}

// FieldsOf are the wrong fields that an error names, with locations below at in place of body.
// An error without fields is one about at. told is false for errors of the server.
func FieldsOf(at string, err error) (out []domain.FieldError, told bool) {
	if OurFault(err) {
		return nil, false
	}
	var problem *Problem
	var known *domain.Error
	message := err.Error()
	if errors.As(err, &problem) {
		message = problem.Detail
		for _, e := range problem.Errors {
			out = append(out, domain.FieldError{Location: e.Location, Message: e.Message, Value: e.Value, Hint: e.Hint, Position: -1})
		}
	} else if errors.As(err, &known) {
		message = known.Message
		out = slices.Clone(known.Fields)
	}
	if len(out) == 0 {
		out = []domain.FieldError{{Location: "body", Message: message, Position: -1}}
	}
	for i := range out {
		out[i].Location = at + strings.TrimPrefix(out[i].Location, "body")
	}
	return out, true
}
