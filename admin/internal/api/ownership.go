package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/nodehandler"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// errOwnedByCode says where a job is declared, and what to do instead.
func errOwnedByCode(v store.JobView, instead string, changes ...Change) error {
	where := fmt.Sprintf("in the code of the executor %q, at the handler %q", v.ExecutorName, v.Spec.Handler)
	if v.Declared.Version != "" {
		where += ", version " + v.Declared.Version
	}
	err := domain.Errorf(domain.CodeOwnedByCode, "the job %q is declared %s, and belongs to it: %s", v.Spec.Name, where, instead)
	for _, c := range changes {
		err.Fields = append(err.Fields, domain.FieldError{Location: "body." + c.Field, Message: "is declared in the code", Position: -1})
	}
	return err
}

// lockedByCode refuses an edit of what the code says. Labels, alerts and the owner
// are the console's where it does not.
func lockedByCode(v store.JobView, executor domain.ExecutorID, spec *domain.JobSpec) error {
	const here = " there; labels, alerts and the owner can be changed here where the code does not declare them"
	if executor != v.Executor {
		return errOwnedByCode(v, "move it"+here, Change{Field: "executor"})
	}
	changes := changesOf(specOf(&v.Spec), specOf(spec))
	changes = slices.DeleteFunc(changes, func(c Change) bool { return !v.Spec.CodeSays.Locks(c.Field) })
	if len(changes) > 0 {
		return errOwnedByCode(v, "change it"+here, changes...)
	}
	return nil
}

// Change is one setting that differs.
type Change struct {
	Field string          `json:"field" example:"schedule.expr" doc:"Path of the setting"`
	From  json.RawMessage `json:"from" doc:"null: not set"`
	To    json.RawMessage `json:"to" doc:"null: not set"`
}

// changesOf lists the settings that differ, in the order of their names. Lists
// and inputs count as one value.
func changesOf(from, to JobSpec) []Change {
	from.Schedule.Text, to.Schedule.Text = nil, nil // follows from the others
	a, b := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	flatten(from, a)
	flatten(to, b)
	fields := map[string]bool{}
	for _, side := range []map[string]json.RawMessage{a, b} {
		for f := range side {
			fields[f] = true
		}
	}
	out := []Change{}
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if !bytes.Equal(a[f], b[f]) {
			out = append(out, Change{Field: f, From: web.RawOrNull(a[f]), To: web.RawOrNull(b[f])})
		}
	}
	return out
}

// flatten writes a job's settings by path, as the API names them.
func flatten(s JobSpec, into map[string]json.RawMessage) {
	raw, err := json.Marshal(s)
	if err != nil {
		return // a struct of texts and numbers always marshals
	}
	var walk func(path string, raw json.RawMessage)
	walk = func(path string, raw json.RawMessage) {
		var object map[string]json.RawMessage
		if path == "input" || len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &object) != nil {
			into[path] = raw
			return
		}
		for key, value := range object {
			if path != "" {
				key = path + "." + key
			}
			walk(key, value)
		}
	}
	walk("", raw)
}

// JobDeclaration compares a job with what code declares of it.
type JobDeclaration struct {
	Hash     string   `json:"hash" doc:"Of the declaration; give it back with the decision"`
	Version  string   `json:"version" doc:"Of the application, the newest one that declares the job"`
	EditedAt *string  `json:"editedAt" format:"date-time" doc:"When the job was edited in the console; null: it was not"`
	EditedBy string   `json:"editedBy" doc:"Who edited it; empty: nobody did"`
	GiveBack bool     `json:"giveBack" doc:"The job can be given back to the code"`
	Reason   string   `json:"reason,omitempty" doc:"Why it cannot"`
	Changes  []Change `json:"changes" doc:"What becomes of the job when it is given back: from what it is, to what the code declares"`
}

type giveBackInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body *struct {
		Hash string `json:"hash,omitempty" maxLength:"128" doc:"What was looked at; another declaration is not applied then. Default: whatever there is"`
	} `required:"false"`
}

// declarations are jobs in the code of applications: people decide about what they
// propose, and give jobs back to them.
type declarations struct {
	// fixed after construction
	store interface {
		store.Jobs
		store.Executors
		store.Catalogue
	}
	handlers    nodehandler.List
	newID       func() int64
	now         func() time.Time
	plan        store.PlanFunc
	jobsChanged func()
	declaration func(ctx context.Context, job store.JobView) (domain.DeclaredJob, error)
	givenBack   func(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID)
	log         *slog.Logger
}

