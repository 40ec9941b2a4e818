package executor

import (
	"context"
	"errors"
	"log/slog"

	"github.com/carillon-sched/carillon/executor-sdk/internal/logship"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/proto"
)

// run is the attempt that a handler's context belongs to. It is immutable.
type run struct {
	task  Task
	log   *logship.Writer
	level slog.Leveler
}

type runKey struct{}

func runFrom(ctx context.Context) *run {
	r, _ := ctx.Value(runKey{}).(*run)
	return r
}

// invoke runs the handler of an offer, in the attempt's own goroutine.
func (p *process) invoke(ctx context.Context, o *proto.Offer) runner.Return {
	r := &run{task: taskOf(o), level: p.config.LogLevel,
		log: p.logs.Open(o.GetExecutionId(), o.GetFence(), o.GetAttempt())}
	defer r.log.Close() // also when the handler ends its goroutine
	back := call(context.WithValue(ctx, runKey{}, r), p.handlers[o.GetHandler()], o.GetInput())
	back.LogLines = r.log.Close()
	return back
}

func call(ctx context.Context, h *handler, input []byte) (back runner.Return) {
	defer func() {
		if p := recover(); p != nil {
			back = runner.Panicked(p)
		}
	}()
	output, err := h.call(ctx, input)
	if err == nil {
		return runner.Return{Output: output}
	}
	back.Error = err.Error()
	if _, ok := errors.AsType[*badInputError](err); ok {
		back.Kind = runner.KindBadInput
		return back
	}
	back.Kind, back.RetryAfter = classify(err)
	return back
}
