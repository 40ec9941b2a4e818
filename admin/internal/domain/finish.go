package domain

import (
	"strings"
	"time"
	"unicode"
)

// Outcome is what an executor reports of an attempt.
type Outcome uint8

const (
	OutcomeSucceeded Outcome = iota + 1
	OutcomeFailed
	OutcomeTimedOut
	OutcomeCancelled
	// OutcomeNeverStarted: the executor's journal proves that the handler was not called.
	OutcomeNeverStarted
	// OutcomeUnknown: the process died while the handler may have been running.
	OutcomeUnknown
)

// Report is an executor's result for one attempt.
type Report struct {
	ExecutionID ExecutionID
	Fence       int64
	Outcome     Outcome
	Output      []byte
	ErrorKind   string // see proto Result.error_kind
	Error       string
	Stack       string
	RetryAfter  time.Duration
	StartedAt   time.Time // the executor's clock; zero when it never started
	// Took is how long the handler ran by that clock; 0 = unknown.
	Took     time.Duration
	LogLines int64
	// StillRunning: the handler ignores its cancelled context; another report
	// of the same attempt says when it has returned.
	StillRunning bool
}

// Finish applies an executor's report (arrows 5, 7, 8 and 10).
func (e *Execution) Finish(now time.Time, r Report, p Policy) (Effects, error) {
	return finish{e, now, r, p}.apply()
}

// finish is a report on its way into the row of its execution.
type finish struct {
	e   *Execution
	now time.Time
	r   Report
	p   Policy
}

func (f finish) apply() (Effects, error) {
	if f.r.Fence != f.e.Fence {
		return Effects{}, Errorf(CodeStaleFence, "run %s: a newer attempt exists", f.e.ID)
	}
	// A result that comes after the attempt was given up still counts, as
	// long as no newer attempt was offered.
	late := f.e.State == Lost || f.e.State == RetryWait && !f.e.reported()
	switch {
	case f.e.OnlyPartsMove():
		return Effects{}, f.e.illegal("take a report of it")
	case f.e.Lingers && f.r.StillRunning:
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s is %s already", f.e.ID, f.e.State)
	case f.e.Lingers:
		// Every other report proves that the handler does not run any more: it has
		// returned, has never started, or has died with its process.
		return f.e.returned(f.now), nil
	case f.r.StillRunning && f.r.ErrorKind == kindStopping:
		// The outcome is open until the handler returns or its process ends.
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s goes on until its process ends", f.e.ID)
	case f.r.Outcome == OutcomeNeverStarted && f.e.State == Cancelling:
		f.e.Attempt--
		return f.e.end(f.now, Cancelled, f.e.Reason, f.e.Message), nil
	case f.r.Outcome == OutcomeNeverStarted && (f.e.State == Offered || f.e.State == Running):
		if f.e.State == Running {
			f.e.Attempt--
		}
		f.e.backToDue(f.now, ReasonNotStarted, f.r.Error, 0)
		return Effects{}, nil
	case f.r.Outcome == OutcomeNeverStarted && late && !f.mustEnd():
		f.unlose()
		return Effects{}, nil
	case f.e.State == Running, f.e.State == Cancelling:
	case late && f.e.State == RetryWait && (f.r.Outcome == OutcomeCancelled || f.r.Outcome == OutcomeFailed && f.r.ErrorKind == kindLeaseLost):
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s goes on elsewhere", f.e.ID) // it was stopped because it was lost
	case late && f.r.Outcome != OutcomeUnknown && f.r.Outcome != OutcomeNeverStarted:
	case f.e.State.Terminal(), f.e.State == RetryWait:
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s is %s already", f.e.ID, f.e.State)
	default:
		return Effects{}, f.e.illegal("finish it")
	}
	if f.r.Outcome == OutcomeUnknown {
		return f.e.Lose(f.now, ReasonProcessDied, f.r.Error, f.p)
	}
	f.found()
	f.settle()
	if f.r.Outcome == OutcomeSucceeded {
		return f.e.end(f.now, Succeeded, "", ""), nil
	}
	fx := f.endBadly()
	if f.r.StillRunning {
		fx = f.e.linger(f.now, fx)
	}
	return fx, nil
}

// endBadly ends an attempt that did not succeed.
func (f finish) endBadly() Effects {
	switch {
	case f.r.Outcome == OutcomeTimedOut:
		return f.endOrRetry(TimedOut, ReasonTimeout)
	case f.r.Outcome == OutcomeCancelled && f.e.State == Cancelling:
		return f.e.end(f.now, Cancelled, f.e.Reason, f.e.Message)
	case f.r.Outcome == OutcomeCancelled && f.e.State == Running && f.r.ErrorKind == kindCancelled:
		return f.e.end(f.now, Cancelled, ReasonHandlerCancel, f.r.Error)
	case f.r.Outcome == OutcomeFailed && f.r.ErrorKind == kindSnoozed && !f.r.StillRunning:
		return f.snooze()
	case f.r.Outcome == OutcomeFailed && f.r.ErrorKind == kindStopping:
		return f.interrupted()
	}
	return f.endOrRetry(Failed, failureReason(f.r.ErrorKind))
}

