package api

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// BackfillRequest asks for the runs of a past range.
type BackfillRequest struct {
	From        string `json:"from" format:"date-time" doc:"First instant of the range"`
	To          string `json:"to" format:"date-time" doc:"End of the range, not included; not later than now"`
	Scope       string `json:"scope,omitempty" enum:"missing,unsuccessful,all" doc:"missing (default): fire times that did not run; unsuccessful: also those whose run did not succeed; all. No fire time is backfilled twice"`
	Concurrency int    `json:"concurrency,omitempty" minimum:"0" maximum:"100" doc:"How many of its runs may be under way at once; default 1"`
	DryRun      bool   `json:"dryRun,omitempty" doc:"Say what would be done, and do nothing"`
	Note        string `json:"note,omitempty" maxLength:"1024" doc:"Why; kept with the backfill and shown beside its runs"`
}

// Backfill is what became of it.
type Backfill struct {
	ID          string  `json:"id,omitempty" doc:"Absent with dryRun"`
	JobID       string  `json:"jobId" doc:"The job whose fire times are run"`
	JobRevision int64   `json:"jobRevision" doc:"All its runs use this revision"`
	State       string  `json:"state" enum:"dry_run,running,done,cancelled" doc:"dry_run: nothing was written; running: runs are still to be written or to end; done; cancelled: no more are written"`
	Scope       string  `json:"scope" enum:"missing,unsuccessful,all" doc:"Which fire times: those without a run, also those whose run did not succeed, or all"`
	From        string  `json:"from" format:"date-time" doc:"First instant of the range"`
	To          string  `json:"to" format:"date-time" doc:"End of the range, not included"`
	Concurrency int     `json:"concurrency" doc:"How many of its runs may be under way at once"`
	Planned     int     `json:"planned" doc:"Fire times in the range"`
	Created     int     `json:"created" doc:"Runs written so far; with dryRun: that would be written"`
	Skipped     int     `json:"skipped" doc:"Fire times that did not need one"`
	Succeeded   int     `json:"succeeded" doc:"Runs that ended well so far"`
	Failed      int     `json:"failed" doc:"Runs that ended otherwise"`
	Running     int     `json:"running" doc:"Runs that have not ended"`
	NextFireAt  *string `json:"nextFireAt" format:"date-time" doc:"Fire times before this one are done with; null at the end"`
	Fires       []Fire  `json:"fires,omitempty" doc:"With dryRun: the first fire times that would run, at most 100"`
	Note        string  `json:"note" doc:"Why it was asked for; empty: not said"`
	Message     string  `json:"message" doc:"Why it ended before its time; empty otherwise"`
	CreatedAt   string  `json:"createdAt,omitempty" format:"date-time" doc:"When it was asked for; absent with dryRun"`
	CreatedBy   string  `json:"createdBy" doc:"Who asked for it"`
	FinishedAt  *string `json:"finishedAt" format:"date-time" doc:"When the last of its runs ended, or it was cancelled; null: not yet"`
}

type backfillInput struct {
	ID   string `path:"id" doc:"Id of what the address names, a decimal string"`
	Body BackfillRequest
}

type backfillOutput struct {
	Status int
	Body   Backfill
}

// dryFires bounds the fire times that a dry run lists.
const dryFires = 100

// backfills run jobs for fire times that have passed.
type backfills struct {
	// fixed after construction
	store interface {
		store.Backfills
		store.Jobs
		store.RetentionRules
	}
	newID func() int64
	now   func() time.Time
	log   *slog.Logger
}

