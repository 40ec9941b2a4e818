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
	if r.Fence != e.Fence {
		return Effects{}, Errorf(CodeStaleFence, "run %s: a newer attempt exists", e.ID)
	}
	// A result that comes after the attempt was given up still counts, as
	// long as no newer attempt was offered.
	late := e.State == Lost || e.State == RetryWait && !e.reported()
	switch {
	case e.OnlyPartsMove():
		return Effects{}, e.illegal("take a report of it")
	case e.Lingers:
		return e.hearsOf(now, r)
	case r.StillRunning && r.ErrorKind == kindStopping:
		// The outcome is open until the handler returns or its process ends.
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s goes on until its process ends", e.ID)
	case r.Outcome == OutcomeNeverStarted && e.State == Cancelling:
		e.Attempt--
		return e.end(now, Cancelled, e.Reason, e.Message), nil
	case r.Outcome == OutcomeNeverStarted && (e.State == Offered || e.State == Running):
		if e.State == Running {
			e.Attempt--
		}
		e.backToDue(now, ReasonNotStarted, r.Error, 0)
		return Effects{}, nil
	case r.Outcome == OutcomeNeverStarted && late && !e.mustEnd():
		e.unlose(now, r.Error)
		return Effects{}, nil
	case e.State == Running, e.State == Cancelling:
	case late && e.State == RetryWait && (r.Outcome == OutcomeCancelled || r.Outcome == OutcomeFailed && r.ErrorKind == kindLeaseLost):
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s goes on elsewhere", e.ID) // it was stopped because it was lost
	case late && r.Outcome != OutcomeUnknown && r.Outcome != OutcomeNeverStarted:
	case e.State.Terminal(), e.State == RetryWait:
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s is %s already", e.ID, e.State)
	default:
		return Effects{}, e.illegal("finish it")
	}
	if r.Outcome == OutcomeUnknown {
		return e.Lose(now, ReasonProcessDied, r.Error, p)
	}
	e.found()
	e.settle(now, r)
	if r.Outcome == OutcomeSucceeded {
		return e.end(now, Succeeded, "", ""), nil
	}
	fx := e.endBadly(now, r, p)
	if r.StillRunning {
		fx = e.linger(now, fx)
	}
	return fx, nil
}

