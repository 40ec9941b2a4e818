package api

import (
	"context"
	"net/http"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/forecast"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Fires is how often jobs will fire.
type Fires struct {
	From        string       `json:"from" format:"date-time" doc:"Begin of the first bucket"`
	To          string       `json:"to" format:"date-time" doc:"End of the last bucket"`
	Bucket      string       `json:"bucket" doc:"Length of a bucket; the last one may be shorter"`
	Items       []FireBucket `json:"items" doc:"All buckets, in order"`
	Fires       int64        `json:"fires" doc:"Fires of all buckets"`
	Jobs        int          `json:"jobs" doc:"Jobs that fire at least once"`
	Unpredicted int          `json:"unpredicted" doc:"Jobs that are not counted: a fixed delay goes by the ends of its runs. Also jobs with a schedule that cannot be read"`
	First       []JobFires   `json:"first" doc:"Jobs in the order of their first fire times, at most limit"`
}

// FireBucket counts the fires of a time.
type FireBucket struct {
	At    string `json:"at" format:"date-time" doc:"Begin of the bucket"`
	Fires int64  `json:"fires" doc:"Fires in it"`
	Jobs  int    `json:"jobs" doc:"Jobs that fire in it"`
}

// JobFires is a job with its fires.
type JobFires struct {
	JobID    string   `json:"jobId" doc:"Id of the job"`
	JobName  string   `json:"jobName" doc:"Name of the job"`
	Executor web.Ref  `json:"executor" doc:"Executor of the job"`
	Fires    int64    `json:"fires" doc:"Number of its fires"`
	At       []string `json:"at" format:"date-time" doc:"The first 10 fire times"`
}

// Clash is how many other jobs fire at a fire time.
type Clash struct {
	SameSecond int `json:"sameSecond" doc:"Other enabled jobs that fire in the same second"`
	SameMinute int `json:"sameMinute" doc:"Other enabled jobs that fire in the same minute, those of the same second included"`
}

// JobFilter chooses jobs. It is exported because huma passes over embedded fields that are not.
type JobFilter struct {
	Q          string `query:"q" maxLength:"128" doc:"Part of name or description"`
	Name       string `query:"name" maxLength:"128" doc:"Pattern of the whole name, in which * stands for any text"`
	ExecutorID string `query:"executorId" doc:"Only jobs of this executor"`
	Executor   string `query:"executor" maxLength:"128" doc:"Only jobs of the executor with this name"`
	Handler    string `query:"handler" maxLength:"128" doc:"Only jobs of this handler"`
	Label      string `query:"label" maxLength:"256" doc:"Labels that they have: key, key=value or a selector such as team=pay,tier in (gold, silver),env!=test, all of whose terms hold"`
	Owner      string `query:"owner" maxLength:"254" doc:"Part of the owner's name or mail address; or = and then the whole name, a space and the mail address"`
}

// JobStateParam chooses jobs by state. It is exported because huma passes over embedded fields
// that are not.
type JobStateParam struct {
	State string `query:"state" enum:"enabled,paused,failing,late,never_fires" doc:"Only jobs in this state. failing, late and never_fires are enabled jobs. failing: of the runs that succeeded, failed, timed out or were lost, one of the newest minute did not succeed. late: in the newest minute in which first attempts ended, one had started more than 10 s after its time. never_fires: as neverFires"`
}

// choose adds it to a filter.
func (in *JobStateParam) choose(p *store.ListJobsParams) {
	switch in.State {
	case "enabled":
		p.State = domain.JobEnabled
	case "paused":
		p.State = domain.JobPaused
	case "never_fires":
		p.NeverFires = true
	default:
		p.Health = store.JobHealth(in.State)
	}
}

type countJobsInput struct {
	JobFilter
	JobStateParam
	Kind    string `query:"kind" enum:"job,call,callback,timer,all" default:"job" doc:"As in the list of jobs"`
	GroupBy string `query:"groupBy" enum:"executor,owner,label" doc:"Also count the jobs by this, those of the state alone. A job counts for each of its labels"`
	Top     int    `query:"top" minimum:"1" maximum:"200" default:"50" doc:"With groupBy: how many groups at most"`
}

// JobTotals counts the jobs of a filter.
type JobTotals struct {
	All        int        `json:"all" doc:"Jobs of the filter, whatever their state. All counts leave state out"`
	Failing    int        `json:"failing" doc:"Those of state=failing"`
	Late       int        `json:"late" doc:"Those of state=late"`
	Paused     int        `json:"paused" doc:"Those of state=paused"`
	NeverFires int        `json:"neverFires" doc:"Those of state=never_fires"`
	More       bool       `json:"more" doc:"There are more than 50,000 jobs, and the others are not counted"`
	Groups     []JobGroup `json:"groups,omitempty" doc:"With groupBy: the largest groups first"`
	MoreGroups bool       `json:"moreGroups,omitempty" doc:"There are more groups than top"`
}

// JobGroup is jobs that have something in common.
type JobGroup struct {
	ID   string `json:"id,omitempty" doc:"Id of the executor; absent for other groups"`
	Name string `json:"name" doc:"Name of the executor, the owner's name and mail address, or key=value of a label. Empty: no owner"`
	Jobs int    `json:"jobs" doc:"How many jobs it has"`
}

type firesInput struct {
	JobFilter
	From   string `query:"from" format:"date-time" doc:"Fire times from this instant on; default: now, from the begin of the bucket on"`
	To     string `query:"to" format:"date-time" doc:"Fire times before this instant; default: a day after from"`
	Bucket string `query:"bucket" default:"1h" doc:"Time of which fires are counted together, 1m to 24h. An answer has at most 744 buckets, and 31 days"`
	Limit  int    `query:"limit" minimum:"0" maximum:"200" default:"50" doc:"How many jobs are named at most"`
}

// Bounds of an answer.
const (
	maxFireBuckets = 744
	maxFireSpan    = 31 * 24 * time.Hour
)

// fires count fire times that are still to come.
type fires struct {
	// fixed after construction
	jobs     *jobs
	forecast *forecast.Forecaster
	now      func() time.Time
}

func (fs *fires) register(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/fires", ID: "count-fires", Computes: true, Tag: "jobs", Summary: "How often jobs will fire, and which of them",
		Description: "Fire times of enabled jobs by their present schedules, without those that calendars exclude. Jitter, maintenance and timers do not count. With a bucket of whole hours and a whole hour as from, the counts come from a cache.",
	}, fs.count)
}