func (bs *backfills) register(server *web.Server) {
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/jobs/{id}/backfill", ID: "backfill-job", Computes: true, Tag: "jobs",
		Summary: "Run a job for the fire times of a past range", Description: "Each run gets its fire time as logical date. Runs are written a few at a time, as concurrency allows, and a restart does not end it.",
		Status: http.StatusCreated, Also: map[int]string{http.StatusOK: "With dryRun: what would be run; nothing was written"},
	}, bs.backfillJob)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/backfills", ID: "list-backfills", Tag: "jobs", Summary: "A job's backfills, newest first",
		Description: "With how far each of them is.",
	}, bs.listBackfills)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/backfills/{id}", ID: "get-backfill", Tag: "jobs", Summary: "One backfill",
		Description: "How far it is: runs written, ended and still to come.",
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Backfill }, error) {
		b, err := web.ByID(ctx, id.Tenant, in.ID, bs.store.FindBackfill)
		return web.AnswerOf(b, err, backfillOf)
	})
	web.Register(server, web.May(domain.PermOperate).InExecutors(), web.Operation{
		Method: http.MethodPost, Path: web.Base + "/backfills/{id}/cancel", ID: "cancel-backfill", Tag: "jobs", Summary: "Write no more runs of a backfill",
		Description: "Those that are under way go on.", Errors: []int{http.StatusConflict},
	}, func(ctx context.Context, id auth.Identity, in *web.IDInput) (*struct{ Body Backfill }, error) {
		bid, err := domain.ParseID[domain.BackfillID](in.ID)
		if err != nil {
			return nil, err
		}
		b, err := bs.store.CancelBackfill(ctx, id.Tenant, bid, "cancelled by "+id.Actor())
		return web.AnswerOf(b, err, backfillOf)
	})
}

func backfillOf(b *domain.Backfill) Backfill {
	out := Backfill{
		JobID: b.JobID.String(), JobRevision: b.Revision, State: b.State.String(), Scope: string(b.Scope),
		From: web.Instant(b.From), To: web.Instant(b.To), Concurrency: b.Concurrency,
		Planned: b.Planned, Created: b.Created, Skipped: b.Skipped, Succeeded: b.Succeeded, Failed: b.Failed, Running: len(b.Live),
		Note: b.Note, Message: b.Message, CreatedBy: b.CreatedBy, FinishedAt: web.InstantOrNull(b.FinishedAt),
	}
	if b.ID != 0 {
		out.ID, out.CreatedAt = b.ID.String(), web.Instant(b.CreatedAt)
	}
	if b.Next.Before(b.To) {
		out.NextFireAt = web.InstantOrNull(b.Next)
	}
	return out
}

func (bs *backfills) backfillJob(ctx context.Context, id auth.Identity, in *backfillInput) (*backfillOutput, error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, bs.store.FindJob)
	if err != nil {
		return nil, err
	}
	b, fires, err := bs.readBackfill(id, v, &in.Body)
	if err == nil && b.Scope != domain.BackfillAll {
		err = bs.knowsMissing(ctx, &b)
	}
	if err != nil {
		return nil, err
	}
	if in.Body.DryRun {
		domain.AuditOf(ctx).Drop()
		out, err := bs.dryRun(ctx, v, b, fires)
		return &backfillOutput{Status: http.StatusOK, Body: out}, err
	}
	b.ID, b.Trace = domain.BackfillID(bs.newID()), web.RequestOf(ctx).Trace
	if b, err = bs.store.CreateBackfill(ctx, b); err != nil {
		return nil, err
	}
	bs.log.Info("backfill requested", "tenant_id", id.Tenant, "job_id", v.ID, "backfill_id", b.ID, "fires", b.Planned, "by", id.Actor())
	return &backfillOutput{Status: http.StatusCreated, Body: backfillOf(&b)}, nil
}

// knowsMissing refuses a range of which runs may have been deleted: they would be
// taken for missing, and run again.
func (bs *backfills) knowsMissing(ctx context.Context, b *domain.Backfill) error {
	rule, err := bs.store.FindRetention(ctx, b.TenantID, b.JobID)
	if err != nil || !b.From.Before(rule.RunsFrom) {
		return err
	}
	return domain.Invalid("body.from", "is before %s: runs of earlier fire times may have been deleted, so which of them are missing is not known; begin there, or say scope all", web.Instant(rule.RunsFrom))
}

