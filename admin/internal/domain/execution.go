package domain

import (
	"cmp"
	"strings"
	"time"
)

// State is where an execution stands. The numbers are stored; never reuse one.
type State uint8

const (
	// Due: planned. Moved in by the scheduler (or by run now), by an offer
	// that came back, and by a retry whose time has come. Moved out by
	// dispatch. If nobody does, any node picks it up after its WakeAt.
	Due State = 1
	// Offered: sent to an instance, not accepted yet. Moved out by the answer,
	// or given back when ClaimUntil has passed.
	Offered State = 2
	// Running: granted; the handler may have started. Moved out by the result,
	// or by maintenance when the instance's lease ran out.
	Running State = 3
	// Cancelling: running, with a cancel on its way. Moved out like Running.
	Cancelling State = 4
	// RetryWait: an attempt ended badly and another one is allowed. Moved out
	// by dispatch at NotBefore.
	RetryWait State = 5

	// Terminal states.
	Succeeded State = 10
	Failed    State = 11
	TimedOut  State = 12
	Cancelled State = 13
	// Lost: its outcome is unknown. A result that comes late may still settle it.
	Lost State = 14
	// Missed: never offered, with the reason (misfire policy, no executor, paused).
	Missed State = 15
	// Discarded: never started, because the blocking strategy said so.
	Discarded State = 16
	// Excluded: a calendar of the job excludes its fire time, or maintenance does,
	// so it was never to run.
	Excluded State = 17
)

var stateNames = map[State]string{
	Due: "due", Offered: "offered", Running: "running", Cancelling: "cancelling", RetryWait: "retry_wait",
	Succeeded: "succeeded", Failed: "failed", TimedOut: "timed_out", Cancelled: "cancelled",
	Lost: "lost", Missed: "missed", Discarded: "discarded", Excluded: "excluded",
}

// States lists every state, live ones first.
var States = []State{Due, Offered, Running, Cancelling, RetryWait, Succeeded, Failed, TimedOut, Cancelled, Lost, Missed, Discarded, Excluded}

func (s State) String() string { return stateNames[s] }

// Terminal reports whether nothing but a late result can move the execution.
func (s State) Terminal() bool { return s >= Succeeded }

// OnInstance reports whether an instance may be working on it.
func (s State) OnInstance() bool { return s == Offered || s == Running || s == Cancelling }

// ParseState reads a state's name.
func ParseState(name string) (State, bool) {
	for s, n := range stateNames {
		if n == name {
			return s, true
		}
	}
	return 0, false
}

// Cause is why an execution exists. Stored as text.
type Cause string

const (
	CauseSchedule Cause = "schedule"
	CauseMisfire  Cause = "misfire" // runs now in place of fire times that passed
	CauseManual   Cause = "manual"  // a person pressed run now
	CauseAPI      Cause = "api"     // an API key asked for it
	CauseRetry    Cause = "retry"   // a person asked for a finished run again
	CauseParent   Cause = "parent"
	CauseBackfill Cause = "backfill" // somebody asked for a past range; FireAt is the logical date
	CauseTimer    Cause = "timer"    // a timer was set for it
	CauseImport   Cause = "import"   // it had ended before it came into the database (store.Imports)
)

// Reason is a stable code for why an execution is where it is. Empty when the
// state says it all.
type Reason string