// The error kinds that are no failures.
const (
	kindCancelled = "cancelled"
	kindSnoozed   = "snoozed"
	kindStopping  = "stopping"
	kindLeaseLost = "lease_lost"
)

// minSnooze keeps a handler from running in circles: it starts once in that
// time at most.
const minSnooze = time.Second

// snooze offers the run again later, without counting the attempt (as
// interrupted does). The archive keeps it, as one that was cancelled: it has not
// failed.
func (f finish) snooze() Effects {
	if f.e.State == Cancelling {
		return f.e.end(f.now, Cancelled, f.e.Reason, f.e.Message)
	}
	f.e.MaxAttempts++
	return f.e.retry(f.now, Cancelled, ReasonSnoozed, f.r.Error, max(f.r.RetryAfter, minSnooze), f.p)
}

// interrupted follows an attempt whose handler gave up because its process
// stops: nobody has failed, and its outcome is as unclear as that of a lost one.
// Where that may be repeated, the run goes on elsewhere at once, and may make
// one attempt more: the one that was interrupted keeps its number and does not
// count. Elsewhere it is a failure, which counts, so that nothing starts more
// often than its owner allows.
func (f finish) interrupted() Effects {
	switch {
	case f.e.State == Cancelling:
		return f.e.end(f.now, Cancelled, f.e.Reason, f.e.Message)
	case f.p.RetryLost && !f.mustEnd():
		f.e.MaxAttempts++
		delay := max(f.r.RetryAfter, minSnooze-f.now.Sub(f.e.GrantedAt), 0)
		return f.e.retry(f.now, Cancelled, ReasonStopped, f.r.Error, delay, f.p)
	case f.e.Attempt >= f.e.MaxAttempts && !f.p.RetryLost:
		f.r.Error += "; the job does not allow to repeat what had begun (onLost)"
	}
	return f.endOrRetry(Failed, ReasonStopped)
}

// counted is how many of the attempts up to the current one count: retries go by
// it.
func (p Policy) counted(e *Execution) int {
	free := e.MaxAttempts - max(1, p.Retry.MaxAttempts)
	return e.Attempt - max(0, free)
}

// mustEnd reports whether no further attempt may follow: somebody wants the run
// to stop, or it is a part that was lost and is told late: its parent counts on
// its end.
func (f finish) mustEnd() bool {
	return f.e.State == Cancelling || f.e.State == Lost && f.e.IsPart()
}

// reported tells whether an executor's report of the current attempt was
// applied: until then the number of log lines is unknown. (The reason cannot
// tell: it changes while the execution waits for its next instance.)
func (e *Execution) reported() bool { return e.LogLines >= 0 }

// settle copies what the executor told about the attempt.
func (f finish) settle() {
	f.e.Output, f.e.ErrorKind, f.e.Error, f.e.Stack, f.e.LogLines = f.r.Output, f.r.ErrorKind, f.r.Error, f.r.Stack, max(f.r.LogLines, 0)
	f.e.FinishedAt = f.now
	if !f.r.StartedAt.IsZero() {
		room := f.now.Sub(f.e.GrantedAt)
		f.e.Took = min(max(f.r.Took, 0), room+time.Millisecond) // the database's clock counts milliseconds
		f.e.StartedAt = clampTime(f.r.StartedAt, f.e.GrantedAt, f.now.Add(-min(f.e.Took, room)))
	}
}

// clampTime bounds an executor's clock by what must be true: the handler
// started after the grant was committed and before its report arrived.
func clampTime(t, low, high time.Time) time.Time {
	if t.Before(low) {
		return low
	}
	if t.After(high) {
		return high
	}
	return t
}

func failureReason(kind string) Reason {
	switch kind {
	case "panic":
		return ReasonHandlerPanic
	case "permanent":
		return ReasonPermanent
	case "bad_input":
		return ReasonBadInput
	case "unknown_handler":
		return ReasonUnknownHandler
	case "output_too_large":
		return ReasonBigOutput
	case kindStopping:
		return ReasonStopped
	case kindLeaseLost:
		return ReasonLeaseLost
	case "stalled":
		return ReasonStalled
	default:
		return ReasonHandlerFailed
	}
}

// retryable reports whether another attempt could end differently.
func retryable(kind string) bool {
	switch kind {
	case "permanent", "bad_input", "unknown_handler", "output_too_large":
		return false
	}
	return true
}