// endBadly ends an attempt that did not succeed.
func (e *Execution) endBadly(now time.Time, r Report, p Policy) Effects {
	switch {
	case r.Outcome == OutcomeTimedOut:
		return e.endOrRetry(now, TimedOut, ReasonTimeout, r, p)
	case r.Outcome == OutcomeCancelled && e.State == Cancelling:
		return e.end(now, Cancelled, e.Reason, e.Message)
	case r.Outcome == OutcomeCancelled && e.State == Running && r.ErrorKind == kindCancelled:
		return e.end(now, Cancelled, ReasonHandlerCancel, r.Error)
	case r.Outcome == OutcomeFailed && r.ErrorKind == kindSnoozed && !r.StillRunning:
		return e.snooze(now, r, p)
	case r.Outcome == OutcomeFailed && r.ErrorKind == kindStopping:
		return e.interrupted(now, r, p)
	}
	return e.endOrRetry(now, Failed, failureReason(r.ErrorKind), r, p)
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
func (e *Execution) snooze(now time.Time, r Report, p Policy) Effects {
	if e.State == Cancelling {
		return e.end(now, Cancelled, e.Reason, e.Message)
	}
	e.MaxAttempts++
	return e.retry(now, Cancelled, ReasonSnoozed, r.Error, max(r.RetryAfter, minSnooze), p)
}

// interrupted follows an attempt whose handler gave up because its process
// stops: nobody has failed, and its outcome is as unclear as that of a lost one.
// Where that may be repeated, the run goes on elsewhere at once, and may make
// one attempt more: the one that was interrupted keeps its number and does not
// count. Elsewhere it is a failure, which counts, so that nothing starts more
// often than its owner allows.
func (e *Execution) interrupted(now time.Time, r Report, p Policy) Effects {
	switch {
	case e.State == Cancelling:
		return e.end(now, Cancelled, e.Reason, e.Message)
	case p.RetryLost && !e.mustEnd():
		e.MaxAttempts++
		delay := max(r.RetryAfter, minSnooze-now.Sub(e.GrantedAt), 0)
		return e.retry(now, Cancelled, ReasonStopped, r.Error, delay, p)
	case e.Attempt >= e.MaxAttempts && !p.RetryLost:
		r.Error += "; the job does not allow to repeat what had begun (onLost)"
	}
	return e.endOrRetry(now, Failed, ReasonStopped, r, p)
}

// counted is how many of the attempts up to the current one count: retries go by
// it.
func (e *Execution) counted(p Policy) int {
	free := e.MaxAttempts - max(1, p.Retry.MaxAttempts)
	return e.Attempt - max(0, free)
}

// mustEnd reports whether no further attempt may follow: somebody wants the run
// to stop, or it is a part that was lost and is told late: its parent counts on
// its end.
func (e *Execution) mustEnd() bool {
	return e.State == Cancelling || e.State == Lost && e.IsPart()
}

// reported tells whether an executor's report of the current attempt was
// applied: until then the number of log lines is unknown. (The reason cannot
// tell: it changes while the execution waits for its next instance.)
func (e *Execution) reported() bool { return e.LogLines >= 0 }

// settle copies what the executor told about the attempt.
func (e *Execution) settle(now time.Time, r Report) {
	e.Output, e.ErrorKind, e.Error, e.Stack, e.LogLines = r.Output, r.ErrorKind, r.Error, r.Stack, max(r.LogLines, 0)
	e.FinishedAt = now
	if !r.StartedAt.IsZero() {
		room := now.Sub(e.GrantedAt)
		e.Took = min(max(r.Took, 0), room+time.Millisecond) // the database's clock counts milliseconds
		e.StartedAt = clampTime(r.StartedAt, e.GrantedAt, now.Add(-min(e.Took, room)))
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

func (e *Execution) endOrRetry(now time.Time, end State, reason Reason, r Report, p Policy) Effects {
	if e.mustEnd() || e.Attempt >= e.MaxAttempts || !retryable(r.ErrorKind) || r.StillRunning {
		return e.end(now, end, reason, r.Error)
	}
	delay := p.Retry.DelayAfter(e.counted(p))
	if r.RetryAfter > 0 {
		delay = r.RetryAfter
	}
	return e.retry(now, end, reason, r.Error, delay, p)
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
	e.WakeAt = e.retryCheck(now, p)
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

// hearsOf applies a report to a run that lingers. Every report but one that
// the handler still runs proves that it does not: it has returned, has never
// started, or has died with its process.
func (e *Execution) hearsOf(now time.Time, r Report) (Effects, error) {
	if r.StillRunning {
		return Effects{}, Errorf(CodeAlreadyFinished, "run %s is %s already", e.ID, e.State)
	}
	return e.returned(now), nil
}

// sweepLingering ends the lingering when the instance is dead, by the same
// rule by which a running attempt is lost. A run that the admin ended by itself
// gets its cancel again and again: an instance that has never seen the attempt
// says so in answer to that.
func (e *Execution) sweepLingering(now, leaseUntil time.Time) (SweepAction, Effects) {
	over := leaseUntil.Add(LeaseMargin)
	if now.After(over) {
		return SweepNothing, e.returned(now)
	}
	e.WakeAt = over
	if e.reported() {
		return SweepNothing, Effects{}
	}
	if again := now.Add(StartResend); again.Before(over) {
		e.WakeAt = again
	}
	return SweepCancel, Effects{}
}

// OccupiesInstance reports whether a handler of the execution runs on an
// instance, or may be about to: what counts under limits. Of a family the parts
// do.
func (e *Execution) OccupiesInstance() bool {
	return (e.State.OnInstance() || e.Lingers) && !e.OnlyPartsMove()
}

// maxErrorLine is how many characters ErrorLine has at most.
const maxErrorLine = 200

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
