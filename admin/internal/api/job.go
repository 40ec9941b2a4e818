package api

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/api/calendar"
	"github.com/carillon-sched/carillon/admin/internal/api/callback"
	"github.com/carillon-sched/carillon/admin/internal/api/script"
	"github.com/carillon-sched/carillon/admin/internal/api/web"
	"github.com/carillon-sched/carillon/admin/internal/auth"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/admin/internal/timing"
)

// JobSpec is what a revision of a job holds.
type JobSpec struct {
	Name            string            `json:"name" doc:"Its name, unique in the tenant"`
	Description     string            `json:"description" doc:"What it is for, for people"`
	Labels          map[string]string `json:"labels" doc:"What it is grouped and found by"`
	Handler         string            `json:"handler" doc:"Name of the handler that it runs"`
	Input           json.RawMessage   `json:"input,omitempty" doc:"Any JSON; absent in lists"`
	Script          *script.ScriptUse `json:"script,omitempty" doc:"What an agent runs"`
	Schedule        Schedule          `json:"schedule" doc:"When it fires"`
	Misfire         Misfire           `json:"misfire" doc:"What becomes of fire times that nobody could serve in time"`
	Routing         string            `json:"routing" enum:"round_robin,random,consistent_hash,least_loaded,least_frequently_used,least_recently_used,first,last,failover,busy_over" doc:"Which instance gets a run"`
	RoutingKey      string            `json:"routingKey" doc:"With consistent_hash: a JSON pointer into the input; empty or nothing there: the job is the key"`
	RequireLabels   string            `json:"requireLabels" doc:"What the labels of an instance have to meet; empty = any"`
	PreferLabels    string            `json:"preferLabels" doc:"What they should meet: others are used when none of those has room"`
	Blocking        string            `json:"blocking" enum:"serial,discard_later,cover_early,parallel" doc:"What a run does when an earlier one of the job is not over: wait in order, give up, replace it, or run beside it"`
	Parallelism     int               `json:"parallelism" doc:"Runs at once with blocking parallel; 0 = no limit"`
	MaxWaiting      int               `json:"maxWaiting" doc:"How many runs may wait for earlier ones of the job; a fire that finds so many is discarded (queue_full)"`
	Retry           Retry             `json:"retry" doc:"When an attempt fails"`
	SendRetry       SendRetry         `json:"sendRetry" doc:"Sends that lead to nothing; they cost no attempt"`
	Timeout         string            `json:"timeout" doc:"Of one attempt; 0s = none"`
	DispatchTimeout string            `json:"dispatchTimeout" doc:"How long a due run waits for an instance"`
	OnLost          string            `json:"onLost" enum:"auto,fail,retry" doc:"What to do when the outcome is unknown; auto: retry if the handler is idempotent"`
	OnSuccess       callback.Callback `json:"onSuccess" doc:"What follows a run that succeeded"`
	OnFailure       callback.Callback `json:"onFailure" doc:"What follows a run that failed for good"`
	Priority        int               `json:"priority" doc:"-100 to 100; among the tenant's waiting runs each point counts as one second of waiting"`
	LogLevel        string            `json:"logLevel" enum:"default,DEBUG,INFO,WARN,ERROR" doc:"Lowest level that is captured into the logs of runs; default: as the executor says"`
	Owner           Owner             `json:"owner" doc:"Whom alerts go to"`
	Alert           Alert             `json:"alert" doc:"When and where alerts go"`
	Sharding        *Sharding         `json:"sharding,omitempty" doc:"Absent: each fire is one run"`
}