func (fs *fires) count(ctx context.Context, id auth.Identity, in *firesInput) (*struct{ Body Fires }, error) {
	p, err := fs.params(ctx, id, in)
	if err != nil {
		return nil, err
	}
	got, err := fs.forecast.Count(ctx, p)
	if err != nil {
		return nil, err
	}
	out := Fires{
		From: web.Instant(p.From), To: web.Instant(p.To), Bucket: domain.DurationText(p.Bucket), Fires: got.Fires, Jobs: got.Jobs, Unpredicted: got.Unpredicted,
		Items: domain.Collect(got.Buckets, func(b *forecast.Bucket) FireBucket {
			return FireBucket{At: web.Instant(b.At), Fires: b.Fires, Jobs: b.Jobs}
		}),
		First: domain.Collect(got.Listed, func(j *forecast.JobFires) JobFires {
			return JobFires{
				JobID: j.Job.String(), JobName: j.Name, Executor: web.Ref{ID: j.Executor.String(), Name: j.ExecutorName}, Fires: j.Fires,
				At: domain.Collect(j.First, func(t *time.Time) string { return web.Instant(*t) }),
			}
		}),
	}
	out.First = web.EmptyIfNil(out.First)
	return &struct{ Body Fires }{out}, nil
}

func (fs *fires) params(ctx context.Context, id auth.Identity, in *firesInput) (p forecast.Params, err error) {
	var r reader
	p = forecast.Params{From: r.Instant("query.from", &in.From), To: r.Instant("query.to", &in.To), Bucket: r.Duration("query.bucket", in.Bucket, time.Hour), Listed: in.Limit}
	if err := r.Err(); err != nil {
		return p, err
	}
	if p.Bucket < time.Minute || p.Bucket > 24*time.Hour {
		return p, domain.Invalid("query.bucket", "%q is no duration from 1m to 24h", in.Bucket)
	}
	if p.From.IsZero() {
		p.From = fs.now().UTC().Truncate(p.Bucket)
	}
	if p.To.IsZero() {
		p.To = p.From.Add(24 * time.Hour)
	}
	switch span := p.To.Sub(p.From); {
	case span <= 0:
		return p, domain.Invalid("query.to", "must be later than from")
	case span > maxFireSpan:
		return p, domain.Invalid("query.to", "is more than 31 days after from: ask for less time")
	case span > maxFireBuckets*p.Bucket:
		return p, domain.Invalid("query.bucket", "gives more than %d buckets: take a longer one, or less time", maxFireBuckets)
	}
	p.Jobs, err = fs.jobs.filter(ctx, id, &in.JobFilter)
	return p, err
}

// clashFires is how many fire times of a schedule are compared with other jobs.
const clashFires = 20

