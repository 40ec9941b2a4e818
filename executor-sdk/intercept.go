package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/carillon-sched/carillon/executor-sdk/internal/runner"
)

// Interceptor stands around every call of every handler: it may look at the
// task (TaskFrom), put values into the context, refuse the call by returning an
// error without calling next, and see how the call ended.
//
//	func timing(ctx context.Context, next executor.Next) error {
//		began := time.Now()
//		err := next(ctx)
//		slog.InfoContext(ctx, "handler ended", "handler", executor.TaskFrom(ctx).Handler,
//			"outcome", executor.KindOf(err), "took", time.Since(began))
//		return err
//	}
//
// It runs in the attempt's goroutine, once per attempt, before the input is
// decoded. A panic of the handler arrives as a *PanicError, so that no
// interceptor has to recover. What the outermost
// one returns is the attempt's end; an interceptor that turns an error into nil
// makes it a success without output.
type Interceptor func(ctx context.Context, next Next) error

// Next goes on to the next interceptor and at last to the handler. Call it at
// most once, and not after the interceptor has returned.
type Next func(ctx context.Context) error

// Use adds interceptors around those that were added before: the first one
// added is the outermost. Call it before Run; it panics afterwards.
func (ex *Executor) Use(list ...Interceptor) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if ex.process != nil {
		panic("carillon: Use: add interceptors before Run")
	}
	ex.interceptors = append(ex.interceptors, list...)
}

// InputFrom returns the JSON that the run's handler is called with; empty when
// there is none. It must not be changed.
func InputFrom(ctx context.Context) json.RawMessage {
	if r := runFrom(ctx); r != nil {
		return r.input
	}
	return nil
}

// PanicError is how interceptors see a handler that panicked.
type PanicError struct {
	Value any    // what it panicked with
	Stack string // of the goroutine, as runtime/debug.Stack gives it
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Kind is what an attempt's end means to the admin.
type Kind string

// The kinds. An attempt that was killed, timed out or was interrupted by the
// process's stop is told by the cause of its context: KindOf only knows the error.
const (
	KindSucceeded Kind = "succeeded"
	KindRetryable Kind = runner.KindRetryable // failed; another attempt may succeed
	KindPermanent Kind = runner.KindPermanent // failed for good
	KindSnoozed   Kind = runner.KindSnoozed   // wants to run again later; no failure
	KindCancelled Kind = runner.KindCancelled // the handler says that the run is not to be done
	KindPanic     Kind = runner.KindPanic
	KindBadInput  Kind = runner.KindBadInput // the input does not fit; the handler was not called
	// KindOutputTooLarge: the handler succeeded, and its output is over MaxResult.
	KindOutputTooLarge Kind = runner.KindOutputTooLarge
)

// KindOf says what an error that a handler returned means; nil has succeeded.
func KindOf(err error) Kind {
	if err == nil {
		return KindSucceeded
	}
	kind, _ := classify(err)
	return Kind(kind)
}

// chain puts the interceptors around a call.
func chain(list []Interceptor, call Next) Next {
	for i := len(list) - 1; i >= 0; i-- {
		around, next := list[i], call
		call = func(ctx context.Context) error { return around(ctx, next) }
	}
	return call
}

// guarded calls f and turns its panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{Value: p, Stack: string(debug.Stack())}
		}
	}()
	return f()
}

// asReturn is what an attempt's end looks like to the runner.
func asReturn(output []byte, err error) runner.Return {
	if err == nil {
		return runner.Return{Output: output}
	}
	back := runner.Return{Error: err.Error(), Interrupted: errors.Is(err, context.Canceled) || errors.Is(err, ErrStopping)}
	var p *PanicError
	if errors.As(err, &p) {
		back.Stack = p.Stack
	}
	back.Kind, back.RetryAfter = classify(err)
	return back
}
