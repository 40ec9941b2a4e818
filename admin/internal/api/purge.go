package api

import (
	"context"
	"net/http"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// RunPurgeRequest asks for the deletion of ended runs.
type RunPurgeRequest struct {
	JobID  string `json:"jobId,omitempty" doc:"Of which job; default: of all jobs of the tenant, but of timers, which have a retention of their own"`
	Before string `json:"before" format:"date-time" doc:"Runs go that fired and had ended before; not later than now"`
	DryRun bool   `json:"dryRun,omitempty" doc:"Say how many would go, and delete nothing"`
}

// RunPurge is a clean-up, and how far it is.
type RunPurge struct {
	ID         string  `json:"id,omitempty" doc:"Absent with dryRun"`
	JobID      string  `json:"jobId" doc:"Of which job; empty: of all"`
	Before     string  `json:"before" format:"date-time" doc:"As asked for"`
	State      string  `json:"state" enum:"dry_run,running,done,cancelled" doc:"running: more is to be deleted; cancelled: no more is, what was deleted is gone"`
	Found      int64   `json:"found" doc:"How many runs were to go when it was asked for, parts of runs too; 0 when it is looked at later"`
	FoundMore  bool    `json:"foundMore" doc:"There are more than found: it was not counted further"`
	Deleted    int64   `json:"deleted" doc:"How many are gone"`
	CreatedAt  string  `json:"createdAt,omitempty" format:"date-time" doc:"When it was asked for; absent with dryRun"`
	CreatedBy  string  `json:"createdBy" doc:"Who asked for it"`
	FinishedAt *string `json:"finishedAt" format:"date-time" doc:"When it was done or cancelled; null: not yet"`
}

type runPurgeOutput struct {
	Status int
	Body   RunPurge
}

// Bounds of clean-ups.
const (
	maxPurgeCount   = 100_000
	maxPurgesListed = 1000
)

func (rt *retention) registerPurges(server *web.Server) {
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/run-purges", ID: "purge-runs", Tag: "retention", Summary: "Delete ended runs, with their logs",
		Description: "202 with an id; it is done in steps, and a restart does not end it (get-run-purge). A run stays for an hour after its end, one with an Idempotency-Key for a day, and one that others still need: a part of a run that stays, or one whose callback has no run yet. Statistics of timers stay.",
		Status:      http.StatusAccepted, Also: map[int]string{http.StatusOK: "With dryRun: how many would go; nothing was deleted"}, Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, rt.purgeRuns)
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/run-purges", ID: "list-run-purges", Tag: "retention", Summary: "List clean-ups, newest first",
		Description: "For as long as runs are kept: who deleted what.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[RunPurge], error) {
		list, err := rt.store.ListRunPurges(ctx, id.Tenant, 0, maxPurgesListed)
		return web.ListPage(list, err, runPurgeOf, in.ShortPage, "run-purges")
	})
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/run-purges/{id}", ID: "get-run-purge", Tag: "retention", Summary: "How far a clean-up is",
		Description: "Also of one that is done, for as long as runs are kept.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body RunPurge }, error) {
		p, err := web.ByID(ctx, id.Tenant, in.ID, rt.store.FindRunPurge)
		return web.AnswerOf(p, err, runPurgeOf)
	})
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/run-purges/{id}/cancel", ID: "cancel-run-purge", Tag: "retention", Summary: "Delete no more",
		Description: "What is deleted is gone.", Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body RunPurge }, error) {
		p, err := web.ByID(ctx, id.Tenant, in.ID, rt.store.CancelRunPurge)
		if err != nil {
			return nil, err
		}
		rt.log.Warn("clean-up of runs cancelled", "tenant_id", id.Tenant, "purge_id", p.ID, "deleted", p.Deleted, "by", id.Actor())
		return &struct{ Body RunPurge }{runPurgeOf(&p)}, nil
	})
}

func runPurgeOf(p *domain.RunPurge) RunPurge {
	out := RunPurge{Before: web.Instant(p.Before), State: "running", Deleted: p.Deleted, CreatedBy: p.CreatedBy, FinishedAt: web.InstantOrNull(p.FinishedAt)}
	switch {
	case p.ID == 0:
		out.State = "dry_run"
	case p.Cancelled:
		out.State = "cancelled"
	case p.Done():
		out.State = "done"
	}
	if p.ID != 0 {
		out.ID, out.CreatedAt = p.ID.String(), web.Instant(p.CreatedAt)
	}
	if p.JobID != 0 {
		out.JobID = p.JobID.String()
	}
	return out
}

func (rt *retention) purgeRuns(ctx context.Context, id auth.Identity, in *struct{ Body RunPurgeRequest }) (*runPurgeOutput, error) {
	var r reader
	p := domain.RunPurge{TenantID: id.Tenant, Before: r.Instant("body.before", &in.Body.Before), CreatedBy: id.Actor()}
	if now := rt.now(); p.Before.After(now) {
		r.Fail("body.before", in.Body.Before, "must not be later than now (%s)", web.Instant(now))
	} else if p.Before.IsZero() {
		r.Fail("body.before", in.Body.Before, "is needed")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if in.Body.JobID != "" {
		v, err := web.ByID(ctx, id.Tenant, in.Body.JobID, rt.store.FindJob)
		if err != nil {
			return nil, err
		}
		if v.Kind == domain.JobTimer {
			return nil, domain.Invalid("body.jobId", "is of timers, which have a retention of their own")
		}
		p.JobID = v.ID
	}
	found, err := rt.store.CountRunPurge(ctx, p, maxPurgeCount+1)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if in.Body.DryRun {
		domain.AuditOf(ctx).Drop()
	} else {
		status, p.ID = http.StatusAccepted, domain.RunPurgeID(rt.newID())
		if p, err = rt.store.CreateRunPurge(ctx, p); err != nil {
			return nil, err
		}
		rt.log.Warn("runs are deleted", "tenant_id", id.Tenant, "job_id", p.JobID, "before", p.Before, "found", found, "purge_id", p.ID, "by", p.CreatedBy)
	}
	out := runPurgeOf(&p)
	out.Found, out.FoundMore = min(found, maxPurgeCount), found > maxPurgeCount
	return &runPurgeOutput{Status: status, Body: out}, nil
}
