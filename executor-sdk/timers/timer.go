package timers

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/callapi"
)

// None stands for no input.
type None = struct{}

// When is an instant: At or After.
type When struct {
	at    time.Time
	after time.Duration
	unset bool
}

// check refuses an instant that nobody has set.
func (w When) check() error {
	if w.unset {
		return errors.New("At: the instant is the zero time")
	}
	return nil
}

// At is the instant t, rounded up to milliseconds. One that has passed is now; the zero
// time, a field that nobody has set, is an error.
func At(t time.Time) When { return When{at: t, unset: t.IsZero()} }

// After is d from now: from when an admin node takes the timer, or with Tx from
// when it is written. Less than nothing is nothing.
func After(d time.Duration) When { return When{after: max(d, 0)} }

// read returns it as the API wants it.
func (w When) read() (at, after string) {
	if w.at.IsZero() {
		return "", (w.after + time.Millisecond - 1).Truncate(time.Millisecond).String()
	}
	return instantText(w.instant(time.Time{})), ""
}

func instantText(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

// instant is when it is, seen from now.
func (w When) instant(now time.Time) time.Time {
	if w.at.IsZero() {
		w.at = now.Add(w.after)
	}
	return w.at.UTC().Add(time.Millisecond - 1).Truncate(time.Millisecond)
}

// Timer is one run at one instant, as it stands.
type Timer struct {
	Executor, Handler, Key string
	FireAt                 time.Time
	// State is "pending", or where its run stands in the admin's words: due, offered,
	// running, retry_wait, succeeded, failed, cancelled, …
	State string
	// Outcome is what became of the request that set it; empty else.
	Outcome Outcome
	// Run is the run's id, as in the web UI; empty while there is none.
	Run string
	// Reason and Message say why it is in its state, when that does not say it, and
	// Error what the handler said of its failure.
	Reason, Message, Error string
	Input                  json.RawMessage
	Labels                 []string
	CreatedAt              time.Time
}

// Pending reports whether its run does not exist yet.
func (t *Timer) Pending() bool { return t.State == "pending" }

// hasEnded reports whether nothing will run any more of a timer in the state; empty: it
// is not known.
func hasEnded(state string) bool {
	return !slices.Contains([]string{"", "pending", "due", "offered", "running", "retry_wait", "cancelling"}, state)
}

func timerOf(t callapi.Timer) *Timer {
	out := &Timer{
		Executor: t.Executor, Handler: t.Handler, Key: t.Key, FireAt: t.FireAt, State: t.State, Outcome: Outcome(t.Outcome),
		Reason: t.Reason, Message: t.Message, Error: t.Error, Input: t.Input, Labels: t.Labels, CreatedAt: t.CreatedAt,
	}
	if t.Run != nil {
		out.Run = *t.Run
	}
	return out
}

// Outcome is what became of a request to set a timer, or to cancel one of many.
type Outcome string

// The outcomes.
const (
	Created    Outcome = "created"
	Kept       Outcome = "kept"       // the one with the key stays as it was
	Replaced   Outcome = "replaced"   // it took the place of the one with the key
	Written    Outcome = "written"    // Tx: into the table
	Cancelled  Outcome = "cancelled"  // now, or before
	Cancelling Outcome = "cancelling" // its handler runs, and was asked to stop
	moved      Outcome = "moved"      // of a row
)

// Policy says what happens when there is a timer with the key.
type Policy string

// The policies.
const (
	// Keep: the one that is there stays, and is the answer; also one that has fired,
	// for as long as the admin keeps ended timers (--timer-retention, 72 hours), so
	// that asking again does nothing. Nothing will run then: Outcome is Kept, and State
	// is how its run ended. Replace sets it anew. The key of a cancelled timer is free; while
	// its handler is still being stopped, the answer is ErrStarted.
	Keep Policy = "keep"
	// Replace: the new one takes its place, if it has not started (ErrStarted)
	// or has ended. A request that may have been heard is not repeated when its
	// timer is about to fire: that is an *UnconfirmedError.
	Replace Policy = "replace"
	// Reject: the answer is ErrExists. A request that may have been heard is not
	// repeated: that is an *UnconfirmedError.
	Reject Policy = "reject"
)

// Option shapes a timer.
type Option interface{ shape(r *request) }

type option func(*request)

func (o option) shape(r *request) { o(r) }

// request is what is asked, and how.
type request struct {
	callapi.TimerRequest
	when When
	own  bool        // the key is random
	tx   Transaction // none: the admin is asked
}

// Key names the timer among those of its handler, with at most 160 characters.
// Default: random.
func Key(key string) Option { return option(func(r *request) { r.Key = key }) }

// OnExisting says what happens when there is a timer with the key; default Keep.
func OnExisting(p Policy) Option { return option(func(r *request) { r.Policy = string(p) }) }

// Labels are words to find timers by and to cancel many at once: at most eight,
// of at most 64 characters.
func Labels(labels ...string) Option {
	return option(func(r *request) { r.Labels = append(r.Labels, labels...) })
}

// Attempts lets the run be tried up to n times when it fails; proxy.Attempts says
// what the handler has to say to it.
func Attempts(n int) Option { return option(func(r *request) { r.MaxAttempts = int64(n) }) }

// Timeout bounds each attempt, as proxy.Timeout does.
func Timeout(d time.Duration) Option {
	return option(func(r *request) { r.Timeout = d.String() })
}

// StartWithin is how long the run may wait for an instance, from its fire time on.
// Default: as the handler declares, else 5 minutes; then it ends as missed.
func StartWithin(d time.Duration) Option {
	return option(func(r *request) { r.StartWithin = d.String() })
}

// Note is shown beside the timer and its run.
func Note(text string) Option { return option(func(r *request) { r.Note = text }) }
