package domain

import (
	"slices"
	"time"
)

// JobState tells whether a job's schedule fires.
type JobState uint8

const (
	JobEnabled JobState = 1
	JobPaused  JobState = 2
	// JobDeleted keeps the row, so that its runs stay readable; no list shows it.
	JobDeleted JobState = 3
)

func (s JobState) String() string {
	switch s {
	case JobEnabled:
		return "enabled"
	case JobPaused:
		return "paused"
	default:
		return "deleted"
	}
}

// Source tells who owns a job's definition.
type Source string

const (
	SourceConsole Source = "console" // made or last edited in the UI, API or CLI
	SourceCode    Source = "code"    // declared by the application at registration
)

// JobKind is who works with a job: people, or the server itself.
type JobKind int8

const (
	JobPlain    JobKind = iota // made by people or declared by code
	JobCall                    // the calls of a handler belong to it
	JobCallback                // the runs of a handler as a callback belong to it
	JobTimer                   // the timers of a handler belong to it
)

func (k JobKind) String() string {
	switch k {
	case JobCall:
		return "call"
	case JobCallback:
		return "callback"
	case JobTimer:
		return "timer"
	default:
		return "job"
	}
}

// NamePrefix begins the names of the jobs that the server makes of a kind. It finds
// them by name, so no other job may have such a one.
func (k JobKind) NamePrefix() string { return k.String() + ":" }

// Job is the definition: what, when, where, how. It has no run state; its
// Trigger says when it fires next.
type Job struct {
	ID        JobID
	TenantID  TenantID
	Executor  ExecutorID
	Partition int
	State     JobState
	// Kind never changes. Lists and quotas are about plain jobs.
	Kind JobKind
	// Pause is meaningful while State is JobPaused.
	Pause Pause
	// Held: it is paused because its executor or tenant was disabled.
	Held   bool
	Source Source
	// DeclarationHash is the hash of the declaration the job was made from;
	// empty for console jobs.
	DeclarationHash string
	// Declared is what code has to do with it.
	Declared Declared
	// Revision grows by one with each edit of Spec.
	Revision  int64
	Spec      JobSpec
	CreatedAt time.Time
	UpdatedAt time.Time
	CreatedBy string
	UpdatedBy string
}

// Via parts the name of an actor from the way that a request came, as in "anna via mcp".
const Via = " via "

// Pause is the author, time and reason of a pause. Edits do not change it.
type Pause struct {
	By   string    // empty: not known
	At   time.Time // zero: not known
	Note string
}

// JobSpec is what a revision holds. Revisions never change, so a spec may be
// cached by (job, revision) for ever.
type JobSpec struct {
	Name        string
	Description string
	Labels      map[string]string
	Handler     string
	Input       []byte // JSON; nil = none
	// Script is what an agent runs; nil for all handlers but script.LANGUAGE.
	Script   *ScriptUse
	Schedule ScheduleSpec
	Misfire  Misfire
	Routing  Routing
	// RoutingKey is where RouteConsistentHash finds its key in the input, as a
	// JSON pointer (RFC 6901); empty, or nothing there: the job is the key.
	RoutingKey string
	// Require is what the labels of an instance have to meet, Prefer what they
	// should: others are used when none of those has room. Empty = any.
	Require, Prefer Selector
	Blocking        Blocking
	// Parallelism is the number of runs at once for BlockParallel; 0 = no limit.
	Parallelism int
	// MaxWaiting bounds how many runs wait for the job's slot. A fire of the schedule
	// that finds so many is discarded; 0 = DefaultMaxWaiting.
	MaxWaiting int
	Retry      Retry
	SendRetry  SendRetry
	// Timeout bounds one attempt from its start; 0 = none.
	Timeout time.Duration
	// DispatchTimeout is how long a due run waits for an instance before it is
	// missed; 0 = the default of 5 minutes.
	DispatchTimeout time.Duration
	OnLost          OnLost
	Priority        int
	Owner           Owner
	Alert           Alert
	Sharding        Sharding
	// LogLevel is the lowest level that is captured into the logs of runs: DEBUG,
	// INFO, WARN or ERROR; empty = as the executor says.
	LogLevel string
	// OnSuccess and OnFailure follow a run of the job that has ended, as runs of their own.
	OnSuccess, OnFailure FollowUp
	// CodeSays notes which labels, alerts and owner are declared in code.
	CodeSays CodeSays
	// PartOfSlot marks the settings of a part while its parent holds the job's slot.
	// It is never stored (see For).
	PartOfSlot bool
}

