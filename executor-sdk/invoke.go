package executor

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/carillon-sched/carillon/executor-sdk/internal/logship"
	"github.com/carillon-sched/carillon/executor-sdk/internal/progress"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/proto"
)

// run is the attempt that a handler's context belongs to.
type run struct {
	// Fixed after construction.
	task    Task
	input   []byte
	log     *logship.Writer
	level   slog.Leveler
	process *process
	mark    *progress.Attempt
	// traceOf is Config.TraceID; nil = none.
	traceOf func(context.Context) string
	trace   string // of the trigger; empty = none

	mu    sync.Mutex
	steps map[string]bool // guarded by mu: names that this attempt has used
}

// traceIn returns the trace id of the span in ctx, or "".
func (r *run) traceIn(ctx context.Context) string {
	if r.traceOf == nil {
		return ""
	}
	return r.traceOf(ctx)
}

// traceOfParent returns the trace id in a traceparent, which the W3C writes as
// version "-" trace id "-" span id "-" flags.
func traceOfParent(traceparent string) string {
	if parts := strings.Split(traceparent, "-"); len(parts) >= 4 {
		return parts[1]
	}
	return ""
}

type runKey struct{}

func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// invoke runs the handler of an offer, in the attempt's own goroutine.
func (p *process) invoke(ctx context.Context, o *proto.Offer) runner.Return {
	h := p.handlers[o.GetHandler()]
	r := &run{task: taskOf(o), input: o.GetInput(),
		level: p.config.LogLevel, traceOf: p.config.TraceID, trace: traceOfParent(o.GetTraceparent()),
		process: p, log: p.logs.Open(o.GetExecutionId(), o.GetFence(), o.GetAttempt()),
		mark: p.reporter.Open(o.GetExecutionId(), o.GetFence())}
	var ofJob slog.Level
	if h.logLevel != nil {
		r.level = h.logLevel
	}
	if ofJob.UnmarshalText([]byte(o.GetLogLevel())) == nil {
		r.level = ofJob
	}
	defer r.log.Close() // also when the handler ends its goroutine
	defer r.mark.Close()
	back := p.call(context.WithValue(ctx, runKey{}, r), h, o.GetInput())
	back.LogLines = r.log.Close()
	return back
}

// call goes through the interceptors to the handler.
func (p *process) call(ctx context.Context, h *handler, input []byte) runner.Return {
	var output []byte
	next := chain(p.interceptors, func(ctx context.Context) error {
		return guarded(func() (err error) {
			output, err = h.call(ctx, input)
			return err
		})
	})
	err := guarded(func() error { return next(ctx) })
	return asReturn(output, err)
}