// Schedule says when a job fires. Only the fields of its kind are present.
type Schedule struct {
	Kind         string                 `json:"kind" enum:"cron,fixed_rate,fixed_delay,once,instants,daily_window,none" doc:"What decides when it fires; none: only who asks"`
	Expr         string                 `json:"expr,omitempty" doc:"The cron expression; absent for other kinds"`
	Dialect      string                 `json:"dialect,omitempty" enum:"auto,standard,seconds,quartz" doc:"How the expression is read: standard has 5 fields, seconds 6, quartz 6 or 7"`
	Every        string                 `json:"every,omitempty" doc:"Time from one fire to the next; with fixed_delay from the end of a run"`
	Anchor       *string                `json:"anchor,omitempty" format:"date-time" doc:"Where a fixed rate counts from"`
	At           *string                `json:"at,omitempty" format:"date-time" doc:"The instant of once"`
	Instants     []string               `json:"instants,omitempty" doc:"In order"`
	WindowFrom   string                 `json:"windowFrom,omitempty" doc:"With daily_window: first fire of each day"`
	WindowTo     string                 `json:"windowTo,omitempty" doc:"With daily_window: no fire later"`
	Zone         string                 `json:"zone" doc:"IANA name"`
	StartAt      *string                `json:"startAt,omitempty" format:"date-time" doc:"No fire before"`
	EndAt        *string                `json:"endAt,omitempty" format:"date-time" doc:"No fire after"`
	DSTGap       string                 `json:"dstGap,omitempty" enum:"run_at_gap_end,skip" doc:"What becomes of a time that the clock jumps over"`
	DSTOverlap   string                 `json:"dstOverlap,omitempty" enum:"once,both" doc:"What becomes of a time that comes twice"`
	Jitter       string                 `json:"jitter,omitempty" doc:"Runs start up to this long after their fire time"`
	Calendars    []calendar.CalendarRef `json:"calendars,omitempty" doc:"They keep it from firing"`
	CalendarDays string                 `json:"calendarDays,omitempty" enum:"not_holidays,workdays,all" doc:"Which days its calendars leave"`
	Text         *web.Bilingual         `json:"text,omitempty" readOnly:"true" doc:"The schedule in words"`
}

// Misfire says what happens to fire times that passed unnoticed.
type Misfire struct {
	Policy    string `json:"policy" enum:"skip,once_now,all" doc:"skip: none of them runs; once_now: one run for all of them; all: each of them runs, within window and maxRuns"`
	Threshold string `json:"threshold" doc:"How late a fire time still counts as on time"`
	Window    string `json:"window,omitempty" doc:"For all: older fire times are not made up"`
	MaxRuns   int    `json:"maxRuns,omitempty" doc:"For all: the newest so many are made up"`
}

// Retry says whether a failed attempt is tried again.
type Retry struct {
	MaxAttempts int     `json:"maxAttempts" doc:"Counts the first one too"`
	Delay       string  `json:"delay" doc:"Wait before the second attempt"`
	Backoff     float64 `json:"backoff" doc:"Multiplies the delay after each attempt"`
	MaxDelay    string  `json:"maxDelay" doc:"Longest wait that backoff leads to"`
}

// SendRetry says how often and when a run is sent again that no instance took.
type SendRetry struct {
	MaxSends int     `json:"maxSends" doc:"Sends that may lead to nothing, over all attempts; 0 = as many as the dispatch timeout allows"`
	Delay    string  `json:"delay" doc:"Before the next send; 0s = as the instance's answer suggests, at most 2s"`
	Backoff  float64 `json:"backoff" doc:"Multiplies the delay after each send"`
	MaxDelay string  `json:"maxDelay" doc:"Longest wait that backoff leads to"`
}

// Owner is who gets told.
type Owner struct {
	Name  string `json:"name" doc:"Name of a person or a team; empty: nobody"`
	Email string `json:"email" doc:"Address that alerts go to; empty: none"`
}

// Alert says what is told, and where.
type Alert struct {
	OnFailure         bool     `json:"onFailure" doc:"Failed for good, timed out, lost, or never started"`
	Emails            []string `json:"emails" doc:"Beside the owner's"`
	WebhookURL        string   `json:"webhookUrl" doc:"Address that alerts are posted to; empty: none; … for readers who may not edit"`
	WebhookSecretSet  bool     `json:"webhookSecretSet" readOnly:"true" doc:"A secret is stored, with which the posts are signed; it cannot be read"`
	IncludeNoExecutor bool     `json:"includeNoExecutor" doc:"Due, and no instance online"`
}