// Callback returns what follows a run in this state. A run that was cancelled or discarded is
// no success and no failure.
func (s *JobSpec) Callback(state State) FollowUp {
	switch state {
	case Succeeded:
		return s.OnSuccess
	case Failed, TimedOut, Lost, Missed:
		return s.OnFailure
	}
	return FollowUp{}
}

// DefaultDispatchTimeout applies when a job says nothing else.
const DefaultDispatchTimeout = 5 * time.Minute

// ScheduleSpec says when a job fires. Package schedule gives it its meaning
// (schedule.Spec has the rules of each field).
type ScheduleSpec struct {
	Kind    ScheduleKind
	Expr    string
	Dialect string // "auto", "standard", "seconds", "quartz"
	Every   time.Duration
	Anchor  time.Time // fixed rate counts from here; zero = creation time
	At      time.Time
	// Instants are the fire times of ScheduleInstants.
	Instants []time.Time
	// WindowFrom and WindowTo bound each day of ScheduleDailyWindow: "HH:MM" or "HH:MM:SS".
	WindowFrom string
	WindowTo   string
	Zone       string // IANA name; empty = UTC
	StartAt    time.Time
	EndAt      time.Time
	// Gap and Overlap are the policy for clock changes; empty = run at the end
	// of a gap, once in a repeated hour.
	Gap     string // "run_at_gap_end", "skip"
	Overlap string // "once", "both"
	// Calendars keep it from firing; Days says by which of their days. Empty =
	// holidays do.
	Calendars []CalendarUse
	Days      string // "not_holidays", "workdays", "all"
	// JitterMax spreads runs over 0 to JitterMax after their fire time; 0 = none.
	JitterMax time.Duration
}

// ScheduleKind selects the meaningful fields of a ScheduleSpec.
type ScheduleKind string

const (
	ScheduleCron        ScheduleKind = "cron"
	ScheduleFixedRate   ScheduleKind = "fixed_rate"
	ScheduleFixedDelay  ScheduleKind = "fixed_delay" // Every after the end of the run before
	ScheduleOnce        ScheduleKind = "once"
	ScheduleInstants    ScheduleKind = "instants"
	ScheduleDailyWindow ScheduleKind = "daily_window"
	ScheduleNone        ScheduleKind = "none" // runs only when asked
)

// Misfire says what happens to fire times that passed unnoticed.
type Misfire struct {
	Policy MisfirePolicy
	// Threshold is how late a fire time still counts as on time; 0 = 5 s.
	Threshold time.Duration
	// Window is the age up to which MisfireAll makes a fire time up; 0 = 1 h.
	Window time.Duration
	// MaxRuns bounds how many fire times MisfireAll makes up, the newest ones;
	// 0 = 100.
	MaxRuns int
}

// Defaults of Misfire.
const (
	DefaultMisfireThreshold = 5 * time.Second
	DefaultMisfireWindow    = time.Hour
	DefaultMisfireMaxRuns   = 100
)

type MisfirePolicy string

const (
	MisfireSkip    MisfirePolicy = "skip"
	MisfireOnceNow MisfirePolicy = "once_now"
	MisfireAll     MisfirePolicy = "all" // each within Window, at most MaxRuns
)

// Blocking names what happens when a run is due and an earlier one still runs.
type Blocking string

const (
	BlockSerial   Blocking = "serial"        // wait in order
	BlockDiscard  Blocking = "discard_later" // drop the new one, with a row
	BlockCover    Blocking = "cover_early"   // stop the earlier ones, and take their place
	BlockParallel Blocking = "parallel"      // run beside it, up to Parallelism
)

// DefaultBlocking is what a job does that says nothing: runs of a recurring
// schedule wait for each other. Runs that are asked for, at once or for an
// instant, are pieces of work of their own, and run beside each other.
func DefaultBlocking(k ScheduleKind) Blocking {
	if k == ScheduleNone || k == ScheduleOnce {
		return BlockParallel
	}
	return BlockSerial
}

// LacksCalendar reports whether a version of a calendar could not be read.
func (s *ScheduleSpec) LacksCalendar() bool {
	return slices.ContainsFunc(s.Calendars, func(u CalendarUse) bool { return u.Content == nil })
}

// SlotLimit returns how many runs may hold the job's slot at once; 0 = no limit.
func (s *JobSpec) SlotLimit() int {
	if s.Blocking == BlockParallel {
		return s.Parallelism
	}
	return 1
}

