package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Retention is for how long ended runs of a tenant or a job are kept.
type Retention struct {
	RunDays   int           `json:"runDays" doc:"How many days runs are kept after their end; 0: as the tenant says, or the server"`
	LogDays   int           `json:"logDays" doc:"The same of their logs"`
	RunCount  int           `json:"runCount" doc:"How many of the newest ended runs of each job are kept, if there are more; 0: as the tenant says, or any number"`
	JobID     string        `json:"jobId,omitempty" doc:"Id of the job; absent for the tenant"`
	JobName   string        `json:"jobName,omitempty" doc:"Name of the job; absent for the tenant"`
	Effective RetentionHold `json:"effective" doc:"What holds, with the rules of the tenant and the server"`
	RunsFrom  *string       `json:"runsFrom" format:"date-time" doc:"Of a job: of fire times before it runs may have been deleted before their age, by a rule or by hand; null: none"`
	Version   int64         `json:"version" doc:"Grows by one with each edit; 0: nobody has said anything"`
	UpdatedAt *string       `json:"updatedAt" format:"date-time" doc:"When it was edited last; null: never"`
	UpdatedBy string        `json:"updatedBy" doc:"Who edited it last"`
}

// RetentionWrite is a rule.
type RetentionWrite struct {
	RunDays  int `json:"runDays,omitempty" minimum:"0" maximum:"3650" doc:"How many days runs are kept after their end; 0: as the tenant says, or the server"`
	LogDays  int `json:"logDays,omitempty" minimum:"0" maximum:"3650" doc:"The same of their logs; of a job not more than the tenant says"`
	RunCount int `json:"runCount,omitempty" minimum:"0" maximum:"10000" doc:"How many of the newest ended runs of each job are kept, if there are more; 0: as the tenant says, or any number"`
}

// RetentionHold is what becomes of rules.
type RetentionHold struct {
	Runs     string `json:"runs" doc:"How long runs are kept after their end"`
	Logs     string `json:"logs" doc:"How long their logs are kept"`
	RunCount int    `json:"runCount" doc:"How many of the newest ended runs of a job are kept; 0: any number"`
}

type retentionOutput = web.Versioned[Retention]

type setRetentionInput struct {
	IfMatch string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
	Body    RetentionWrite
}

type setJobRetentionInput struct {
	ID      string `path:"id" doc:"Id of what the address names, a decimal string"`
	IfMatch string `header:"If-Match" doc:"Only if it is at this version, in quotes; default: any"`
	Body    RetentionWrite
}

// maxRetentionListed bounds a list of them.
const maxRetentionListed = 1000

// retention is how long runs are kept, and their deletion by hand.
type retention struct {
	// fixed after construction
	store interface {
		store.RetentionRules
		store.RunPurges
		store.Jobs
	}
	newID              func() int64
	now                func() time.Time
	runsKept, logsKept time.Duration // by the server; 0: not known
	log                *slog.Logger
}

