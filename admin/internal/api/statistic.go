package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/timer"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Statistics is how runs have ended, by minute, hour or day.
type Statistics struct {
	From   string         `json:"from" format:"date-time" doc:"Begin of the first step that was looked at"`
	To     string         `json:"to" format:"date-time" doc:"End of the last one"`
	Step   string         `json:"step" enum:"minute,hour,day" doc:"How long an item is"`
	Kept   string         `json:"keptFrom" format:"date-time" doc:"What ended before is known by longer steps only, or not at all"`
	Items  []RunEndings   `json:"items" doc:"Steps in which runs ended, the newest first; those without any are left out"`
	Total  RunEndings     `json:"total" doc:"All of them together"`
	Groups []FailureGroup `json:"groups,omitempty" doc:"With groupBy: those with the most failures, the most first"`
}

// RunEndings is how the runs of some time have ended.
type RunEndings struct {
	At        string  `json:"at" format:"date-time" doc:"Begin of the step, in UTC"`
	Runs      int64   `json:"runs" doc:"How many ended"`
	Succeeded int64   `json:"succeeded" doc:"The handler ended well"`
	Failed    int64   `json:"failed" doc:"The handler failed, and no attempt was left"`
	TimedOut  int64   `json:"timedOut" doc:"The last attempt took longer than it might"`
	Lost      int64   `json:"lost" doc:"The outcome is unknown: the instance went silent"`
	Cancelled int64   `json:"cancelled" doc:"Somebody cancelled them"`
	Missed    int64   `json:"missed" doc:"They never started: nobody could serve the fire time in time"`
	Discarded int64   `json:"discarded" doc:"They never started, as the blocking strategy says"`
	Excluded  int64   `json:"excluded" doc:"A calendar or maintenance excluded them, as planned"`
	Lateness  *Spread `json:"lateness" doc:"How long after their fire time they started, those that started at their first attempt; null: none did"`
	Duration  *Spread `json:"duration" doc:"How long their last attempt ran; null: none ran"`
	late      domain.Spread
	took      domain.Spread
}

// Spread says of many durations how long they are, in milliseconds.
type Spread struct {
	Count int64 `json:"count" doc:"How many there are"`
	Mean  int64 `json:"meanMs" doc:"The mean"`
	P50   int64 `json:"p50Ms" doc:"Half of them are no longer; like the other shares it is off by 5 % at most"`
	P95   int64 `json:"p95Ms" doc:"Of twenty, 19 are no longer"`
	P99   int64 `json:"p99Ms" doc:"Of a hundred, 99 are no longer"`
	Max   int64 `json:"maxMs" doc:"The longest"`
}

func spreadOf(s *domain.Spread) *Spread {
	mean, ok := s.Mean()
	if !ok {
		return nil
	}
	out := &Spread{Count: s.N, Mean: mean.Milliseconds(), Max: s.MaxMS}
	for q, into := range map[float64]*int64{0.5: &out.P50, 0.95: &out.P95, 0.99: &out.P99} {
		d, _ := s.Quantile(q)
		*into = d.Milliseconds()
	}
	return out
}

// add adds runs that ended in a state.
func (o *RunEndings) add(state domain.State, s *domain.RunSum) {
	o.Runs += s.Runs
	*o.of(state) += s.Runs
	o.late.Add(&s.Late)
	o.took.Add(&s.Took)
}

func (o *RunEndings) of(state domain.State) *int64 {
	switch state {
	case domain.Succeeded:
		return &o.Succeeded
	case domain.TimedOut:
		return &o.TimedOut
	case domain.Lost:
		return &o.Lost
	case domain.Cancelled:
		return &o.Cancelled
	case domain.Missed:
		return &o.Missed
	case domain.Discarded:
		return &o.Discarded
	case domain.Excluded:
		return &o.Excluded
	default:
		return &o.Failed
	}
}

// measured fills in what is computed of all that was added.
func (o *RunEndings) measured() RunEndings {
	o.Lateness, o.Duration = spreadOf(&o.late), spreadOf(&o.took)
	return *o
}

// StatisticsSpan says of which time. It is exported because huma passes over embedded
// fields that are not.
type StatisticsSpan struct {
	From string `query:"from" doc:"Ended from when on; default: an hour, a day or 30 days before to, by step"`
	To   string `query:"to" doc:"Ended before; default: now"`
	Step string `query:"step" enum:"minute,hour,day" default:"hour" doc:"How long an item is, in UTC: of minutes there are at most 1,500, of hours 1,500, of days 1,100"`
}

var statisticSteps = map[string]struct {
	step  domain.StatisticStep
	span  time.Duration // when from is not given
	items int           // the most
}{
	"minute": {domain.StepMinute, time.Hour, 1500}, "hour": {domain.StepHour, 24 * time.Hour, 1500}, "day": {domain.StepDay, 30 * 24 * time.Hour, 1100},
}