// Job is a definition with what lists show beside it.
type Job struct {
	ID string `json:"id" doc:"Id of the job, a decimal string"`
	JobSpec
	Kind           string    `json:"kind" readOnly:"true" enum:"job,call,callback,timer" doc:"job: made by people or declared by code; call, callback, timer: made by the server, for the calls of a handler, its runs as a callback, or its timers"`
	Executor       web.Ref   `json:"executor" doc:"The executor whose instances run it"`
	State          string    `json:"state" enum:"enabled,paused" doc:"enabled: its schedule fires; paused: it fires only when asked"`
	PauseNote      string    `json:"pauseNote" doc:"Why it is paused; empty: not said"`
	PausedBy       string    `json:"pausedBy" doc:"Who paused it; empty: it is not paused, or it is not known"`
	PausedAt       *string   `json:"pausedAt" format:"date-time" doc:"When it was paused; null: it is not paused, or it is not known"`
	Source         string    `json:"source" enum:"console,code" doc:"Who wrote the newest revision"`
	Declared       *Declared `json:"declared" doc:"What the code of an application has to do with it; null: nothing"`
	Revision       int64     `json:"revision" doc:"Number of the newest revision, from 1; give it in quotes as If-Match"`
	NextFireAt     *string   `json:"nextFireAt" format:"date-time" doc:"The next fire time; null: none"`
	NeverFires     bool      `json:"neverFires" doc:"Enabled with a schedule that has no fire left"`
	AwaitsRun      *string   `json:"awaitsRun,omitempty" doc:"fixed_delay: the next fire is planned when this run has ended"`
	LastRun        *LastRun  `json:"lastRun" doc:"The newest run; null: none yet"`
	RecentRuns     []LastRun `json:"recentRuns" readOnly:"true" doc:"The newest runs, the newest first, at most 10 or as many as recent says"`
	Stats7d        *JobStats `json:"stats7d,omitempty" readOnly:"true" doc:"Its runs that ended in the last 7 days, by whole hours, in lists some seconds late; absent if none ended"`
	Waiting        int64     `json:"waiting" readOnly:"true" doc:"How many runs wait for earlier ones of the job"`
	PilesUp        bool      `json:"pilesUp" readOnly:"true" doc:"At least 3 runs wait, and the last ones took longer than the interval"`
	ExecutorOnline int       `json:"executorOnline" doc:"Instances online"`
	CreatedAt      string    `json:"createdAt" format:"date-time" doc:"When the job was made"`
	UpdatedAt      string    `json:"updatedAt" format:"date-time" doc:"When the newest revision was written"`
	CreatedBy      string    `json:"createdBy" doc:"Who made the job"`
	UpdatedBy      string    `json:"updatedBy" doc:"Who wrote the newest revision"`
}

// Declared says who decides about a job that an application declares.
type Declared struct {
	Executor  web.Ref `json:"executor" doc:"Whose code declares it"`
	Ownership string  `json:"ownership" enum:"until_edited,code,console,propose" doc:"until_edited: the code, until somebody edits the job here"`
	Removal   string  `json:"removal" enum:"default,keep,pause,delete" doc:"What happens when no version declares it any more"`
	Version   string  `json:"version" doc:"Of the application, whose declaration was taken last"`
	Gone      bool    `json:"gone" doc:"No version that is present declares it any more"`
	Locked    bool    `json:"locked" doc:"Edits are refused, but for labels, alerts and the owner where the code does not declare them (says)"`
	// Says is CodeSays of the newest revision.
	Says []string `json:"says,omitempty" doc:"Which of labels, alerts and owner the code declares, for example labels.team, alert.emails, owner; absent: none"`
}

// LastRun is one of a job's newest runs.
type LastRun struct {
	ID         string  `json:"id" doc:"Id of the run, a decimal string"`
	State      string  `json:"state" doc:"State of the run"`
	Reason     string  `json:"reason,omitempty" doc:"Why it is there, for machines; absent: there is nothing to say"`
	FireAt     string  `json:"fireAt" format:"date-time" doc:"Its fire time"`
	FinishedAt *string `json:"finishedAt" format:"date-time" doc:"When it ended; null: not yet"`
	LatenessMS *int64  `json:"latenessMs" doc:"As that of a run: from its planned start to the start of the first attempt; null: none has started"`
	DurationMS *int64  `json:"durationMs" doc:"As that of a run: how long the handler of the newest attempt ran; null: it has not ended, or never started"`
	Message    string  `json:"message,omitempty" doc:"First line of the error, or else the reason in words, at most 200 bytes; absent: it did not fail, time out, get lost or miss its fire time"`
}

func lastRunOf(job domain.JobID, r *store.LastRun) LastRun {
	out := LastRun{
		ID: r.ID.String(), State: r.State.String(), Reason: string(r.Reason), Message: r.Message,
		FireAt: web.Instant(r.FireAt), FinishedAt: web.InstantOrNull(r.FinishedAt),
	}
	if late, ok := startedLate(job, r.Cause, r.JitterMax, r.FireAt, r.FirstStartAt); ok {
		out.LatenessMS = new(late.Milliseconds())
	}
	if r.Took >= 0 {
		out.DurationMS = new(r.Took.Milliseconds())
	}
	return out
}

