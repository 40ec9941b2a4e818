// Package executor runs functions of your application when Carillon says so.
//
// An application makes an Executor, registers its functions as handlers, and
// runs it beside its other work:
//
//	ex, err := executor.New(executor.Config{Name: "shop"})
//	…
//	executor.Handle(ex, "close-day", closeDay,
//		executor.Cron("0 0 2 * * *"), executor.Zone("Asia/Shanghai"))
//	err = ex.Run(ctx)
//
// The executor dials out to every admin node, so the application opens no
// port. It registers its handlers with the JSON schemas of their inputs, takes
// what the admin offers while it has slots free, and reports results until
// they are stored.
//
// # What is promised
//
// A run of an ordinary handler is started at most once per attempt: the
// executor writes to its journal before it accepts and before it starts. If
// the process dies in the middle, nobody guesses: the run is reported as lost,
// or retried if its job says so. A handler registered with Idempotent skips
// the two steps and is retried freely.
//
// A result is written to the journal before it is sent and kept until an
// admin node has stored it, through lost connections and restarts.
//
// No function can be stopped from outside in Go: cancelling means that the
// handler's context ends, with the reason in context.Cause. A handler that
// ignores it keeps its slot, and the admin says so.
//
// # In the handler
//
// TaskFrom tells about the run, Logger writes to its log, which people read in
// the web UI while it grows, and LogHandler captures slog.InfoContext and its
// kin. Progress shows people how far it is.
//
// Step keeps the result of a part, so that a retry does not do it again; Guard
// says whether the attempt may still act. For effects in the application's own
// database there is package once.
//
// What a returned error means: a plain one fails the attempt, and the job's
// retries decide. Permanent is not retried, RetryAfter says when to, Snooze
// asks for the run again without using up an attempt, and Cancelled ends the
// run as one that is not to be done any more.
//
// # Around the handler
//
// MaxResult caps what a handler gives; KillGrace and Stuck say what to do about
// a run that ignores its cancel.
//
// Use puts interceptors around all handlers: measuring, tracing, checking who
// may run what (package auth). HandleEnd registers callbacks, which follow the
// end of a run. Package proxy calls handlers from other programs, and package
// executortest runs them in go test.
package executor
