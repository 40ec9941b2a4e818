package api

import (
	"cmp"
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Proposal is what the code of an application wants a job to become.
type Proposal struct {
	ID         string   `json:"id" doc:"Id of the proposal, a decimal string"`
	Name       string   `json:"name" doc:"Of the job"`
	Executor   web.Ref  `json:"executor" doc:"The executor whose code proposes it"`
	Job        *web.Ref `json:"job" doc:"null: there is none yet, accepting makes it"`
	State      string   `json:"state" enum:"pending,declined" doc:"pending: somebody has to decide; declined: it was left as it is"`
	Hash       string   `json:"hash" doc:"Of what is proposed; give it back with the decision"`
	Version    string   `json:"version" doc:"Of the application that proposes"`
	ProposedAt string   `json:"proposedAt" format:"date-time" doc:"When an instance proposed it"`
	DecidedAt  *string  `json:"decidedAt" format:"date-time" doc:"When it was decided; null: not yet"`
	DecidedBy  string   `json:"decidedBy" doc:"Who decided; empty: nobody yet"`
	Proposed   JobSpec  `json:"proposed" doc:"The settings that the code proposes"`
	Changes    []Change `json:"changes" doc:"What differs from the job as it is; empty for a new one"`
}

type listProposalsInput struct {
	web.PageParams
	ExecutorID string `query:"executorId" doc:"Only what this executor's code proposes"`
}

type decideProposalInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body *struct {
		Hash string `json:"hash,omitempty" maxLength:"128" doc:"What was looked at; another proposal is not decided then. Default: whatever there is"`
	} `required:"false"`
}

func (ds *declarations) registerProposals(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/job-proposals", ID: "list-proposals", Large: true, Tag: "jobs",
		Summary: "List what applications propose for jobs", Description: "Only what waits for a decision, the oldest first.",
	}, ds.listProposals)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/job-proposals/{id}", ID: "get-proposal", Tag: "jobs", Summary: "One proposal and what it changes",
		Description: "Each setting that would change, as it is and as proposed.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Proposal }, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, ds.store.FindProposal)
		if err != nil {
			return nil, err
		}
		p, err := ds.proposalOf(ctx, id, v)
		return &struct{ Body Proposal }{p}, err
	})
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/job-proposals/{id}/accept", ID: "accept-proposal", Tag: "jobs",
		Summary: "Make the job what the code proposes", Description: "Labels, alerts and the owner stay where the code does not say them.", Errors: []int{http.StatusConflict},
	}, ds.acceptProposal)
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/job-proposals/{id}/decline", ID: "decline-proposal", Tag: "jobs",
		Summary: "Leave the job as it is", Description: "The same is not proposed again; something else is.", Status: http.StatusNoContent, Errors: []int{http.StatusConflict},
	}, ds.declineProposal)
}

func (ds *declarations) proposalOf(ctx context.Context, id auth.Identity, v store.ProposalView) (Proposal, error) {
	p := Proposal{
		ID: domain.JobID(v.ID).String(), Name: v.Name, Executor: web.Ref{ID: v.Executor.String(), Name: v.ExecutorName},
		State: "pending", Hash: v.Hash, Version: v.Version, ProposedAt: web.Instant(v.ProposedAt), DecidedAt: web.InstantOrNull(v.DecidedAt),
		DecidedBy: v.DecidedBy, Proposed: specOf(&v.Spec), Changes: []Change{},
	}
	if v.State == domain.ProposalDeclined {
		p.State = "declined"
	}
	if v.Job != nil {
		p.Job = &web.Ref{ID: v.Job.ID.String(), Name: v.Job.Spec.Name}
		if merged, err := mergedProposal(v); err == nil { // else accepting it says why
			p.Proposed = specOf(&merged)
		}
	}
	p.Proposed = shownTo(id, p.Proposed)
	if v.Job == nil {
		return p, ds.name(ctx, id, &p.Proposed)
	}
	is := shownTo(id, specOf(&v.Job.Spec))
	err := ds.name(ctx, id, &is, &p.Proposed)
	p.Changes = changesOf(is, p.Proposed)
	return p, err
}

// mergedProposal keeps of the job what the code does not say.
func mergedProposal(v store.ProposalView) (domain.JobSpec, error) {
	spec := v.Spec
	err := spec.KeepConsoles(&v.Job.Spec)
	return spec, err
}

