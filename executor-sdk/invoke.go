package executor

import (
	"context"
	"log/slog"

	"github.com/carillon-sched/carillon/executor-sdk/internal/logship"
	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/proto"
)

// run is the attempt that a handler's context belongs to. It is immutable.
type run struct {
	task  Task
	input []byte
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
	r := &run{task: taskOf(o), input: o.GetInput(), level: p.config.LogLevel,
		log: p.logs.Open(o.GetExecutionId(), o.GetFence(), o.GetAttempt())}
	defer r.log.Close() // also when the handler ends its goroutine
	back := p.call(context.WithValue(ctx, runKey{}, r), p.handlers[o.GetHandler()], o.GetInput())
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
