package domain

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// TimerID names a timer. It comes from the same source as the ids of runs.
type TimerID int64

func (id TimerID) String() string { return strconv.FormatInt(int64(id), 10) }

// TimerCancellationID names a TimerCancellation.
type TimerCancellationID int64

func (id TimerCancellationID) String() string { return strconv.FormatInt(int64(id), 10) }

// Timer is one run of a handler at one instant that an application asked for
// (docs/adr/0069). While it is pending it is a row of its own; shortly before its
// time it is claimed, and is a run like any other from then on.
type Timer struct {
	ID       TimerID
	TenantID TenantID
	// JobID is the job of kind timer of the executor and handler; all its runs
	// belong to that.
	JobID JobID
	// Partition is that of the node that claims it; the store chooses it.
	Partition int
	// FireAt is the instant asked for, in millisecond precision.
	FireAt time.Time
	// Key names it among the timers of its job; never empty (TimerKey).
	Key string
	// Input is the handler's input; nil = none.
	Input []byte
	// MaxAttempts and Timeout are as of a run, StartWithin is how long it may wait
	// for an instance; 0 = as the job says.
	MaxAttempts int
	Timeout     time.Duration
	StartWithin time.Duration
	Note        string
	RequestedBy string
	Trace       Trace
	// Labels are words to find it by, in the order of their text; none twice.
	Labels []string
	// RequestID is the sender's name of the request that has set it. It may be empty. A run
	// is remembered with it as long as its key is.
	RequestID string
}

// Bounds of timers.
const (
	MaxTimerKey      = 160 // characters; with the id it fits into an OccurrenceKey
	MaxTimerLabels   = 8
	MaxTimerLabel    = 64 // characters
	MaxTimerRequest  = 64 // characters
	MaxTimerBatch    = 10_000
	MaxTimerDistance = 10 * 366 * 24 * time.Hour
)

// CreatedAt is when it was asked for, by the clock of the node that was asked; of
// one that had a run already and was moved, when that was.
func (t *Timer) CreatedAt() time.Time { return IDTime(int64(t.ID)) }

// TimerKey is the key of a timer whose caller gave none.
func TimerKey(id TimerID) string { return id.String() }

// CheckTimerKey refuses what cannot be a key. location is the path in the request.
func CheckTimerKey(location, key string) error {
	switch {
	case key == "":
		return Invalid(location, "must not be empty")
	case !utf8.ValidString(key) || HasControl(key):
		return Invalid(location, "must be text without control characters")
	case strings.TrimSpace(key) != key: // MySQL compares without blanks at the end
		return Invalid(location, "must not begin or end with a blank")
	case utf8.RuneCountInString(key) > MaxTimerKey:
		return Invalid(location, "has %d characters and may have %d", utf8.RuneCountInString(key), MaxTimerKey)
	}
	return nil
}

// TimerPolicy says what happens when a timer is set whose key is in use.
type TimerPolicy uint8

const (
	// TimerKeep: the one that is there stays, and is the answer. That is also one
	// whose run has ended, unless it was cancelled: a request that is repeated,
	// because its answer was lost, makes no second timer.
	TimerKeep TimerPolicy = iota
	// TimerReplace: the new one takes the place of one that has not started, and
	// follows one that has ended. One that has started and not ended stays, and
	// the answer is CodeTimerStarted.
	TimerReplace
	// TimerReject: the answer is CodeTimerExists, unless it was cancelled.
	TimerReject
)

// ParseTimerPolicy reads a policy's name; an empty one is TimerKeep.
func ParseTimerPolicy(name string) (TimerPolicy, bool) {
	switch name {
	case "", "keep":
		return TimerKeep, true
	case "replace":
		return TimerReplace, true
	case "reject":
		return TimerReject, true
	}
	return 0, false
}

// TimerOutcome is what became of a request to set a timer.
type TimerOutcome uint8

const (
	TimerCreated  TimerOutcome = iota + 1
	TimerKept                  // the one that was there stays
	TimerReplaced              // one that was pending, or had not started, is gone
)

func (o TimerOutcome) String() string {
	return [...]string{"", "created", "kept", "replaced"}[o]
}