func (f finish) endOrRetry(end State, reason Reason) Effects {
	if f.mustEnd() || f.e.Attempt >= f.e.MaxAttempts || !retryable(f.r.ErrorKind) || f.r.StillRunning {
		return f.e.end(f.now, end, reason, f.r.Error)
	}
	delay := f.p.Retry.DelayAfter(f.p.counted(f.e))
	if f.r.RetryAfter > 0 {
		delay = f.r.RetryAfter
	}
	return f.e.retry(f.now, end, reason, f.r.Error, delay, f.p)
}

// end makes the execution terminal.
func (e *Execution) end(now time.Time, s State, reason Reason, message string) Effects {
	fx := Effects{ReleaseSlot: e.HoldsSlot}
	e.State, e.Reason, e.Message = s, reason, message
	e.HoldsSlot = false
	e.WakeAt, e.Deadline = time.Time{}, time.Time{}
	if e.FinishedAt.IsZero() {
		e.FinishedAt = now
	}
	switch s {
	case Failed:
		fx.Alert = AlertRunFailed
	case TimedOut:
		fx.Alert = AlertRunTimedOut
	case Lost:
		fx.Alert = AlertRunLost
	case Missed:
		if toldAsMissed(reason) {
			fx.Alert = AlertRunMissed
		}
	}
	return fx
}

// retry archives the attempt and waits for the next one.
func (e *Execution) retry(now time.Time, ended State, reason Reason, message string, delay time.Duration, p Policy) Effects {
	archived := e.CurrentAttempt()
	archived.State, archived.Reason = ended, reason
	fx := Effects{Archive: &archived, ReleaseSlot: e.HoldsSlot}
	e.State, e.Reason, e.Message = RetryWait, reason, message
	e.HoldsSlot = false
	e.NotBefore = now.Add(delay)
	e.WakeAt = p.retryCheck(e, now)
	e.Deadline = time.Time{}
	// The wait for an instance counts anew for each attempt.
	if !e.ExpireAt.IsZero() {
		e.ExpireAt = p.waitEnd(e.NotBefore)
	}
	return fx
}

// A run lingers when it has ended and its handler still runs: the handler
// ignores that its context was cancelled, or nobody has heard of its end. The
// outcome stands, but what the run holds (the slot of its job, its place under
// limits) stays with it: giving it away would let the next run start beside the
// handler that still runs.
//
//	running, cancelling ── result: still running ──▶ ended, lingers ──▶ ended
//	          └─────────── deadline passed ─────────▶     │
//	                                                      ├ result of the same fence: the handler has returned
//	                                                      └ lease over: the process is dead, or has given up

// linger lets the run that fx has just ended keep what it held. Somebody looks
// at it at the lease's end, like at a running one.
func (e *Execution) linger(now time.Time, fx Effects) Effects {
	e.Lingers, e.HoldsSlot = true, fx.ReleaseSlot
	e.WakeAt = now.Add(LeaseTTL + LeaseMargin)
	fx.ReleaseSlot = false
	return fx
}

// returned ends the lingering: the handler is known to run no more. State,
// reason and outcome stay.
func (e *Execution) returned(now time.Time) Effects {
	fx := Effects{ReleaseSlot: e.HoldsSlot}
	e.Lingers, e.HoldsSlot = false, false
	e.ReturnedAt, e.WakeAt = now, time.Time{}
	return fx
}

// lingering looks at an execution that lingers. It ends the lingering when the
// instance is dead, by the same rule by which a running attempt is lost. A run that the admin ended by itself
// gets its cancel again and again: an instance that has never seen the attempt
// says so in answer to that.
func (s sweep) lingering() (SweepAction, Effects, error) {
	over := s.leaseUntil.Add(LeaseMargin)
	if s.now.After(over) {
		return SweepNothing, s.e.returned(s.now), nil
	}
	s.e.WakeAt = over
	if s.e.reported() {
		return SweepNothing, Effects{}, nil
	}
	if again := s.now.Add(StartResend); again.Before(over) {
		s.e.WakeAt = again
	}
	return SweepCancel, Effects{}, nil
}

// OccupiesInstance reports whether a handler of the execution runs on an
// instance, or may be about to: what counts under limits. Of a family the parts
// do.
func (e *Execution) OccupiesInstance() bool {
	return (e.State.OnInstance() || e.Lingers) && !e.OnlyPartsMove()
}

// maxErrorLine is how many characters ErrorLine has at most.
const maxErrorLine = 200

// ShortErrorBytes bounds ShortError.
const ShortErrorBytes = 200

// ShortError is ErrorLine for lists that hold many errors.
func ShortError(text string) string { return cutText(ErrorLine(text), ShortErrorBytes) }

// ErrorLine is the first line of an error's text that says anything, for lists and
// sentences. It is clipped, and has no control characters.
func ErrorLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(line, "\uFFFD")))
		if line == "" {
			continue
		}
		if runes := []rune(line); len(runes) > maxErrorLine {
			return string(runes[:maxErrorLine-1]) + "…"
		}
		return line
	}
	return ""
}
