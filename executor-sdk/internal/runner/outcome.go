package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/proto"
)

// outcome judges how an attempt ended. cause is why its context was cancelled,
// or nil. A handler that succeeded all the same has succeeded: that is what
// really happened.
//
// Only a kill makes an attempt cancelled. One that was interrupted because the
// lease was lost or the process stops has failed, and may be retried: nobody
// asked for its end. If it gave up because the process stops, that is told by
// its kind, and costs a run that may be repeated no attempt; what a handler says
// of its own accord counts at that moment as at any other. What it says after the
// lease was lost is told by a kind as well, so that nobody blames the handler; it
// is retried like any failure.
func outcome(r Return, cause error) (proto.Outcome, Return) {
	if r.Kind == "" && len(r.Output) > proto.MaxOutput {
		r.Kind = KindOutputTooLarge
		r.Error = fmt.Sprintf("output has %d bytes, the limit is %d", len(r.Output), proto.MaxOutput)
	}
	if r.Kind == "" {
		return proto.Outcome_OUTCOME_SUCCEEDED, r
	}
	r.Output = nil
	stopping := errors.Is(cause, ErrStopping)
	if (cause == nil || stopping) && r.Kind == KindCancelled {
		return proto.Outcome_OUTCOME_CANCELLED, r // the handler itself ends the run so
	}
	if cause == nil || r.Kind == KindPanic || r.Kind == KindBadInput {
		return proto.Outcome_OUTCOME_FAILED, r
	}
	switch {
	case errors.Is(cause, ErrKilled):
		r.Kind, r.Error, r.RetryAfter = KindCancelled, withCause(cause, r.Error), 0
		return proto.Outcome_OUTCOME_CANCELLED, r
	case errors.Is(cause, ErrTimeout):
		r.Kind, r.Error, r.RetryAfter = KindTimeout, withCause(cause, r.Error), 0
		return proto.Outcome_OUTCOME_TIMED_OUT, r
	}
	if r.Kind == KindRetryable {
		switch {
		case stopping && r.Interrupted:
			r.Kind = KindStopping
		case errors.Is(cause, errStalled):
			r.Kind = KindStalled
		case errors.Is(cause, ErrLeaseLost):
			r.Kind = KindLeaseLost
		}
	}
	r.Error = withCause(cause, r.Error)
	return proto.Outcome_OUTCOME_FAILED, r
}

// withCause puts the cause before what the handler said, unless the handler
// just passed it on.
func withCause(cause error, text string) string {
	switch {
	case text == "", text == context.Canceled.Error(), text == context.DeadlineExceeded.Error():
		return cause.Error()
	case strings.Contains(text, cause.Error()):
		return text
	}
	return cause.Error() + ": " + text
}

// message builds the frame for an attempt that ended so.
func (a *attempt) message(o proto.Outcome, r Return, now time.Time) *proto.Result {
	m := &proto.Result{
		ExecutionId: a.key.Execution, Fence: a.key.Fence, BootId: a.boot,
		Outcome: o, Output: r.Output, ErrorKind: r.Kind,
		Error: clip(r.Error), Stack: clip(r.Stack),
		RetryAfterMs: r.RetryAfter.Milliseconds(), LogLines: r.LogLines,
	}
	if !a.startedAt.IsZero() {
		m.StartedAtMs = a.startedAt.UnixMilli()
		m.DurationUs = now.Sub(a.startedAt).Microseconds()
	}
	return m
}

// clip cuts text to the wire's limit, and makes it UTF-8, which protobuf
// demands of strings.
func clip(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= proto.MaxErrorText {
		return text
	}
	note := fmt.Sprintf("… (%d bytes in all)", len(text))
	cut := proto.MaxErrorText - len(note)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + note
}