const (
	ReasonMisfire        Reason = "misfire"              // fire time passed beyond the threshold
	ReasonMisfireWindow  Reason = "misfire_window"       // misfire policy all: older than its window
	ReasonMisfireCap     Reason = "misfire_cap"          // misfire policy all: more fire times passed than it makes up
	ReasonCoalesced      Reason = "coalesced"            // another run stands for it
	ReasonCalendar       Reason = "calendar"             // a calendar excludes the fire time
	ReasonOverlap        Reason = "overlap"              // discard later: the previous run still holds the slot
	ReasonQueueFull      Reason = "queue_full"           // as many runs as may wait for the job's slot do
	ReasonCovered        Reason = "covered"              // cover early: a later run of the job took its place
	ReasonNoExecutor     Reason = "no_executor"          // no instance could take it before the deadline
	ReasonPaused         Reason = "paused"               // the job was paused before it started
	ReasonDeleted        Reason = "deleted"              // the job was deleted before it started
	ReasonWaitSlot       Reason = "waiting_for_slot"     // serial: the previous run still holds the slot
	ReasonWaitLimit      Reason = "waiting_for_limit"    // the executor or the tenant runs as many as it may
	ReasonWaitInstance   Reason = "waiting_for_instance" // no instance online, or all are full
	ReasonMaintenance    Reason = "maintenance"          // waits until it is over; of an excluded run: it skips fire times
	ReasonOfferExpired   Reason = "offer_expired"
	ReasonOfferRefused   Reason = "offer_refused"
	ReasonSessionLost    Reason = "session_lost"
	ReasonSendFailed     Reason = "send_failed" // sent as often as the job allows, and no instance took it
	ReasonLeaseExpired   Reason = "lease_expired"
	ReasonProcessDied    Reason = "process_died"
	ReasonNotStarted     Reason = "not_started"      // its executor gave it back: the handler was not called
	ReasonStopped        Reason = "executor_stopped" // its process stopped, and the handler did not get done before that
	ReasonLeaseLost      Reason = "lease_lost"       // its executor heard no admin node until its lease was over, and stopped the handler
	ReasonStalled        Reason = "executor_stalled" // its process stood still for longer than its lease, and then stopped the handler
	ReasonRollback       Reason = "db_rollback"      // its end was lost with what the database had committed after it
	ReasonKilled         Reason = "killed"
	ReasonRescheduled    Reason = "rescheduled" // its timer was moved, or replaced, before it started
	ReasonTimeout        Reason = "timeout"
	ReasonCancelForced   Reason = "cancel_forced" // the handler did not answer the cancel
	ReasonHandlerFailed  Reason = "handler_failed"
	ReasonHandlerCancel  Reason = "handler_cancelled" // the handler itself said that the run is not to be done
	ReasonSnoozed        Reason = "snoozed"           // the handler asked for the run again later; no attempt was used up
	ReasonHandlerPanic   Reason = "handler_panic"
	ReasonPermanent      Reason = "permanent"
	ReasonBadInput       Reason = "bad_input"
	ReasonBigOutput      Reason = "output_too_large"
	ReasonUnknownHandler Reason = "unknown_handler"
	ReasonInstanceGone   Reason = "instance_gone"      // broadcast: the instance of the shard died or left before it ran there
	ReasonShards         Reason = "shards_failed"      // not all shards succeeded
	ReasonBeforeHook     Reason = "before_hook"        // the hook before the shards did not succeed
	ReasonAfterHook      Reason = "after_hook"         // the hook after the shards did not succeed
	ReasonManyInstances  Reason = "too_many_instances" // broadcast: more than MaxShards
	ReasonSetAside       Reason = "set_aside"          // its row, or what it needs, cannot be read or decided
)

