package executor

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
	"github.com/carillon-sched/carillon/executor-sdk/internal/schema"
	"github.com/carillon-sched/carillon/proto"
)

// handler is one registered function. It is fixed once Handle returned.
type handler struct {
	name, description string
	idempotent        bool
	weight            int           // slots that a run takes, from 1
	logLevel          slog.Leveler  // nil = Config.LogLevel
	maxResult         int           // bytes of output, from 1
	killGrace         time.Duration // 0 = Config.KillGrace
	hasKillGrace      bool
	stuck             StuckPolicy
	in, out           *schema.Type
	own               *job   // declared by the options beside the handler; nil = none
	jobs              []*job // declared by Job, and own
	declared          []*proto.JobDeclaration
	// call decodes the input, runs the function and encodes the output.
	call func(ctx context.Context, input []byte) ([]byte, error)
}

// ownJob returns the job that options given to Handle directly describe.
func (h *handler) ownJob() *job {
	if h.own == nil {
		h.own = &job{name: h.name}
		h.jobs = append(h.jobs, h.own)
	}
	return h.own
}

// Handle registers fn as the handler called name. Its input is decoded from
// JSON into In, strictly: an unknown field, a wrong type or a missing
// `required:"true"` field fails the run before fn sees it, and says where.
// What fn returns is encoded to JSON. The schemas of both types go to the
// admin, which makes forms of them and checks inputs early.
//
// Fields take json tags and also doc:"text", required:"true" and enum:"a,b".
// A time.Duration may be written "1h30m". Use struct{}, or HandleIn, HandleOut
// and HandleFunc, for no input or no output.
//
// fn has to end soon after its context does. It may be called from many
// goroutines at once. If it panics the attempt fails, with the stack.
//
// Handle panics when name is taken or unfit, when In or Out cannot be JSON,
// when an option makes no sense, and when Run was called already.
func Handle[In, Out any](ex *Executor, name string, fn func(ctx context.Context, in In) (Out, error), opts ...HandlerOption) {
	h := &handler{name: name, weight: 1, maxResult: proto.MaxOutput}
	var err error
	if h.in, err = schema.Of(reflect.TypeFor[In]()); err != nil {
		panic(fmt.Sprintf("carillon: handler %q: input %v", name, err))
	}
	if h.out, err = schema.Of(reflect.TypeFor[Out]()); err != nil {
		panic(fmt.Sprintf("carillon: handler %q: output %v", name, err))
	}
	silent := h.out.Empty()
	h.call = func(ctx context.Context, input []byte) ([]byte, error) {
		var in In
		if err := h.in.Decode(input, &in); err != nil {
			return nil, &badInputError{err}
		}
		out, err := fn(ctx, in)
		if err != nil || silent {
			return nil, err
		}
		encoded, err := proto.EncodeJSON(out)
		if err != nil {
			return nil, Permanent(fmt.Errorf("encode output: %w", err))
		}
		if len(encoded) > h.maxResult {
			return nil, &outputTooLargeError{len(encoded), h.maxResult}
		}
		return encoded, nil
	}
	ex.register(h, opts)
}

// HandleIn registers a handler without output.
func HandleIn[In any](ex *Executor, name string, fn func(ctx context.Context, in In) error, opts ...HandlerOption) {
	Handle(ex, name, func(ctx context.Context, in In) (struct{}, error) {
		return struct{}{}, fn(ctx, in)
	}, opts...)
}

// HandleOut registers a handler without input.
func HandleOut[Out any](ex *Executor, name string, fn func(ctx context.Context) (Out, error), opts ...HandlerOption) {
	Handle(ex, name, func(ctx context.Context, _ struct{}) (Out, error) {
		return fn(ctx)
	}, opts...)
}

// HandleFunc registers a handler without input and output.
func HandleFunc(ex *Executor, name string, fn func(ctx context.Context) error, opts ...HandlerOption) {
	Handle(ex, name, func(ctx context.Context, _ struct{}) (struct{}, error) {
		return struct{}{}, fn(ctx)
	}, opts...)
}

// badInputError says that the input never reached the handler.
type badInputError struct{ err error }

func (e *badInputError) Error() string { return "input: " + e.err.Error() }
func (e *badInputError) Unwrap() error { return e.err }

// outputTooLargeError says that the handler succeeded, and its output has no
// room: calling it again would not help.
type outputTooLargeError struct{ size, limit int }

func (e *outputTooLargeError) Error() string {
	return fmt.Sprintf("output has %d bytes, the limit is %d", e.size, e.limit)
}

// register applies the options and adds h to the catalogue.
func (ex *Executor) register(h *handler, opts []HandlerOption) {
	if err := checkName(h.name); err != nil {
		panic(fmt.Sprintf("carillon: handler name %q: %v", h.name, err))
	}
	for _, o := range opts {
		o.applyHandler(h)
	}
	if h.weight < 1 || h.weight > runner.MaxSlots {
		panic(fmt.Sprintf("carillon: handler %q: Weight must be from 1 to %d", h.name, runner.MaxSlots))
	}
	if err := h.checkLimits(); err != nil {
		panic(fmt.Sprintf("carillon: handler %q: %v", h.name, err))
	}
	for _, j := range h.jobs {
		d, err := j.declaration(h.in)
		if err != nil {
			panic(fmt.Sprintf("carillon: handler %q: %v", h.name, err))
		}
		h.declared = append(h.declared, d)
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	switch {
	case ex.process != nil:
		panic(fmt.Sprintf("carillon: handler %q: register before Run", h.name))
	case ex.handlers[h.name] != nil:
		panic(fmt.Sprintf("carillon: handler %q is registered twice", h.name))
	case len(ex.handlers) == proto.MaxHandlers:
		panic(fmt.Sprintf("carillon: more than %d handlers", proto.MaxHandlers))
	}
	for _, d := range h.declared {
		if other := ex.jobNames[d.GetName()]; other != "" {
			panic(fmt.Sprintf("carillon: handler %q: job %q is declared by handler %q already", h.name, d.GetName(), other))
		}
		ex.jobNames[d.GetName()] = h.name
	}
	ex.handlers[h.name] = h
	ex.order = append(ex.order, h)
}

// message is h as the catalogue of Register has it.
func (h *handler) message() *proto.Handler {
	weight := int32(h.weight)
	if weight == 1 {
		weight = 0 // the default
	}
	return &proto.Handler{
		Name: h.name, Description: h.description, Idempotent: h.idempotent,
		InputSchema: h.in.Input(), OutputSchema: h.out.Output(),
		Jobs: h.declared, Weight: weight, Calls: h.calls(),
	}
}