// DefaultMaxWaiting applies when a job says nothing else. It is a quarter of an hour of
// a job each second, and far more than a job gathers that keeps up.
const DefaultMaxWaiting = 1000

// QueueLimit returns how many runs may wait for the job's slot when a fire comes.
func (s *JobSpec) QueueLimit() int64 {
	if s.MaxWaiting > 0 {
		return int64(s.MaxWaiting)
	}
	return DefaultMaxWaiting
}

// PileAt is from how many waiting runs on a job piles up. One waits if a run takes longer
// once, and two after a pause of the process. Three mean that the job has lost more than
// two intervals.
const PileAt = 3

// PilesUp reports whether runs of a job take longer than its interval: so many wait for
// its slot, which slots runs hold at once, and one of them took so long.
func PilesUp(waiting int64, slots int, took, interval time.Duration) bool {
	return waiting >= PileAt && slots > 0 && interval > 0 && took > time.Duration(slots)*interval
}

// MaybeAhead reports whether the job's runs may be offered ahead of their time:
// not where a run that finds the slot taken is dropped, or ends an earlier one,
// for that is decided when its time comes, nor where it is cut into shards then.
func (s *JobSpec) MaybeAhead() bool {
	return (s.Blocking == BlockSerial || s.Blocking == BlockParallel) && !s.Sharding.On()
}

// InputOf returns a run's own input, or else the job's.
func (s *JobSpec) InputOf(e *Execution) []byte {
	if e.Input != nil {
		return e.Input
	}
	return s.Input
}

// Retry says whether and when a failed attempt is tried again.
type Retry struct {
	// MaxAttempts counts the first one too; 0 and 1 mean no retry.
	MaxAttempts int
	Delay       time.Duration
	// Backoff multiplies the delay after each attempt; below 1 counts as 1.
	Backoff float64
	// MaxDelay bounds the wait. 0 = one hour.
	MaxDelay time.Duration
}

// DefaultRetry is what a job gets that says nothing else, whoever makes it.
var DefaultRetry = Retry{MaxAttempts: 1, Delay: 10 * time.Second, Backoff: 1, MaxDelay: 10 * time.Minute}

// Bound returns the retry with the default bound of its waits: never below the
// delay, which was asked for.
func (r Retry) Bound() Retry {
	r.MaxDelay = max(DefaultRetry.MaxDelay, r.Delay)
	return r
}

// Longest returns the bound of the waits.
func (r Retry) Longest() time.Duration {
	if r.MaxDelay > 0 {
		return r.MaxDelay
	}
	return time.Hour
}

// DelayAfter returns the wait after the attempt with this number (from 1):
// never negative, never above MaxDelay.
func (r Retry) DelayAfter(attempt int) time.Duration {
	limit := r.Longest()
	d := float64(r.Delay)
	for i := 1; i < attempt && r.Backoff > 1 && d < float64(limit); i++ {
		d *= r.Backoff
	}
	if d >= float64(limit) { // also where the product does not fit a Duration
		return limit
	}
	return max(time.Duration(d), 0)
}

// OnLost says what to do with an attempt whose outcome is unknown.
type OnLost string

const (
	OnLostAuto  OnLost = "auto" // retry if the handler is idempotent, else fail
	OnLostFail  OnLost = "fail" // never repeat it: at most one start
	OnLostRetry OnLost = "retry"
)

// Owner is who gets told.
type Owner struct {
	Name  string
	Email string
}

// Alert says what is told to the owner, and where.
type Alert struct {
	OnFailure         bool // failed for good, timed out, lost, never started
	IncludeNoExecutor bool // due, and no instance online
	Emails            []string
	WebhookURL        string
	// WebhookSecret is the sealed signing key (package secret); never shown.
	WebhookSecret []byte
}

// DefaultAlert is what a job has that says nothing else, whoever makes it.
var DefaultAlert = Alert{OnFailure: true, IncludeNoExecutor: true}

// Trigger is a job's schedule bound to its next fire time: the row that is
// claimed. NextFireAt is Never when nothing is planned.
type Trigger struct {
	JobID      JobID
	TenantID   TenantID
	Partition  int
	Executor   ExecutorID
	Revision   int64
	NextFireAt time.Time
	LastFireAt time.Time
}

// Never is the next fire time of a trigger that fires no more, or is paused.
// It is far enough in the future to sort last and still fits every date type.
var Never = time.UnixMilli(253402300799000).UTC() // 9999-12-31T23:59:59Z