// Execution is one planned run: unique per job, fire time and OccurrenceKey.
// Its settings are those of the job revision it names, for life.
//
// The fields of the current attempt stand in the execution itself; an attempt
// that is followed by another one is copied to an Attempt first (docs/adr/0003).
type Execution struct {
	ID        ExecutionID
	TenantID  TenantID
	JobID     JobID
	Revision  int64
	Executor  ExecutorID
	Partition int
	Cause     Cause
	// Priority is copied from the revision; see Precedence.
	Priority int
	// FireAt is the instant planned, in millisecond precision.
	FireAt time.Time
	// OccurrenceKey is empty for scheduled fires (so that one fire time has one
	// row) and the request's key for runs that somebody asked for (RequestKey).
	OccurrenceKey string

	State   State
	Reason  Reason
	Message string
	// Input is nil when the job revision's own input is used.
	Input       []byte
	Note        string
	RequestedBy string
	// Trace is the context of the span that created it, or what its caller gave.
	Trace Trace

	// Fence counts offers and only grows; writes with an older one are refused.
	Fence int64
	// Attempt is the number of the current attempt, 0 before the first grant.
	// MaxAttempts is copied from the revision, and grows by one with each attempt
	// that does not count: it was snoozed, its process stopped, or it was among
	// the first FreeLosses that were lost and may be repeated.
	Attempt     int
	MaxAttempts int
	// LostAttempts is how many attempts were lost and followed by another one.
	LostAttempts int
	// Timeout is what its caller allows one attempt to take, where that is less
	// than what the job does (TimeoutOf); 0 = the job's.
	Timeout time.Duration
	// NotBefore is the earliest instant of the next offer.
	NotBefore time.Time
	// WakeAt is when any node has to look at the execution if nothing has
	// happened to it; zero for terminal states, unless it lingers.
	WakeAt time.Time
	// ExpireAt is when waiting for an instance ends with Missed; zero = never.
	ExpireAt time.Time

	Node     NodeID
	Instance InstanceID
	// Idempotent is what the handler promised when the attempt was offered.
	Idempotent bool
	// HoldsSlot: this execution counts in its job's slot row.
	HoldsSlot bool
	// Lingers: it has ended, but its handler still runs, or may (finish.go).
	Lingers bool
	// ReturnedAt is when a run that lingered was known to run no more; zero for
	// all others, whose handlers ended at FinishedAt.
	ReturnedAt time.Time

	// Deadline is when maintenance gives up waiting for the executor to
	// enforce the timeout; zero = no timeout.
	Deadline time.Time

	PlannedAt  time.Time // when the row was written
	OfferedAt  time.Time
	GrantedAt  time.Time
	StartedAt  time.Time // the executor's clock
	FinishedAt time.Time // when the end was stored
	// Took is how long the handler ran, as its executor measured it; 0 = unknown.
	Took time.Duration

	Output    []byte
	ErrorKind string
	Error     string
	Stack     string
	// LogLines is the number of lines the attempt wrote; -1 while unknown.
	LogLines int64

	// Passed is what the choice of the instance left of the others.
	Passed Passed
	// Delays are what kept it from starting.
	Delays Delays

	// The fields of families (shard.go).

	// Parent is the run that it is a part of, as what Part says; 0 = none.
	Parent ExecutionID
	Part   Part
	// Shard counts from 0 to Shards-1. A parent has Shards too, once it has them.
	Shard, Shards int
	// Bound is the only instance that may take it; 0 = any.
	Bound InstanceID
	// Stage is where a parent stands; StageNone for all others.
	Stage Stage
	// Picks are the shards that a parent makes; empty = all.
	Picks []ShardPick
}

// TimeoutOf bounds one attempt of the run, of a job whose timeout is job: the
// shorter one of the two; 0 = nothing does.
func TimeoutOf(e *Execution, job time.Duration) time.Duration {
	if e.Timeout > 0 && (job == 0 || e.Timeout < job) {
		return e.Timeout
	}
	return job
}

// Attempt is one ended try of an execution on one instance, kept because
// another one followed.
type Attempt struct {
	TenantID    TenantID
	ExecutionID ExecutionID
	Number      int
	Fence       int64
	Instance    InstanceID
	State       State // Failed, TimedOut, Lost or Cancelled
	Reason      Reason
	OfferedAt   time.Time
	GrantedAt   time.Time
	StartedAt   time.Time
	FinishedAt  time.Time
	Output      []byte
	ErrorKind   string
	Error       string
	Stack       string
	LogLines    int64
}

// Attempts puts the current attempt behind the archived ones, which are in the order
// of their fences. An offer is none until it is taken, and what came back unbegun is
// none any more: neither has a number of its own.
func Attempts(e *Execution, archived []Attempt) []Attempt {
	last := 0
	if n := len(archived); n > 0 {
		last = archived[n-1].Number
	}
	if e.Attempt <= last || e.State == Offered || e.State == Due || e.State == RetryWait || e.GrantedAt.IsZero() {
		return archived
	}
	return append(archived, e.CurrentAttempt())
}

// CurrentAttempt returns what the execution knows of its current attempt.
func (e *Execution) CurrentAttempt() Attempt {
	return Attempt{
		TenantID: e.TenantID, ExecutionID: e.ID, Number: e.Attempt, Fence: e.Fence, Instance: e.Instance,
		State: e.State, Reason: e.Reason,
		OfferedAt: e.OfferedAt, GrantedAt: e.GrantedAt, StartedAt: e.StartedAt, FinishedAt: e.FinishedAt,
		Output: e.Output, ErrorKind: e.ErrorKind, Error: e.Error, Stack: e.Stack, LogLines: e.LogLines,
	}
}

