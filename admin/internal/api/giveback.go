package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

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

func (a *API) registerGiveBack() {
	register(a, may(domain.PermRead), operation{
		method: http.MethodGet, path: base + "/jobs/{id}/declaration", id: "get-job-declaration", tag: "jobs",
		summary:     "What code declares of a job, and how the job differs",
		description: "404 where no application declares the job, or the declaration is not known any more.",
	}, func(ctx context.Context, id auth.Identity, in *idInput) (*struct{ Body JobDeclaration }, error) {
		v, err := a.job(ctx, id, in.ID)
		if err != nil {
			return nil, err
		}
		d, err := a.declarationOf(ctx, v)
		if err != nil {
			return nil, err
		}
		out := JobDeclaration{Hash: d.Hash, Version: d.Declared.Version, Changes: changesOf(specOf(&v.Spec), specOf(&d.Spec)), GiveBack: true}
		if err := v.MayGiveBack(); err != nil {
			out.GiveBack, out.Reason = false, err.Error()
		}
		if v.Source == domain.SourceConsole {
			last, err := a.deps.Store.ListRevisions(ctx, id.Tenant, v.ID, 1)
			if err != nil {
				return nil, err
			}
			for _, r := range last { // pausing moves updatedAt, and makes no revision
				out.EditedAt, out.EditedBy = instantOrNull(r.CreatedAt), r.CreatedBy
			}
		}
		return &struct{ Body JobDeclaration }{out}, nil
	})
	register(a, may(domain.PermEdit), operation{
		method: http.MethodPost, path: base + "/jobs/{id}/give-back", id: "give-job-back", tag: "jobs",
		summary: "Give a job that was edited in the console back to the code",
		description: "The job becomes what the code declares, as a new revision, and follows the code again as it says. Labels, alerts and the owner stay where the code does not say them, and so does its state." +
			" 409 when it was not edited, when the code leaves it to the console, or when nothing declares it any more.",
		errors: []int{http.StatusConflict},
	}, a.giveBack)
}

func (a *API) declarationOf(ctx context.Context, v store.JobView) (d domain.DeclaredJob, err error) {
	if v.Declared.By == 0 || a.deps.Declaration == nil {
		return d, domain.Errorf(domain.CodeNotFound, "the job %q is not declared by the code of an application", v.Spec.Name)
	}
	return a.deps.Declaration(ctx, v)
}

func (a *API) giveBack(ctx context.Context, id auth.Identity, in *giveBackInput) (*jobOutput, error) {
	v, err := a.job(ctx, id, in.ID)
	if err != nil {
		return nil, err
	}
	if err := v.MayGiveBack(); err != nil {
		return nil, err
	}
	d, err := a.declarationOf(ctx, v)
	switch {
	case domain.Is(err, domain.CodeNotFound):
		return nil, domain.Errorf(domain.CodeConflict, "%s", err.Error())
	case err != nil:
		return nil, err
	case in.Body != nil && in.Body.Hash != "" && in.Body.Hash != d.Hash:
		return nil, domain.Errorf(domain.CodeConflict, "the application declares something else meanwhile; look at it again")
	}
	v, err = a.deps.Store.UpdateJob(ctx, store.UpdateJobParams{
		Tenant: id.Tenant, ID: v.ID, IfRevision: v.Revision, Spec: d.Spec, Source: domain.SourceCode, DeclarationHash: d.Hash,
		Declared: &d.Declared, By: id.Actor(), Next: a.deps.NextFire(v.ID), Plan: a.deps.Plan,
	})
	if err != nil {
		return nil, err
	}
	a.deps.JobsChanged()
	a.log.Info("job given back to the code", "tenant_id", id.Tenant, "job_id", v.ID, "job", v.Spec.Name, "version", d.Declared.Version, "by", id.Actor())
	if err := a.deps.Store.DropProposals(ctx, id.Tenant, v.Executor, []string{v.Spec.Name}); err != nil {
		a.log.Warn("the proposal for a job that was given back could not be dropped", "tenant_id", id.Tenant, "job_id", v.ID, "err", err)
	}
	if a.deps.GivenBack != nil {
		a.deps.GivenBack(ctx, id.Tenant, v.Executor)
	}
	return a.jobAnswer(ctx, id, v)
}
