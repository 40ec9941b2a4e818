package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/explain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// Explanation says in words why a run started when it did, or not at all.
type Explanation struct {
	Run       *Run               `json:"run" doc:"null: there is no run for this instant"`
	Summary   web.Bilingual      `json:"summary" doc:"What happened, in one or two sentences"`
	Party     string             `json:"party" enum:",handler,executor,admin,database,person,job" doc:"Whose doing it is that the run waits, or ended otherwise than well. job: what its owners have set, such as schedule, calendar, blocking strategy, limits. Empty: nobody's"`
	Steps     []ExplanationStep  `json:"steps" doc:"What happened, by time"`
	Instances []InstanceVerdict  `json:"instances" doc:"Those of the executor: at the last offer, or now for a run that waits"`
	Stamps    *ExplanationStamps `json:"stamps" doc:"null without a run"`
	Backfill  *Run               `json:"backfill" doc:"What a backfill ran for the instant asked about, beside the run of the schedule; its steps and instances are told too. null: none, or a run was asked about"`
	// Before and After lead from one question about a job to the next.
	Before *string `json:"before" format:"date-time" doc:"The schedule's fire time before the instant asked about; null: none, or a run was asked about"`
	After  *string `json:"after" format:"date-time" doc:"And the one after it"`
}

// ExplanationStamps are the milestones of a run; those of its last attempt.
type ExplanationStamps struct {
	PlannedAt  string  `json:"plannedAt" format:"date-time" doc:"The fire time"`
	ClaimedAt  *string `json:"claimedAt" format:"date-time" doc:"When its row was written"`
	OfferedAt  *string `json:"offeredAt" format:"date-time" doc:"When it was sent to an instance; null: never"`
	GrantedAt  *string `json:"grantedAt" format:"date-time" doc:"When it was let start; null: never"`
	StartedAt  *string `json:"startedAt" format:"date-time" doc:"By the executor's clock"`
	FinishedAt *string `json:"finishedAt" format:"date-time" doc:"When it ended; null: not yet"`
}

// ExplanationStep is one thing that happened to a run.
type ExplanationStep struct {
	At   string        `json:"at" format:"date-time" doc:"When it happened"`
	Code string        `json:"code" doc:"planned, claimed, offered, granted, started, finished, returned, delayed:REASON, stop_asked:REASON, or of a run with shards: part, before, spread, after, part_ended"`
	Text web.Bilingual `json:"text" doc:"The same for people"`
}

// InstanceVerdict is an instance with why it was chosen or not.
type InstanceVerdict struct {
	Instance web.Ref       `json:"instance" doc:"The process"`
	Verdict  string        `json:"verdict" enum:"chosen,refused,not_chosen,no_handler,label_mismatch,not_connected,silent,draining,refusing,full,has_room" doc:"Why it got the run, or did not"`
	Text     web.Bilingual `json:"text" doc:"The same for people, with figures"`
}

type explainJobInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
	At string `query:"at" required:"true" format:"date-time" doc:"The fire time asked about"`
}

// explanations tell why a run did or did not start.
type explanations struct {
	// fixed after construction
	store interface {
		store.Runs
		store.Jobs
		store.Executors
		store.Limits
		store.RetentionRules
		store.Specs
		store.MaintenanceView
	}
	runsKept time.Duration // by the server; 0: not known
	now      func() time.Time
}

func (xs *explanations) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/runs/{id}/explain", ID: "explain-run", Computes: true, Tag: "runs", Summary: "Why a run did or did not start",
		Description: "Told from what was stored when it happened: what the run waited for, which instances there were, and why each of them did or did not get it.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Explanation }, error) {
		v, err := web.ByID(ctx, id.Tenant, in.ID, xs.store.FindExecution)
		if err != nil {
			return nil, err
		}
		return xs.explainRun(ctx, v)
	})
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/explain", ID: "explain-fire", Computes: true, Tag: "jobs", Summary: "Why a job did or did not run at an instant",
		Description: "Told from what was stored when it happened: what the run waited for, which instances there were, and why each of them did or did not get it. Where there is no run for the instant it says why.",
	}, xs.explainFire)
}

// maxExplainedParts bounds how many parts of a run are read to explain it: all.
const maxExplainedParts = domain.MaxShards + 2

