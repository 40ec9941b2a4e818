package bulk

import (
	"slices"
	"strings"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// BulkRequest asks for an action on many jobs or runs.
type BulkRequest struct {
	Action   string            `json:"action" enum:"pause,resume,run,delete,label,set-owner,retry,cancel" doc:"What is done with each item. retry and cancel are of runs, the others of jobs"`
	Filter   BulkFilter        `json:"filter,omitzero" doc:"Which jobs or runs. An item meets all conditions. Those that are made later do not count"`
	Expected *int64            `json:"expected,omitempty" minimum:"0" doc:"How many items the caller expects. If it is another number, nothing is done"`
	AnyCount bool              `json:"anyCount,omitempty" doc:"Do it whatever the number is; then expected is not needed"`
	DryRun   bool              `json:"dryRun,omitempty" doc:"Say how many items there are and the first of them, and do nothing"`
	Note     string            `json:"note,omitempty" maxLength:"400" doc:"Why. Shown beside jobs that are paused and runs that begin, and seen by handlers of runs that are cancelled"`
	All      bool              `json:"all,omitempty" doc:"With resume: also jobs that others have paused. Default: those that the caller has"`
	PausedBy string            `json:"pausedBy,omitempty" maxLength:"20" doc:"With resume: jobs that the bulk operation with this id has paused"`
	Until    string            `json:"until,omitempty" format:"date-time" doc:"With pause: a second bulk operation resumes the jobs that this one has paused at this instant, at most 366 days ahead. Default: they stay paused"`
	Labels   map[string]string `json:"labels,omitempty" maxProperties:"32" doc:"With label: labels to set"`
	Remove   []string          `json:"removeLabels,omitempty" maxItems:"32" doc:"With label: keys of labels to take away"`
	Owner    *BulkOwner        `json:"owner,omitempty" doc:"With set-owner: the new owner; empty fields mean none"`
	During   bool              `json:"duringMaintenance,omitempty" doc:"With run and retry: start them although nothing is to start because of maintenance"`
}

// BulkOwner is who gets told of a job.
type BulkOwner struct {
	Name  string `json:"name,omitempty" maxLength:"128" doc:"Name of a person or a team"`
	Email string `json:"email,omitempty" maxLength:"254" doc:"Address that alerts go to"`
}

// BulkFilter has the conditions of the list of jobs, or of the list of runs and their jobs.
type BulkFilter struct {
	IDs         []string `json:"ids,omitempty" maxItems:"200" doc:"Of jobs: these"`
	ExecutorID  string   `json:"executorId,omitempty" maxLength:"20" doc:"Of this executor"`
	Handler     string   `json:"handler,omitempty" maxLength:"128" doc:"Jobs, or runs of jobs, of this handler"`
	Name        string   `json:"name,omitempty" maxLength:"128" doc:"Pattern of the whole name of the job in any case, in which * stands for any text"`
	Q           string   `json:"q,omitempty" maxLength:"128" doc:"Part of the job's name or description"`
	Label       string   `json:"label,omitempty" maxLength:"256" doc:"Labels that the job has: key, key=value or a selector such as team=pay,tier in (gold, silver),env!=test, all of whose terms hold"`
	Owner       string   `json:"owner,omitempty" maxLength:"254" doc:"Part of the name or mail address of the job's owner"`
	State       string   `json:"state,omitempty" maxLength:"200" doc:"Of jobs: enabled or paused. Of runs: one or several, separated by commas; default: with retry all bad ends, with cancel all that have not ended"`
	JobID       string   `json:"jobId,omitempty" maxLength:"20" doc:"Runs of this job"`
	Cause       string   `json:"cause,omitempty" enum:"schedule,misfire,manual,api,retry,parent,backfill,timer,import" doc:"Runs that exist for this reason; default of a retry: all but those that are retries themselves"`
	From        string   `json:"from,omitempty" format:"date-time" doc:"Runs due at or after"`
	To          string   `json:"to,omitempty" format:"date-time" doc:"Runs due before"`
	Error       string   `json:"error,omitempty" maxLength:"256" doc:"Part of what the handler of a run said of its failure"`
	Fingerprint string   `json:"fingerprint,omitempty" maxLength:"16" doc:"Runs that ended with this error, as groupBy=error of the statistics names it: all of them, not one an hour"`
}

// BulkOperation is how far an action on many items is.
type BulkOperation struct {
	ID         string     `json:"id,omitempty" doc:"Absent with dryRun"`
	Action     string     `json:"action" enum:"pause,resume,run,delete,label,set-owner,retry,cancel" doc:"What is done with each item"`
	Filter     BulkFilter `json:"filter" doc:"Which items"`
	State      string     `json:"state" enum:"dry_run,waiting,running,done,cancelled" doc:"dry_run: nothing was done; waiting: it begins at startsAt; running; done: each item has an answer; cancelled: the rest has none"`
	Total      int64      `json:"total" doc:"How many items there were when it was asked for"`
	TotalMore  bool       `json:"totalMore,omitempty" doc:"With dryRun: there are more, and too many for one operation"`
	Done       int64      `json:"done" doc:"Items that it was done with"`
	Skipped    int64      `json:"skipped" doc:"Items that did not need it, or that it leaves alone"`
	Failed     int64      `json:"failed" doc:"Items that refused it"`
	StartsAt   *string    `json:"startsAt,omitempty" format:"date-time" doc:"When one begins that resumes jobs later; absent: it begins at once"`
	Until      *string    `json:"until,omitempty" format:"date-time" doc:"Of a pause with an end: when the jobs are resumed"`
	ResumedBy  string     `json:"resumedBy,omitempty" doc:"Of a pause with an end: the bulk operation that resumes the jobs. If it is cancelled, they stay paused"`
	RetryOf    string     `json:"retryOf,omitempty" doc:"The operation whose failed items are its items"`
	Items      []BulkItem `json:"items,omitempty" doc:"With dryRun: the first items, at most 100"`
	Note       string     `json:"note" doc:"Why it was asked for; empty: not said"`
	Message    string     `json:"message" doc:"Why it ended before its time; empty otherwise"`
	CreatedAt  string     `json:"createdAt,omitempty" format:"date-time" doc:"When it was asked for; absent with dryRun"`
	CreatedBy  string     `json:"createdBy" doc:"Who asked for it"`
	FinishedAt *string    `json:"finishedAt" format:"date-time" doc:"When it ended; null: not yet"`
}

// BulkItem is an item with its answer.
type BulkItem struct {
	ID      string `json:"id" doc:"Id of the job or run"`
	Name    string `json:"name" doc:"Name of the job; empty: it is not there any more"`
	Outcome string `json:"outcome,omitempty" enum:"skipped,failed" doc:"skipped: it did not need it, or is left alone; failed: it refused it; absent with dryRun"`
	Code    string `json:"code,omitempty" doc:"Why, for machines"`
	Message string `json:"message,omitempty" doc:"Why, for people"`
}

func itemOf(it *Item) BulkItem {
	return BulkItem{ID: domain.JobID(it.ID).String(), Name: it.Name, Outcome: string(it.Outcome), Code: string(it.Code), Message: it.Message}
}

func operationOf(o *Operation) BulkOperation {
	out := BulkOperation{
		ID: o.ID.String(), Action: string(o.Action), Filter: filterOf(&o.Filter, o.Action), State: string(o.State), Total: o.Total,
		Done: o.Done, Skipped: o.Skipped, Failed: o.Failed, Note: o.Note, Message: o.Message,
		CreatedAt: web.Instant(o.CreatedAt), CreatedBy: o.By.identity(o.Tenant).Actor(), FinishedAt: web.InstantOrNull(o.FinishedAt),
	}
	if !o.At.IsZero() {
		out.StartsAt = web.InstantOrNull(o.At)
	}
	if !o.Until.IsZero() {
		out.Until, out.ResumedBy = web.InstantOrNull(o.Until), o.Then.String()
	}
	if o.RetryOf != 0 {
		out.RetryOf = o.RetryOf.String()
	}
	return out
}

func filterOf(f *Filter, a Action) BulkFilter {
	out := BulkFilter{Handler: f.Handler, Name: f.Name, Q: f.Query, Label: f.Label, Owner: f.Owner, Cause: string(f.Cause), Error: f.Error}
	for _, id := range f.IDs {
		out.IDs = append(out.IDs, id.String())
	}
	if f.Executor != 0 {
		out.ExecutorID = f.Executor.String()
	}
	if f.Job != 0 {
		out.JobID = f.Job.String()
	}
	switch {
	case a.OnRuns():
		names := domain.Collect(f.RunStates, func(s *domain.State) string { return s.String() })
		out.State = strings.Join(names, ",")
	case f.JobState != 0:
		out.State = f.JobState.String()
	}
	if f.Fingerprint != 0 {
		out.Fingerprint = f.Fingerprint.String()
	}
	if !f.From.IsZero() {
		out.From = web.Instant(f.From)
	}
	if !f.To.IsZero() {
		out.To = web.Instant(f.To)
	}
	return out
}

func personOf(id auth.Identity) Person { return Person{Kind: id.Kind, Name: id.Name, Via: id.Via} }

func (p Person) identity(tenant domain.TenantID) auth.Identity {
	return auth.Identity{Kind: p.Kind, Tenant: tenant, Name: p.Name, Via: p.Via}
}

// order reads a request.
func (b *BulkRequest) order(id auth.Identity, now time.Time) (Order, error) {
	var r web.Reader
	o := Order{Action: Action(b.Action), Note: strings.TrimSpace(b.Note), All: b.All, Labels: b.Labels, Remove: b.Remove, During: b.During, By: personOf(id)}
	o.Of = web.OptionalID[ID](&r, "body.pausedBy", b.PausedBy)
	if o.Until = r.Future("body.until", &b.Until, now); o.Until.Sub(now) > maxPause {
		r.Fail("body.until", b.Until, "must be at most 366 days ahead")
	}
	if domain.HasControl(strings.ReplaceAll(o.Note, "\n", " ")) {
		r.Fail("body.note", nil, "must not contain control characters")
	}
	for _, only := range []struct {
		set   bool
		field string
		of    []Action
	}{
		{b.All, "all", []Action{Resume}}, {b.PausedBy != "", "pausedBy", []Action{Resume}}, {b.Until != "", "until", []Action{Pause}},
		{len(b.Labels) > 0, "labels", []Action{Label}}, {len(b.Remove) > 0, "removeLabels", []Action{Label}},
		{b.Owner != nil, "owner", []Action{SetOwner}}, {b.During, "duringMaintenance", []Action{Run, Retry}},
	} {
		if only.set && !slices.Contains(only.of, o.Action) {
			r.Fail("body."+only.field, nil, "is of the action %s", only.of[0])
		}
	}
	switch {
	case o.Action == Label && len(b.Labels)+len(b.Remove) == 0:
		r.Fail("body.labels", nil, "is needed, or removeLabels")
	case o.Action == SetOwner && b.Owner == nil:
		r.Fail("body.owner", nil, "is needed")
	}
	if b.Owner != nil {
		o.Owner = domain.Owner{Name: strings.TrimSpace(b.Owner.Name), Email: strings.TrimSpace(b.Owner.Email)}
		if domain.HasControl(o.Owner.Name) {
			r.Fail("body.owner.name", nil, "must not contain control characters or line breaks")
		}
	}
	_ = r.Add(domain.CheckLabelsAndAlert(&domain.JobSpec{Labels: b.Labels, Owner: o.Owner})) // which has no other errors than of fields
	o.Filter = b.Filter.read(&r, o.Action)
	return o, r.Err()
}

func (f *BulkFilter) read(r *web.Reader, a Action) Filter {
	out := Filter{
		Handler: f.Handler, Name: f.Name, Query: f.Q, Label: f.Label, Owner: f.Owner, Cause: domain.Cause(f.Cause), Error: f.Error,
		Executor: web.OptionalID[domain.ExecutorID](r, "body.filter.executorId", f.ExecutorID),
		Job:      web.OptionalID[domain.JobID](r, "body.filter.jobId", f.JobID),
		From:     r.Instant("body.filter.from", &f.From), To: r.Instant("body.filter.to", &f.To),
	}
	for _, text := range f.IDs {
		if id := web.OptionalID[domain.JobID](r, "body.filter.ids", text); id != 0 {
			out.IDs = append(out.IDs, id)
		}
	}
	r.Filter("body.filter.label", f.Label)
	for _, only := range []struct {
		set, runs bool
		field     string
	}{
		{len(f.IDs) > 0, false, "ids"}, {f.JobID != "", true, "jobId"}, {f.Cause != "", true, "cause"},
		{f.From != "", true, "from"}, {f.To != "", true, "to"}, {f.Error != "", true, "error"}, {f.Fingerprint != "", true, "fingerprint"},
	} {
		if only.set && only.runs != a.OnRuns() {
			r.Fail("body.filter."+only.field, nil, "is no condition on what %s is done with", a)
		}
	}
	if f.Fingerprint != "" {
		var ok bool
		if out.Fingerprint, ok = domain.ParseFingerprint(f.Fingerprint); !ok || out.Fingerprint == 0 {
			r.Fail("body.filter.fingerprint", f.Fingerprint, "is no fingerprint of an error: 16 hex digits")
		}
	}
	if a.OnRuns() {
		out.RunStates = readRunStates(r, a, f.State)
		return out
	}
	switch f.State {
	case "":
	case domain.JobEnabled.String():
		out.JobState = domain.JobEnabled
	case domain.JobPaused.String():
		out.JobState = domain.JobPaused
	default:
		r.NoneOf("body.filter.state", f.State, []string{domain.JobEnabled.String(), domain.JobPaused.String()})
	}
	return out
}

// readRunStates takes states in which the action is possible. Without any it is these, but
// for runs that succeeded or were not to run.
func readRunStates(r *web.Reader, a Action, text string) (states []domain.State) {
	var possible []string
	for _, s := range domain.States {
		if s.Terminal() == (a == Retry) {
			possible = append(possible, s.String())
			switch s {
			case domain.Succeeded, domain.Discarded, domain.Excluded, domain.Cancelled, domain.Cancelling:
			default:
				states = append(states, s)
			}
		}
	}
	if text == "" {
		return states
	}
	states = nil
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		s, ok := domain.ParseState(name)
		if !ok || !slices.Contains(possible, name) {
			r.NoneOf("body.filter.state", name, possible)
			continue
		}
		states = append(states, s)
	}
	return states
}