// clashes says of the first fires of a schedule how many other jobs fire together with them.
func (js *jobs) clashes(ctx context.Context, id auth.Identity, list []Fire, but domain.JobID) error {
	list = list[:min(len(list), clashFires)]
	at := make([]time.Time, len(list))
	for i, f := range list {
		at[i], _ = time.Parse(time.RFC3339, f.At) // as firesOf wrote it
	}
	found, err := js.forecast.Clashes(ctx, store.ListJobsParams{Tenant: id.Tenant, Within: id.Reach}, at, but)
	if err != nil {
		return err
	}
	for i, c := range found {
		list[i].Clashes = &Clash{SameSecond: c.Second, SameMinute: c.Minute}
	}
	return nil
}

// OverdueList is fire times that have passed without anything having started.
type OverdueList struct {
	Items []OverdueJob `json:"items" doc:"Those that are not even planned first, each from the oldest"`
	More  bool         `json:"more" doc:"There are others beyond limit"`
}

// OverdueJob is a fire time that has passed, and nothing has started.
type OverdueJob struct {
	JobID     string  `json:"jobId" doc:"Id of the job"`
	JobName   string  `json:"jobName" doc:"Name of the job"`
	Executor  web.Ref `json:"executor" doc:"Who was to run it"`
	FireAt    string  `json:"fireAt" format:"date-time" doc:"When it was to start"`
	OverdueMS int64   `json:"overdueMs" doc:"How long ago that was"`
	RunID     *string `json:"runId" doc:"The run that waits; null: none was planned"`
	Reason    string  `json:"reason" doc:"Code of why the run waits; empty: it is not known, or there is no run"`
}

type overdueInput struct {
	By    string `query:"by" default:"1m" doc:"Overdue by longer than that, 1s to 24h"`
	Limit int    `query:"limit" default:"100" minimum:"1" maximum:"200" doc:"How many at most"`
}

func (js *jobs) registerOverdue(server *web.Server) {
	web.Register(server, web.May(domain.PermRead).InExecutors(), web.Operation{
		Method: http.MethodGet, Path: web.Base + "/jobs/overdue", ID: "list-overdue", Tag: "jobs", Summary: "Jobs whose fire time has passed and that have not started",
		Description: "Runs that were asked for count, too; timers do not. What waits as its job says, for a slot or behind a limit, is overdue as well: reason says so.",
	}, js.listOverdue)
}

func (js *jobs) listOverdue(ctx context.Context, id auth.Identity, in *overdueInput) (*struct{ Body OverdueList }, error) {
	by, err := time.ParseDuration(in.By)
	if err != nil || by < time.Second || by > 24*time.Hour {
		return nil, domain.Invalid("query.by", "%q is no duration from 1s to 24h, such as 90s or 5m", in.By)
	}
	list, more, err := js.store.ListOverdue(ctx, store.ListOverdueParams{Tenant: id.Tenant, Within: id.Reach, By: by, Limit: in.Limit})
	if err != nil {
		return nil, err
	}
	out := OverdueList{Items: []OverdueJob{}, More: more}
	for i := range list {
		o := &list[i]
		out.Items = append(out.Items, OverdueJob{
			JobID: o.Job.String(), JobName: o.JobName, Executor: web.Ref{ID: o.Executor.String(), Name: o.ExecutorName}, FireAt: web.Instant(o.FireAt),
			OverdueMS: o.By.Milliseconds(), RunID: web.IDOrNull(o.Run), Reason: string(o.Reason),
		})
	}
	return &struct{ Body OverdueList }{out}, nil
}

func (js *jobs) countJobs(ctx context.Context, id auth.Identity, in *countJobsInput) (*struct{ Body JobTotals }, error) {
	p, err := js.filter(ctx, id, &in.JobFilter)
	if err != nil {
		return nil, err
	}
	p.Kind, p.AllKinds = jobKinds[in.Kind], in.Kind == "all"
	n, err := js.store.CountJobHealth(ctx, p)
	if err != nil {
		return nil, err
	}
	out := JobTotals{All: n.All, Failing: n.Failing, Late: n.Late, Paused: n.Paused, NeverFires: n.NeverFires, More: n.More}
	if in.GroupBy == "" {
		return &struct{ Body JobTotals }{out}, nil
	}
	in.choose(&p)
	groups, more, err := js.store.GroupJobs(ctx, p, store.JobGrouping(in.GroupBy), in.Top)
	if err != nil {
		return nil, err
	}
	out.MoreGroups = more
	out.Groups = domain.Collect(groups, func(g *store.JobGroup) JobGroup {
		one := JobGroup{Name: g.Name, Jobs: g.Jobs}
		if g.Executor != 0 {
			one.ID = g.Executor.String()
		}
		return one
	})
	return &struct{ Body JobTotals }{out}, nil
}
