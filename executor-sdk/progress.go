package executor

import (
	"context"
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/carillon-sched/carillon/proto"
)

// Progress tells how far the run is, in percent from 0 to 100, and in words:
// people see it live on the run's page. Call it as often as you like: the
// newest is sent a few times per second. It costs no round trip, and does
// nothing outside of a handler. message is cut to 1 KiB.
func Progress(ctx context.Context, percent float64, message string) {
	r := runFrom(ctx)
	if r == nil || math.IsNaN(percent) {
		return
	}
	r.mark.Set(int32(math.Round(max(0, min(percent, 100))*10)), clipText(message, proto.MaxProgressText))
}

// clipText makes text UTF-8 of at most limit bytes.
func clipText(text string, limit int) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if len(text) <= limit {
		return text
	}
	cut := limit - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// errOutside: a function that only works in a handler was called elsewhere.
var errOutside = errors.New("the context belongs to no run")

// Guard says why this attempt may not act any more, or nil: its run was
// killed, timed out or given to another instance, the lease is over, or the
// handler has returned. Call it before an effect that must not happen twice.
//
// It asks no one: it compares the clocks with the lease, so that also a process
// that was frozen knows at once. What is left is the time between the call and
// the effect; hand Task.Fence on to close that gap too, or use GuardStrict.
func Guard(ctx context.Context) error {
	r := runFrom(ctx)
	if r == nil {
		return errOutside
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.process.runner.Alive(r.task.ExecutionID, r.task.Fence)
}

// GuardStrict is Guard, and asks an admin node whether this attempt is the
// run's newest: one round trip, and no effect while no node can be reached.
func GuardStrict(ctx context.Context) error {
	if err := Guard(ctx); err != nil {
		return err
	}
	r := runFrom(ctx)
	ack, err := r.ask(ctx, &proto.Step{Action: proto.StepAction_STEP_ACTION_READ})
	if err != nil {
		return err
	}
	if ack.GetCode() != codeNone {
		return errGivenAway
	}
	return Guard(ctx) // the answer may have taken long
}