func (ds *declarations) names() callback.Naming {
	return callback.Naming{Executors: ds.store, Handlers: ds.handlers}
}

// name writes the names of executors and connections into the callbacks of specs.
func (ds *declarations) name(ctx context.Context, id auth.Identity, specs ...*JobSpec) error {
	var all []*callback.Callback
	for _, s := range specs {
		all = append(all, s.callbacks()...)
	}
	return ds.names().Fill(ctx, id.Tenant, all...)
}

func (ds *declarations) register(server *web.Server) {
	ds.registerProposals(server)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/declaration", ID: "get-job-declaration", Computes: true, Tag: "jobs",
		Summary:     "What code declares of a job, and how the job differs",
		Description: "404 where no application declares the job, or the declaration is not known any more.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body JobDeclaration }, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, ds.store.FindJob)
		if err != nil {
			return nil, err
		}
		d, err := ds.declarationOf(ctx, v)
		if err != nil {
			return nil, err
		}
		is, declared := specOf(&v.Spec), specOf(&d.Spec)
		if err := ds.name(ctx, id, &is, &declared); err != nil {
			return nil, err
		}
		out := JobDeclaration{Hash: d.Hash, Version: d.Declared.Version, Changes: changesOf(is, declared), GiveBack: true}
		if err := v.MayGiveBack(d.Declared); err != nil {
			out.GiveBack, out.Reason = false, err.Error()
		}
		if v.Source == domain.SourceConsole {
			last, err := ds.store.ListRevisions(ctx, store.ListRevisionsParams{Tenant: id.Tenant, Job: v.ID, Limit: 1})
			if err != nil {
				return nil, err
			}
			for _, r := range last.Items { // pausing moves updatedAt, and makes no revision
				out.EditedAt, out.EditedBy = web.InstantOrNull(r.CreatedAt), r.CreatedBy
			}
		}
		return &struct{ Body JobDeclaration }{out}, nil
	})
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/give-back", ID: "give-job-back", Computes: true, Tag: "jobs",
		Summary: "Give a job that was edited in the console back to the code",
		Description: "The job becomes what the code declares, as a new revision, and follows the code again as it says. Labels, alerts and the owner stay where the code does not say them, and so does its state." +
			" 409 when it was not edited, when the code leaves it to the console, or when nothing declares it any more.",
		Errors: []int{http.StatusConflict},
	}, ds.giveBack)
}

func (ds *declarations) declarationOf(ctx context.Context, v store.JobView) (d domain.DeclaredJob, err error) {
	if v.Declared.By == 0 {
		return d, domain.Errorf(domain.CodeNotFound, "the job %q is not declared by the code of an application", v.Spec.Name)
	}
	return ds.declaration(ctx, v)
}

func (ds *declarations) giveBack(ctx context.Context, id auth.Identity, in *giveBackInput) (*jobOutput, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, ds.store.FindJob)
	if err != nil {
		return nil, err
	}
	d, err := ds.declarationOf(ctx, v)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		if err := v.MayGiveBack(v.Declared); err != nil {
			return nil, err // it says more
		}
		return nil, domain.Errorf(domain.CodeConflict, "%s", err.Error())
	case err != nil:
		return nil, err
	}
	if err := v.MayGiveBack(d.Declared); err != nil {
		return nil, err
	}
	switch {
	case in.Body != nil && in.Body.Hash != "" && in.Body.Hash != d.Hash:
		return nil, domain.Errorf(domain.CodeConflict, "the application declares something else meanwhile; look at it again")
	}
	v, err = ds.store.UpdateJob(ctx, store.UpdateJobParams{
		Tenant: id.Tenant, ID: v.ID, IfRevision: v.Revision, Spec: d.Spec, Source: domain.SourceCode, DeclarationHash: d.Hash,
		Declared: &d.Declared, By: id.Actor(), Next: timing.Next, Plan: ds.plan,
	})
	if err != nil {
		return nil, err
	}
	ds.jobsChanged()
	ds.log.Info("job given back to the code", "tenant_id", id.Tenant, "job_id", v.ID, "job", v.Spec.Name, "version", d.Declared.Version, "by", id.Actor())
	if err := ds.store.DropProposals(ctx, id.Tenant, v.Executor, []string{v.DeclaredName()}); err != nil {
		ds.log.Warn("the proposal for a job that was given back could not be dropped", "tenant_id", id.Tenant, "job_id", v.ID, "err", err)
	}
	ds.givenBack(ctx, id.Tenant, v.Executor)
	return jobAnswer(ctx, ds.names(), id, v)
}