// JobStats says how a job's runs of some time ended. Shares of durations are those of Spread.
type JobStats struct {
	Runs   int64  `json:"runs" doc:"How many ended"`
	Failed int64  `json:"failed" doc:"How many of them failed, timed out or were lost"`
	P50    *int64 `json:"p50Ms" doc:"Half of their last attempts took no longer; off by 5 % at most; null: none ran"`
	P95    *int64 `json:"p95Ms" doc:"Of twenty, 19 took no longer. It equals p50Ms if both lie in one bucket, which is 10.5 % wide and at least 1 ms"`
	Late   *int64 `json:"latenessP95Ms" doc:"Of twenty that started at their first attempt, 19 started no later after their fire time; null: none did"`
}

// weekOf is what lists show of a job's last 7 days.
func weekOf(w *store.JobWeek) *JobStats {
	if w == nil || w.Ended <= 0 {
		return nil
	}
	share := func(s *domain.Spread, q float64) *int64 {
		d, ok := s.Quantile(q)
		if !ok {
			return nil
		}
		return new(d.Milliseconds())
	}
	return &JobStats{Runs: w.Ended, Failed: w.Failed, P50: share(&w.Took, 0.5), P95: share(&w.Took, 0.95), Late: share(&w.Late, 0.95)}
}

func jobStatsOf(sums store.RunSums) *JobStats {
	var all RunEndings
	for at, sum := range sums {
		all.add(at.State, sum)
	}
	if all.Runs == 0 {
		return nil
	}
	out := &JobStats{Runs: all.Runs, Failed: all.Failed + all.TimedOut + all.Lost}
	if took := all.measured().Duration; took != nil {
		out.P50, out.P95 = &took.P50, &took.P95
	}
	if all.Lateness != nil {
		out.Late = &all.Lateness.P95
	}
	return out
}

// JobEvent is that somebody did something to a job.
type JobEvent struct {
	What     string `json:"what" enum:"created,edited,paused,resumed,note_changed,deleted,restored" doc:"What was done; note_changed: a pause of the server became a person's"`
	State    string `json:"state,omitempty" enum:"enabled,paused,deleted" doc:"What the job was from then on; absent with an edit, which leaves it as it is"`
	At       string `json:"at" format:"date-time" doc:"When"`
	By       string `json:"by" doc:"Who did it"`
	Note     string `json:"note,omitempty" doc:"Why, in the words of who did it"`
	Revision int64  `json:"revision,omitempty" doc:"Number of the revision that was made; absent: none"`
}

// Revision is one version of a job's settings.
type Revision struct {
	Revision  int64   `json:"revision" doc:"Number of the revision, from 1"`
	CreatedAt string  `json:"createdAt" format:"date-time" doc:"When it was written"`
	CreatedBy string  `json:"createdBy" doc:"Who wrote it"`
	Spec      JobSpec `json:"spec" doc:"The settings of the job in this revision"`
}

func specOf(s *domain.JobSpec) JobSpec {
	dispatch := s.DispatchTimeout
	if dispatch <= 0 {
		dispatch = domain.DefaultDispatchTimeout
	}
	return JobSpec{
		Name: s.Name, Description: s.Description, Labels: web.EmptyMapIfNil(s.Labels), Handler: s.Handler,
		Input: web.RawOrNull(s.Input), Script: script.UseOf(s.Script), Schedule: scheduleOf(s.Schedule),
		Misfire: misfireOf(s.Misfire),
		Routing: string(s.Routing), RoutingKey: s.RoutingKey, RequireLabels: s.Require.Text, PreferLabels: s.Prefer.Text,
		SendRetry: sendRetryOf(s.SendRetry),
		Blocking:  string(s.Blocking), Parallelism: s.Parallelism, MaxWaiting: int(s.QueueLimit()),
		Retry: Retry{
			MaxAttempts: max(1, s.Retry.MaxAttempts), Delay: domain.DurationText(s.Retry.Delay),
			Backoff: max(1, s.Retry.Backoff), MaxDelay: domain.DurationText(s.Retry.Longest()),
		},
		Timeout: domain.DurationText(s.Timeout), DispatchTimeout: domain.DurationText(dispatch),
		OnLost: string(s.OnLost), Priority: s.Priority, LogLevel: cmp.Or(s.LogLevel, defaultLevel), Owner: Owner(s.Owner), OnSuccess: callback.Of(s.OnSuccess), OnFailure: callback.Of(s.OnFailure),
		Alert: Alert{
			OnFailure: s.Alert.OnFailure, Emails: web.EmptyIfNil(s.Alert.Emails), WebhookURL: s.Alert.WebhookURL,
			WebhookSecretSet: len(s.Alert.WebhookSecret) > 0, IncludeNoExecutor: s.Alert.IncludeNoExecutor,
		},
		Sharding: shardingOf(s.Sharding),
	}
}