func (ds *declarations) listProposals(ctx context.Context, id auth.Identity, in *listProposalsInput) (*web.PageOutput[Proposal], error) {
	at, err := web.DecodeCursor(in.Cursor, "proposals")
	if err != nil {
		return nil, err
	}
	var r reader
	executor := web.OptionalID[domain.ExecutorID](&r.Reader, "query.executorId", in.ExecutorID)
	if err := r.Err(); err != nil {
		return nil, err
	}
	page, err := ds.store.ListProposals(ctx, store.ListProposalsParams{Tenant: id.Tenant, Within: id.Reach, Executor: executor, After: at.ID, Limit: in.Limit, Brief: true})
	var unnamed error
	out, err := web.StoredPage(page.Items, page.More, err, func(v *store.ProposalView) Proposal {
		p, err := ds.proposalOf(ctx, id, *v)
		unnamed = cmp.Or(unnamed, err)
		return p
	}, func(last *store.ProposalView) web.Cursor {
		return web.Cursor{List: "proposals", ID: last.ID}
	})
	return out, cmp.Or(err, unnamed)
}

// pending finds a proposal that can still be decided.
func (ds *declarations) pending(ctx context.Context, id auth.Identity, in *decideProposalInput) (store.ProposalView, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, ds.store.FindProposal)
	switch {
	case err != nil:
		return v, err
	case v.State != domain.ProposalPending:
		return v, domain.Errorf(domain.CodeConflict, "the proposal was declined by %s", v.DecidedBy)
	case in.Body != nil && in.Body.Hash != "" && in.Body.Hash != v.Hash:
		return v, domain.Errorf(domain.CodeConflict, "the application proposes something else meanwhile; look at it again")
	}
	return v, nil
}

// acceptProposal writes the job, then drops the proposal. If the second step
// does not happen, the next registration does it: the job has its hash.
func (ds *declarations) acceptProposal(ctx context.Context, id auth.Identity, in *decideProposalInput) (*jobOutput, error) {
	v, err := ds.pending(ctx, id, in)
	if err != nil {
		return nil, err
	}
	terms := domain.Declared{By: v.Executor, Name: v.Name, Ownership: domain.OwnedPropose, Removal: v.Removal, Build: v.Build, Version: v.Version}
	var job store.JobView
	if v.Job == nil {
		now, jid := ds.now(), domain.JobID(ds.newID())
		job, err = ds.store.CreateJob(ctx, domain.Job{
			ID: jid, TenantID: id.Tenant, Executor: v.Executor, Partition: domain.PartitionOf(jid), State: domain.JobEnabled,
			Source: domain.SourceCode, DeclarationHash: v.Hash, Declared: terms, Revision: 1, Spec: v.Spec,
			CreatedAt: now, UpdatedAt: now, CreatedBy: id.Actor(), UpdatedBy: id.Actor(),
		}, timing.Next)
	} else if v.Job.Executor != v.Executor {
		err = domain.JobNameTaken(v.Name, v.Job.ExecutorName)
	} else if spec, wrong := mergedProposal(v); wrong != nil {
		err = wrong
	} else {
		job, err = ds.store.UpdateJob(ctx, store.UpdateJobParams{
			Tenant: id.Tenant, ID: v.Job.ID, IfRevision: v.Job.Revision, Spec: spec, Source: domain.SourceCode,
			DeclarationHash: v.Hash, Declared: &terms, By: id.Actor(), Next: timing.Next, Plan: ds.plan,
		})
	}
	if err != nil {
		return nil, err
	}
	ds.jobsChanged()
	ds.log.Info("proposal accepted", "tenant_id", id.Tenant, "job_id", job.ID, "job", v.Name, "version", v.Version, "by", id.Actor())
	if err := ds.store.DropProposals(ctx, id.Tenant, v.Executor, []string{v.Name}); err != nil {
		ds.log.Warn("the accepted proposal could not be dropped", "tenant_id", id.Tenant, "job_id", job.ID, "err", err)
	}
	return jobAnswer(ctx, ds.names(), id, job)
}

func (ds *declarations) declineProposal(ctx context.Context, id auth.Identity, in *decideProposalInput) (*struct{}, error) {
	v, err := ds.pending(ctx, id, in)
	if err != nil {
		return nil, err
	}
	if err := ds.store.DeclineProposal(ctx, id.Tenant, v.ID, v.Hash, id.Actor()); err != nil {
		return nil, err
	}
	ds.log.Info("proposal declined", "tenant_id", id.Tenant, "job", v.Name, "version", v.Version, "by", id.Actor())
	return nil, nil
}