func (xs *explanations) explainRun(ctx context.Context, v store.ExecutionView) (*struct{ Body Explanation }, error) {
	archived, err := xs.store.ListAttempts(ctx, v.TenantID, v.ID)
	if err != nil {
		return nil, err
	}
	spec, err := xs.store.JobSpec(ctx, v.TenantID, v.JobID, v.Revision)
	if err != nil {
		return nil, err
	}
	instances, err := xs.store.ListInstances(ctx, store.ListInstancesParams{
		Tenant: v.TenantID, Executor: v.Executor, IncludeGone: true, Limit: maxInstances, Brief: true,
	})
	if err != nil {
		return nil, err
	}
	err = visitInstances(ctx, xs.store, v.TenantID, instances, func(i *domain.Instance) {
		has := slices.Contains(i.Handlers, spec.Handler)
		if i.Handlers = nil; has {
			i.Handlers = []string{spec.Handler}
		}
	})
	if err != nil {
		return nil, err
	}
	r := explain.Run{Execution: v.Execution, Spec: spec.For(v.Part), Attempts: archived, Instances: instances, Now: xs.now()}
	if err := xs.explainChoice(ctx, &r); err != nil {
		return nil, err
	}
	if v.Reason == domain.ReasonPaused {
		// The job knows its present pause only.
		job, err := xs.store.FindJob(ctx, v.TenantID, v.JobID)
		if err != nil && !domain.Is(err, domain.CodeNotFound) {
			return nil, err
		}
		if err == nil && job.State == domain.JobPaused && !job.Pause.At.After(v.FinishedAt) {
			r.Pause = job.Pause
		}
	}
	if v.Reason == domain.ReasonWaitSlot {
		holders, err := xs.store.ListSlotHolders(ctx, v.TenantID, v.JobID)
		if err != nil {
			return nil, err
		}
		for _, h := range holders {
			r.Holders = append(r.Holders, h.Execution)
		}
		job, err := xs.store.FindJob(ctx, v.TenantID, v.JobID)
		if err != nil && !domain.Is(err, domain.CodeNotFound) {
			return nil, err
		}
		r.Waiting, r.PilesUp = job.Waiting, job.PilesUp
	}
	if v.Reason == domain.ReasonWaitLimit {
		limits, err := xs.store.ListLimits(ctx, v.TenantID)
		if err != nil {
			return nil, err
		}
		for _, l := range limits {
			if l.Executor == 0 || l.Executor == v.Executor {
				r.Limits = append(r.Limits, explain.LimitCount{Tenants: l.Executor == 0, Name: l.ExecutorName, Max: l.Max, Running: l.Running, Waiting: l.Waiting})
			}
		}
	}
	if v.Stage != domain.StageNone {
		parts, family, err := xs.store.ListParts(ctx, v.TenantID, v.ID, maxExplainedParts)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			r.Parts = append(r.Parts, p.Execution)
		}
		r.Family = family
	}
	out := explanationOf(r.Explain())
	run := runOf(&v)
	out.Run = &run
	out.Stamps = &ExplanationStamps{
		PlannedAt: run.FireAt, ClaimedAt: run.ClaimedAt, OfferedAt: run.OfferedAt,
		GrantedAt: run.GrantedAt, StartedAt: run.StartedAt, FinishedAt: run.FinishedAt,
	}
	return &struct{ Body Explanation }{out}, nil
}

// explainChoice reads what the choice of the last offer went by, if there was
// one, or if the run ended while it waited for one.
func (xs *explanations) explainChoice(ctx context.Context, r *explain.Run) (err error) {
	e := &r.Execution
	at := e.OfferedAt
	if at.IsZero() {
		at = e.FinishedAt
	}
	if e.Stage != domain.StageNone || e.State == domain.Due || e.State == domain.RetryWait || at.IsZero() {
		return nil
	}
	r.Choice, err = xs.store.FindChoice(ctx, store.FindChoiceParams{Tenant: e.TenantID, Job: e.JobID, Executor: e.Executor, Run: e.ID, At: at})
	return err
}

func explanationOf(e explain.Explanation) Explanation {
	out := Explanation{Summary: web.Bilingual(e.Summary), Party: string(e.Party), Steps: []ExplanationStep{}, Instances: []InstanceVerdict{}}
	for _, s := range e.Steps {
		out.Steps = append(out.Steps, ExplanationStep{At: web.Instant(s.At), Code: s.Code, Text: web.Bilingual(s.Text)})
	}
	for _, c := range e.Candidates {
		out.Instances = append(out.Instances, InstanceVerdict{
			Instance: web.Ref{ID: strconv.FormatInt(c.ID, 10), Name: c.Name}, Verdict: string(c.Verdict), Text: web.Bilingual(c.Text),
		})
	}
	return out
}