// params are whole steps.
func (in *StatisticsSpan) params(now time.Time) (p store.SumRunsParams, err error) {
	var r reader
	p.From, p.To = r.Instant("query.from", &in.From), r.Instant("query.to", &in.To)
	by := statisticSteps[in.Step]
	p.Step = by.step
	step := p.Step.Length()
	if p.To.IsZero() {
		p.To = now
	}
	if p.From.IsZero() {
		p.From = p.To.Add(-by.span)
	}
	p.From, p.To = p.From.UTC().Truncate(step), p.To.UTC().Add(step-1).Truncate(step)
	switch {
	case !p.From.Before(p.To):
		r.Fail("query.to", in.To, "must be later than from")
	case int(p.To.Sub(p.From)/step) > by.items:
		r.Fail("query.from", in.From, "is more than %d steps before to: take a longer step, or less time", by.items)
	}
	return p, r.Err()
}

type statisticsInput struct {
	StatisticsSpan
	GroupBy string `query:"groupBy" enum:"job,executor,label,error" doc:"Which of them failed most, in place of the items. With steps of an hour only"`
	Top     int    `query:"top" minimum:"1" maximum:"50" default:"10" doc:"With groupBy: how many groups at most"`
}

type statisticsOfJobInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
	StatisticsSpan
	GroupBy string `query:"groupBy" enum:"error" doc:"Which errors its runs ended with most often, in place of the items. With steps of an hour only"`
	Top     int    `query:"top" minimum:"1" maximum:"50" default:"10" doc:"With groupBy: how many groups at most"`
}

type statisticsOfInput struct {
	ID string `path:"id" doc:"Id of what the address names, a decimal string"`
	StatisticsSpan
}

type sumTimersInput struct {
	timer.TimerFilter
	StatisticsSpan
}

type statisticsOutput struct{ Body Statistics }

const statisticsText = "Also of runs that are deleted since. Steps are those of UTC and of a run's end; a run counts once, as soon as it has ended, and parts of a run do not count."

// statistics sum up how runs have ended.
type statistics struct {
	// fixed after construction
	store interface {
		store.Statistics
		store.Jobs
		store.Executors
		store.Timers
	}
	kept store.StatisticsKept
	now  func() time.Time
}

func (ss *statistics) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/statistics", ID: "tenant-statistics", Tag: "statistics", Summary: "How the tenant's runs have ended",
		Description: statisticsText + " A role that is bound to executors sees the runs of those. " + failuresText,
	}, ss.tenantStatistics)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/{id}/statistics", ID: "job-statistics", Tag: "statistics", Summary: "How a job's runs have ended",
		Description: statisticsText + " " + failuresText,
	}, ss.jobStatistics)
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/executors/{id}/statistics", ID: "executor-statistics", Tag: "statistics", Summary: "How an executor's runs have ended",
		Description: statisticsText,
	}, func(ctx context.Context, id auth.Identity, in *statisticsOfInput) (*statisticsOutput, error) {
		executor, err := web.ByID(ctx, id.Tenant, in.ID, ss.store.FindExecutor)
		if err != nil {
			return nil, err
		}
		return ss.statistics(ctx, id, in.StatisticsSpan, domain.StatisticsOfExecutor, int64(executor.ID))
	})
	web.Register(server, web.May(domain.PermTimer).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/timers/statistics", ID: "sum-timers", Tag: "timers", Summary: "How timers have ended",
		Description: statisticsText,
	}, ss.sumTimers)
}

func (ss *statistics) tenantStatistics(ctx context.Context, id auth.Identity, in *statisticsInput) (out *statisticsOutput, err error) {
	if err := hoursOnly(in.GroupBy, in.Step); err != nil {
		return nil, err
	}
	if id.Reach.Bounded() {
		out, err = ss.statistics(ctx, id, in.StatisticsSpan, domain.StatisticsOfExecutor, domain.Collect(id.Reach.IDs(), func(e *domain.ExecutorID) int64 { return int64(*e) })...)
	} else {
		out, err = ss.statistics(ctx, id, in.StatisticsSpan, domain.StatisticsOfTenant)
	}
	if err != nil || in.GroupBy == "" {
		return out, err
	}
	return ss.grouped(ctx, out, in.StatisticsSpan, store.ListFailuresParams{Tenant: id.Tenant, Within: id.Reach, By: store.FailureGroup(in.GroupBy), Limit: in.Top})
}

func (ss *statistics) jobStatistics(ctx context.Context, id auth.Identity, in *statisticsOfJobInput) (*statisticsOutput, error) {
	if err := hoursOnly(in.GroupBy, in.Step); err != nil {
		return nil, err
	}
	job, err := web.ByID(ctx, id.Tenant, in.ID, ss.store.FindJob)
	if err != nil {
		return nil, err
	}
	out, err := ss.statistics(ctx, id, in.StatisticsSpan, domain.StatisticsOfJob, int64(job.ID))
	if err != nil || in.GroupBy == "" {
		return out, err
	}
	return ss.grouped(ctx, out, in.StatisticsSpan, store.ListFailuresParams{Tenant: id.Tenant, Within: id.Reach, Job: job.ID, By: store.FailureGroup(in.GroupBy), Limit: in.Top})
}