// callbacks are those that there can be.
func (s *JobSpec) callbacks() []*callback.Callback {
	return []*callback.Callback{&s.OnSuccess, &s.OnFailure}
}

// shownTo leaves out what is for those who may edit: who knows the address of a
// webhook can often write there.
func shownTo(id auth.Identity, s JobSpec) JobSpec {
	if !id.May(domain.PermEdit) && s.Alert.WebhookURL != "" {
		s.Alert.WebhookURL = web.Hidden
	}
	return s
}

func sendRetryOf(r domain.SendRetry) SendRetry {
	if r.MaxDelay <= 0 {
		r.MaxDelay = domain.DefaultMaxSendDelay
	}
	return SendRetry{MaxSends: r.MaxSends, Delay: domain.DurationText(r.Delay), Backoff: max(1, r.Backoff), MaxDelay: domain.DurationText(r.MaxDelay)}
}

// defaultLevel stands for the level of the executor.
const defaultLevel = "default"

// writtenOf is when and by whom the newest revision of a job was written.
func writtenOf(v *store.JobView) store.Authorship {
	if v.Written == (store.Authorship{}) {
		return store.Authorship{At: v.UpdatedAt, By: v.UpdatedBy}
	}
	return v.Written
}

func jobOf(id auth.Identity, v store.JobView, online int) Job {
	written := writtenOf(&v)
	j := Job{
		ID: v.ID.String(), JobSpec: shownTo(id, specOf(&v.Spec)), Executor: web.Ref{ID: v.Executor.String(), Name: v.ExecutorName},
		State: v.State.String(), Kind: v.Kind.String(), Source: string(v.Source), Revision: v.Revision,
		Waiting: v.Waiting, PilesUp: v.PilesUp,
		ExecutorOnline: online, CreatedAt: web.Instant(v.CreatedAt), UpdatedAt: web.Instant(written.At),
		CreatedBy: v.CreatedBy, UpdatedBy: written.By, Stats7d: weekOf(v.Week),
	}
	if v.State == domain.JobPaused {
		j.PauseNote, j.PausedBy, j.PausedAt = v.Pause.Note, v.Pause.By, web.InstantOrNull(v.Pause.At)
	}
	if d := v.Declared; d.By != 0 {
		j.Declared = &Declared{
			Executor: web.Ref{ID: v.Executor.String(), Name: v.ExecutorName}, Ownership: cmp.Or(string(d.Ownership), "until_edited"),
			Removal: cmp.Or(string(d.Removal), "default"), Version: d.Version, Gone: d.Gone, Locked: d.LocksConsole(), Says: v.Spec.CodeSays,
		}
		if v.Spec.CodeSays == nil && d.LocksConsole() {
			j.Declared.Says = []string{"owner"} // as CodeSays.Locks has it
		}
	}
	if v.State == domain.JobEnabled {
		next := v.NextFireAt
		if len(v.Spec.Schedule.Calendars) > 0 && next.Before(domain.Never) {
			// The trigger also comes to fire times that are excluded.
			next = timing.NextRun(next.Add(-time.Millisecond), &v.Spec)
		}
		j.NextFireAt = web.InstantOrNull(next)
		j.AwaitsRun = web.IDOrNull(v.AwaitsRun)
		j.NeverFires = j.NextFireAt == nil && j.AwaitsRun == nil && v.Spec.Schedule.Kind != domain.ScheduleNone
	}
	j.RecentRuns = domain.Collect(v.Recent, func(r *store.LastRun) LastRun { return lastRunOf(v.ID, r) })
	if len(j.RecentRuns) > 0 {
		j.LastRun = &j.RecentRuns[0]
	}
	return j
}