// explainFire speaks of the run, if there is one; else of what the schedule says.
func (xs *explanations) explainFire(ctx context.Context, id auth.Identity, in *explainJobInput) (*struct{ Body Explanation }, error) {
	var r reader
	at := r.Instant("query.at", &in.At)
	if err := r.Err(); err != nil {
		return nil, err
	}
	jobID, err := domain.ParseID[domain.JobID](in.ID)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Explanation }{}
	ran := false
	for _, key := range []string{"", domain.BackfillKey} {
		v, err := xs.store.FindOccurrence(ctx, id.Tenant, jobID, at, key)
		if domain.Is(err, domain.CodeNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		one, err := xs.explainRun(ctx, v)
		if err != nil {
			return nil, err
		}
		if ran {
			out.Body.join(one.Body)
		} else {
			out, ran = one, true
		}
	}
	f, err := xs.fireTime(ctx, id, jobID, at)
	switch {
	case ran && domain.Is(err, domain.CodeNotFound):
		return out, nil // the run has outlived its job
	case err != nil:
		return nil, err
	case !ran:
		out.Body = explanationOf(f.Explain())
	}
	out.Body.Before, out.Body.After = web.InstantOrNull(f.Before), web.InstantOrNull(f.After)
	return out, nil
}

// join adds what a backfill ran for the same fire time.
func (e *Explanation) join(b Explanation) {
	e.Backfill = b.Run
	e.Summary.En += " A backfill has run this fire time, as run " + b.Run.ID + ": " + b.Summary.En
	e.Summary.Zh += "补数已运行该触发时间（运行 " + b.Run.ID + "）：" + b.Summary.Zh
	for _, s := range b.Steps {
		s.Text = web.Bilingual{En: "Backfill: " + s.Text.En, Zh: "补数：" + s.Text.Zh}
		e.Steps = append(e.Steps, s)
	}
	if len(e.Instances) == 0 {
		e.Instances = b.Instances
	}
}

func (xs *explanations) fireTime(ctx context.Context, id auth.Identity, jobID domain.JobID, at time.Time) (explain.FireTime, error) {
	job, err := xs.store.FindJob(ctx, id.Tenant, jobID)
	if err != nil {
		return explain.FireTime{}, err
	}
	f := explain.FireTime{
		At: at, Now: xs.now(), CreatedAt: job.CreatedAt, State: job.State, Pause: job.Pause,
	}
	all, err := xs.store.Maintenances(ctx)
	if err != nil {
		return explain.FireTime{}, err
	}
	if x := all.Covers(domain.MaintenanceWait, id.Tenant, job.Executor, at); x != nil && x.At(f.Now) {
		f.Waits = x
	}
	if xs.runsKept > 0 {
		f.KeptSince = f.Now.Add(-xs.runsKept)
	}
	rule, err := xs.store.FindRetention(ctx, id.Tenant, job.ID)
	if err != nil {
		return explain.FireTime{}, err
	}
	if rule.RunsFrom.After(f.KeptSince) {
		f.KeptSince = rule.RunsFrom
	}
	return f, xs.askSchedule(ctx, id, job, &f)
}

// askSchedule fills in what the revision that was in force says of the instant.
func (xs *explanations) askSchedule(ctx context.Context, id auth.Identity, job store.JobView, f *explain.FireTime) error {
	p := store.ListRevisionsParams{Tenant: id.Tenant, Job: job.ID, Until: f.At, Limit: 1}
	inForce, err := xs.store.ListRevisions(ctx, p)
	if err == nil && len(inForce.Items) == 0 { // the job was not there yet
		p.Until, p.Before = time.Time{}, 2
		inForce, err = xs.store.ListRevisions(ctx, p)
	}
	if err != nil {
		return err
	}
	spec := &job.Spec
	if len(inForce.Items) > 0 {
		spec = &inForce.Items[0].Spec
	}
	compiled, err := timing.Compile(&spec.Schedule, timing.Seed(job.ID))
	if err != nil {
		return nil // it fires never; that it was saved is another matter
	}
	next, ok := compiled.Next(f.At.Add(-time.Millisecond))
	f.Planned = ok && next.Equal(f.At)
	if e, out := compiled.Excluded(f.At); out {
		f.Calendar = spec.Schedule.Calendars[e.Calendar].Content.Name
	}
	if before, ok := compiled.Prev(f.At.Add(-time.Millisecond)); ok {
		f.Before = before
	}
	if after, ok := compiled.Next(f.At); ok {
		f.After = after
	}
	return nil
}