// TimerCancellation is a wish to cancel all timers of a job whose keys begin with
// KeyPrefix, or that have the Label: those that were set before it. It is driven
// on in steps by any node.
type TimerCancellation struct {
	ID        TimerCancellationID
	TenantID  TenantID
	JobID     JobID
	KeyPrefix string // exactly one of the two is set
	Label     string
	// Found counts the timers that had not ended, Cancelled those of them that this
	// cancelled: running handlers are asked to stop.
	Found, Cancelled int64
	CreatedBy        string
	CreatedAt        time.Time
	FinishedAt       time.Time // zero while it is not done
}

// Done reports whether nothing is left to be cancelled.
func (c *TimerCancellation) Done() bool { return !c.FinishedAt.IsZero() }

// timerPrefix begins the OccurrenceKey of a timer's run.
const timerPrefix = "timer:"

// TimerOccurrence is the OccurrenceKey of a timer's run. The id makes it unique;
// the key is in it so that the run says it.
func TimerOccurrence(id TimerID, key string) string { return timerPrefix + id.String() + ":" + key }

// SplitTimerOccurrence reads what TimerOccurrence has made; ok is false for the
// keys of all other runs.
func SplitTimerOccurrence(occurrence string) (id TimerID, key string, ok bool) {
	rest, ok := strings.CutPrefix(occurrence, timerPrefix)
	if !ok {
		return 0, "", false
	}
	text, key, ok := strings.Cut(rest, ":")
	n, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil || key == "" {
		return 0, "", false
	}
	return TimerID(n), key, true
}

// TimerRequestKey is the request key that leads to the newest run of a timer's key.
// Other requests for runs of its job have keys of other kinds.
func TimerRequestKey(key string) string { return timerPrefix + key }

// TimerMovable returns nil for a run that has not started: its timer may be moved, or
// replaced.
func TimerMovable(e *Execution) error {
	switch {
	case e.State.Terminal():
		return Errorf(CodeAlreadyFinished, "the run %s of the timer is %s already", e.ID, e.State)
	case e.begun() || e.State != Due && e.State != Offered:
		return Errorf(CodeTimerStarted, "the run %s of the timer has started", e.ID)
	}
	return nil
}

// Run is the run that a claimed timer becomes. Of the job, Revision and Executor are
// those that its trigger has now.
func (t *Timer) Run(id ExecutionID, now time.Time, trigger Trigger, spec *JobSpec) Execution {
	start := t.FireAt
	if start.Before(now) {
		start = now
	}
	wait := cmp.Or(t.StartWithin, spec.DispatchTimeout, DefaultDispatchTimeout)
	return Execution{
		ID: id, TenantID: t.TenantID, JobID: t.JobID, Revision: trigger.Revision, Executor: trigger.Executor, Partition: t.Partition,
		Cause: CauseTimer, Priority: spec.Priority, FireAt: t.FireAt, OccurrenceKey: TimerOccurrence(t.ID, t.Key), State: Due,
		Input: t.Input, Note: t.Note, RequestedBy: t.RequestedBy, Trace: t.Trace,
		MaxAttempts: cmp.Or(t.MaxAttempts, max(1, spec.Retry.MaxAttempts)), Timeout: t.Timeout,
		NotBefore: t.FireAt, PlannedAt: now, WakeAt: FirstWake(now, start), ExpireAt: start.Add(wait), LogLines: -1,
	}
}

// EndedRun is the run that a pending timer leaves which is to have none.
func (t *Timer) EndedRun(id ExecutionID, now time.Time, trigger Trigger, spec *JobSpec, state State, reason Reason, message string) Execution {
	e := t.Run(id, now, trigger, spec)
	e.State, e.Reason, e.Message = state, reason, message
	e.WakeAt, e.ExpireAt, e.FinishedAt = time.Time{}, time.Time{}, now
	return e
}

// TimerOf is the timer that a run was; of its labels a run knows nothing. ok is
// false for other runs.
func TimerOf(e *Execution) (t Timer, ok bool) {
	id, key, ok := SplitTimerOccurrence(e.OccurrenceKey)
	if !ok || e.Cause != CauseTimer {
		return t, false
	}
	return Timer{
		ID: id, TenantID: e.TenantID, JobID: e.JobID, Partition: e.Partition, FireAt: e.FireAt, Key: key, Input: e.Input,
		MaxAttempts: e.MaxAttempts, Timeout: e.Timeout, Note: e.Note, RequestedBy: e.RequestedBy, Trace: e.Trace,
	}, true
}