func (rt *retention) register(server *web.Server) {
	rt.registerPurges(server)
	const what = "Runs go by whichever is reached first, days or number, in small steps beside the work of others. The server's settings are the most. " +
		"A run stays for an hour after its end, one with an Idempotency-Key for a day. All 0 takes the rule away."
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/retention", ID: "get-retention", Tag: "retention", Summary: "How long runs of the tenant are kept",
		Description: "The ETag is the version.",
	}, func(ctx context.Context, id auth.Identity, _ *struct{}) (*retentionOutput, error) {
		return rt.getRetention(ctx, id, 0)
	})
	web.Register(server, web.May(domain.PermAdmin), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/retention", ID: "set-retention", Tag: "retention", Summary: "Say how long runs of the tenant are kept",
		Description: what, Errors: []int{http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *setRetentionInput) (*retentionOutput, error) {
		return rt.setRetention(ctx, id, 0, in)
	})
	web.Register(server, web.May(domain.PermRead), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/retention/rules", ID: "list-retention", Tag: "retention", Summary: "List the rules of the tenant and its jobs",
		Description: "That of the tenant first.",
	}, func(ctx context.Context, id auth.Identity, in *web.PageQuery) (*web.PageOutput[Retention], error) {
		list, err := rt.store.ListRetention(ctx, id.Tenant, 0, maxRetentionListed)
		return web.ListPage(list, err, rt.retentionOf, in.ShortPage, "retention")
	})
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/retention", ID: "get-job-retention", Tag: "retention", Summary: "How long runs of a job are kept",
		Description: "The ETag is the version.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*retentionOutput, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, rt.store.FindJob)
		if err != nil {
			return nil, err
		}
		return rt.getRetention(ctx, id, v.ID)
	})
	web.Register(server, web.May(domain.PermEdit).InExecutors(), web.Operation{
		Method: http.MethodPut, Path: web.Base + "/jobs/{id}/retention", ID: "set-job-retention", Tag: "retention", Summary: "Say how long runs of a job are kept",
		Description: what + " What is said here holds instead of what the tenant says.", Errors: []int{http.StatusPreconditionFailed},
	}, func(ctx context.Context, id auth.Identity, in *setJobRetentionInput) (*retentionOutput, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, rt.store.FindJob)
		if err != nil {
			return nil, err
		}
		return rt.setRetention(ctx, id, v.ID, &setRetentionInput{IfMatch: in.IfMatch, Body: in.Body})
	})
}

func (rt *retention) retentionOf(v *store.RetentionView) Retention {
	hold := func(days int, most time.Duration) string {
		if days > 0 && (most == 0 || domain.Days(days) < most) {
			most = domain.Days(days)
		}
		return domain.DurationText(most)
	}
	out := Retention{
		RunDays: v.RunDays, LogDays: v.LogDays, RunCount: v.RunCount, JobName: v.JobName, RunsFrom: web.InstantOrNull(v.RunsFrom), Version: v.Version,
		UpdatedAt: web.InstantOrNull(v.ChangedAt), UpdatedBy: v.ChangedBy,
		Effective: RetentionHold{Runs: hold(v.Effective.RunDays, rt.runsKept), Logs: hold(v.Effective.LogDays, rt.logsKept), RunCount: v.Effective.RunCount},
	}
	if v.JobID != 0 {
		out.JobID = v.JobID.String()
	}
	return out
}

func (rt *retention) getRetention(ctx context.Context, id auth.Identity, job domain.JobID) (*retentionOutput, error) {
	v, err := rt.store.FindRetention(ctx, id.Tenant, job)
	if err != nil {
		return nil, err
	}
	return &retentionOutput{ETag: web.ETag(v.Version), Body: rt.retentionOf(&v)}, nil
}

func (rt *retention) setRetention(ctx context.Context, id auth.Identity, job domain.JobID, in *setRetentionInput) (*retentionOutput, error) {
	var r reader
	rt.check(&r, "body.", in.Body)
	if err := r.Err(); err != nil {
		return nil, err
	}
	version, err := web.IfMatchOrAny(ctx, in.IfMatch)
	if err != nil {
		return nil, err
	}
	v, err := rt.store.SetRetention(ctx, store.SetRetentionParams{Tenant: id.Tenant, Job: job, Retention: domain.Retention(in.Body), IfVersion: version, By: id.Actor()})
	if err != nil {
		return nil, err
	}
	rt.log.Warn("retention set", "tenant_id", id.Tenant, "job_id", job, "run_days", v.RunDays, "log_days", v.LogDays, "run_count", v.RunCount, "by", id.Actor())
	return &retentionOutput{ETag: web.ETag(v.Version), Body: rt.retentionOf(&v)}, nil
}

// check refuses to keep runs longer than the server does.
func (rt *retention) check(r *reader, at string, w RetentionWrite) {
	within := func(name string, days int, most time.Duration) {
		if most > 0 && domain.Days(days) > most {
			r.Fail(at+name, days, "must not be longer than the server keeps them: %s", domain.DurationText(most))
		}
	}
	within("runDays", w.RunDays, rt.runsKept)
	within("logDays", w.LogDays, rt.logsKept)
}