// hoursOnly refuses groups of failures by other steps than hours.
func hoursOnly(groupBy, step string) error {
	if groupBy != "" && step != "hour" {
		return domain.Invalid("query.step", "failures are known by hour: leave step out, or leave groupBy out")
	}
	return nil
}

func (ss *statistics) sumTimers(ctx context.Context, id auth.Identity, in *sumTimersInput) (*statisticsOutput, error) {
	counts, err := timer.Counts(ctx, ss.store, id, in.TimerFilter)
	if err != nil {
		return nil, err
	}
	return ss.statistics(ctx, id, in.StatisticsSpan, domain.StatisticsOfJob, domain.Collect(counts, func(c *store.TimerCount) int64 { return int64(c.Job) })...)
}

func (ss *statistics) statistics(ctx context.Context, id auth.Identity, span StatisticsSpan, kind domain.StatisticKind, subjects ...int64) (*statisticsOutput, error) {
	now := ss.now()
	p, err := span.params(now)
	if err != nil {
		return nil, err
	}
	p.Tenant, p.Kind, p.Subjects = id.Tenant, kind, subjects
	sums, err := ss.store.SumRuns(ctx, p)
	if err != nil {
		return nil, err
	}
	out := Statistics{
		From: web.Instant(p.From), To: web.Instant(p.To), Step: span.Step, Kept: web.Instant(ss.kept.Since(p.Step, now)),
		Items: []RunEndings{}, Total: RunEndings{At: web.Instant(p.From)},
	}
	byStep := map[int64]*RunEndings{}
	for at, sum := range sums {
		if byStep[at.At] == nil {
			byStep[at.At] = &RunEndings{At: web.Instant(time.UnixMilli(at.At).UTC())}
		}
		byStep[at.At].add(at.State, sum)
		out.Total.add(at.State, sum)
	}
	for _, begin := range slices.Backward(slices.Sorted(maps.Keys(byStep))) {
		out.Items = append(out.Items, byStep[begin].measured())
	}
	out.Total.measured()
	return &statisticsOutput{out}, nil
}

const failuresText = "groupBy adds the jobs, executors, labels or errors with the most failures. These are runs that failed, timed out or were lost. They count by the hour of their end, within some seconds after it."

// FailureGroup is what runs that ended badly have in common.
type FailureGroup struct {
	ID          string `json:"id,omitempty" doc:"Id of the job or executor; absent for labels and errors"`
	Name        string `json:"name" doc:"Name of the job or executor, key=value of a label, or the text of an error with marks in place of numbers, ids, quoted strings, paths and times. Empty: it is deleted, or it is one of many errors of a job"`
	Fingerprint string `json:"fingerprint,omitempty" doc:"Of an error: runs can be filtered by it. Absent for other groups, and for errors beyond the first 16 of a job in an hour, which count together"`
	Failures    int64  `json:"failures" doc:"How many runs failed, timed out or were lost"`
	Ended       int64  `json:"ended,omitempty" doc:"How many runs of the job or executor ended, those that ended well included; absent for labels and errors"`
	Jobs        int64  `json:"jobs" doc:"How many jobs the failures belong to"`
	LastRunID   string `json:"lastRunId" doc:"Id of the newest of these runs. It may be deleted"`
	LastAt      string `json:"lastAt" format:"date-time" doc:"The minute in which one ended last"`
	FirstAt     string `json:"firstAt" format:"date-time" doc:"The hour in which the first one of the asked time ended"`
}

func failureGroupOf(c *store.FailureCount) FailureGroup {
	out := FailureGroup{Name: c.Name, Failures: c.Runs, Ended: c.Ended, Jobs: c.Jobs, LastRunID: c.LastRun.String(), LastAt: web.Instant(c.LastAt), FirstAt: web.Instant(c.FirstAt)}
	if c.ID != 0 {
		out.ID = domain.JobID(c.ID).String()
	}
	if c.Error != 0 {
		out.Fingerprint = c.Error.String()
	}
	return out
}

// grouped puts the groups with the most failures in place of the items.
func (ss *statistics) grouped(ctx context.Context, out *statisticsOutput, span StatisticsSpan, p store.ListFailuresParams) (*statisticsOutput, error) {
	within, err := span.params(ss.now())
	if err != nil {
		return nil, err
	}
	p.From, p.To = within.From, within.To
	list, err := ss.store.ListFailures(ctx, p)
	if err != nil {
		return nil, err
	}
	out.Body.Items, out.Body.Groups = []RunEndings{}, domain.Collect(list, failureGroupOf)
	return out, nil
}