// Duration is how long the handler of the current attempt ran: as its executor
// measured it, else until the end was stored. ok is false before that.
func (e *Execution) Duration() (d time.Duration, ok bool) {
	switch {
	case e.StartedAt.IsZero() || e.FinishedAt.IsZero():
		return 0, false
	case e.Took > 0:
		return e.Took, true
	}
	return max(0, e.FinishedAt.Sub(e.StartedAt)), true
}

// Lateness is how long the current attempt's handler started after the run was
// to start: after the fire time, or where jitter had put it off to.
// ok is false when it has not started, or when the fire time is a logical date
// only. Of a run with several attempts the row alone does not know the first.
func Lateness(e *Execution) (d time.Duration, ok bool) {
	if e.StartedAt.IsZero() || e.Cause == CauseBackfill {
		return 0, false
	}
	due := e.FireAt
	if at, ok := PutOff(e); ok {
		due = at
	}
	return e.StartedAt.Sub(due), true
}

// PutOff is when the first attempt of a scheduled run was to start; ok is false
// when that is its fire time. Later attempts are put off by what came before,
// and so are later offers: that is delay, nobody wanted it.
func PutOff(e *Execution) (at time.Time, ok bool) {
	first := e.Attempt == 0 || e.Attempt == 1 && e.State != RetryWait && e.State != Due
	return e.NotBefore, first && e.Cause == CauseSchedule && e.NotBefore.After(e.FireAt) && !e.Delays.givenBack()
}

// requestKeyPrefix begins the OccurrenceKey of a run that was asked for under
// a key of the caller's; bodyMark is in no key that we make.
const (
	requestKeyPrefix = "idem:"
	bodyMark         = "."
)

// RequestKey makes the OccurrenceKey of a run that was asked for under a key.
// key and body are digests, of the key and of what was asked for.
func RequestKey(key, body string) string { return requestKeyPrefix + key + bodyMark + body }

// SplitRequestKey returns what makes a request unique in its job, and the
// digest of what it asked for: empty for runs without a key of the caller's.
func SplitRequestKey(occurrence string) (unique, body string) {
	if !strings.HasPrefix(occurrence, requestKeyPrefix) {
		return occurrence, ""
	}
	unique, body, _ = strings.Cut(occurrence, bodyMark)
	return unique, body
}

// PriorityStep is what one point of priority is worth: a run is served as if it
// had been due this much earlier per point. So a run overtakes those of lower
// priority that have waited up to PriorityStep per point of difference, and
// nobody longer: with priorities from -100 to 100 nothing is overtaken for more
// than 200 s, however many urgent runs come.
const PriorityStep = time.Second

// Precedence is the instant by which runs of a tenant that wait for the same
// thing are ordered, earliest first. It never changes in a run's life.
func (e *Execution) Precedence() time.Time {
	return e.FireAt.Add(-time.Duration(e.Priority) * PriorityStep)
}

// ComparePrecedence orders runs that wait, for slices.SortFunc: by precedence,
// those alike by fire time and then by age.
func ComparePrecedence(a, b *Execution) int {
	return cmp.Or(a.Precedence().Compare(b.Precedence()), a.FireAt.Compare(b.FireAt), cmp.Compare(a.ID, b.ID))
}

// Progress is how far the newest attempt of a run is, as its handler says.
type Progress struct {
	ExecutionID ExecutionID
	Fence       int64
	Seq         int64 // grows with each report of an attempt
	Permille    int   // 0 to 1000
	Message     string
	UpdatedAt   time.Time
}

// Limits of the steps of one run; the wire has the same.
const (
	MaxStep       = 64 << 10 // bytes of one result
	MaxSteps      = 200
	MaxStepsBytes = 1 << 20 // all results together
)

// StoredStep is the result of a named part of a handler.
type StoredStep struct {
	Name     string
	Fence    int64 // of the attempt that stored it
	Output   []byte
	StoredAt time.Time
}