// readBackfill checks a request and finds the fire times of its range.
func (bs *backfills) readBackfill(id auth.Identity, v store.JobView, w *BackfillRequest) (domain.Backfill, []time.Time, error) {
	var r reader
	now := bs.now()
	b := domain.Backfill{
		TenantID: id.Tenant, JobID: v.ID, Revision: v.Revision, Scope: cmp.Or(domain.BackfillScope(w.Scope), domain.BackfillMissing),
		From: r.Instant("body.from", &w.From), To: r.Instant("body.to", &w.To), Concurrency: max(w.Concurrency, 1),
		Note: strings.TrimSpace(w.Note), CreatedBy: id.Actor(),
	}
	switch {
	case len(r.Fields) > 0:
	case b.From.IsZero():
		r.Fail("body.from", w.From, "is needed")
	case !b.From.Before(b.To):
		r.Fail("body.to", w.To, "must be later than from")
	case b.To.After(now):
		r.Fail("body.to", w.To, "must not be later than now (%s): the schedule itself runs what is to come", web.Instant(now))
	}
	switch kind := v.Spec.Schedule.Kind; kind {
	case domain.ScheduleNone, domain.ScheduleFixedDelay:
		r.Fail("path.id", nil, "the job's schedule is of kind %s, which has no fire times in the past", kind)
	}
	if domain.HasControl(strings.ReplaceAll(b.Note, "\n", " ")) {
		r.Fail("body.note", nil, "must not contain control characters")
	}
	if err := r.Err(); err != nil {
		return b, nil, err
	}
	fires := timing.FiresBetween(&v.Spec, b.From, b.To, domain.MaxBackfillFires+1)
	switch {
	case len(fires) > domain.MaxBackfillFires:
		last := fires[domain.MaxBackfillFires]
		return b, nil, domain.Invalid("body.to", "the range has more than %d fire times; end it at %s or earlier, and backfill the rest after", domain.MaxBackfillFires, web.Instant(last))
	case len(fires) == 0:
		return b, nil, domain.Invalid("body.from", "the schedule has no fire time in this range")
	}
	b.Planned = len(fires)
	return b, fires, nil
}

// dryRun says what a backfill would do now.
func (bs *backfills) dryRun(ctx context.Context, v store.JobView, b domain.Backfill, fires []time.Time) (Backfill, error) {
	known, err := bs.store.ListOccurred(ctx, b.TenantID, b.JobID, b.From, b.To)
	if err != nil {
		return Backfill{}, err
	}
	out := backfillOf(&b)
	out.State, out.NextFireAt = "dry_run", web.InstantOrNull(fires[0])
	var r reader
	plan := compile(&r, "schedule", &v.Spec.Schedule, "")
	if err := r.Err(); err != nil {
		return out, fmt.Errorf("compile stored schedule: %w", err)
	}
	for _, at := range fires {
		if !b.Scope.Wants(known[at.UnixMilli()]) {
			out.Skipped++
			continue
		}
		if out.Created++; out.Created <= dryFires {
			out.Fires = append(out.Fires, Fire{At: web.Instant(at), Zoned: at.In(plan.Zone()).Format(time.RFC3339)})
		}
	}
	return out, nil
}

type listBackfillsInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
	web.PageParams
}

func (bs *backfills) listBackfills(ctx context.Context, id auth.Identity, in *listBackfillsInput) (*web.PageOutput[Backfill], error) {
	v, err := web.ByID(ctx, id.Tenant, in.ID, bs.store.FindJob)
	if err != nil {
		return nil, err
	}
	at, err := web.DecodeCursor(in.Cursor, "backfills")
	if err != nil {
		return nil, err
	}
	rows, err := bs.store.ListBackfills(ctx, store.ListBackfillsParams{
		Tenant: id.Tenant, Job: v.ID, Before: domain.BackfillID(at.ID), Limit: in.Limit + 1,
	})
	return web.RowsPage(rows, err, in.Limit, backfillOf, func(last *domain.Backfill) web.Cursor {
		return web.Cursor{List: "backfills", ID: int64(last.ID)}
	})
}
