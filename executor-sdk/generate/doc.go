// Package generate turns marker comments into registration code: it answers
// "which methods of this package are handlers, and when do they run?".
//
// A timer groups the handlers of one type; a clock is one handler:
//
//	//carillon:timer name=shop-orders description="Orders of the shop"
//	type Orders struct{ db *sql.DB }
//
//	//carillon:clock name=close-day cron="0 0 2 * * *" zone=Asia/Shanghai retries=3
//	func (o *Orders) CloseDay(ctx context.Context) (Report, error) { … }
//
// From these the package writes two files beside the source. carillon_gen.go
// has one function per timer, here
//
//	func RegisterOrders(ex *executor.Executor, t *Orders)
//
// which only calls executor.Handle and its kin: whoever dislikes markers can
// write the same by hand. carillon_manifest.json lists the same facts for
// machines (reviews, documentation, other languages).
//
// # Keys
//
// timer: name (default: the type's name in kebab case), description.
//
// clock: name (required), description, cron, dialect, every, zone, input,
// retries, retry-delay, timeout, blocking, parallelism, priority, routing, routing-key,
// require-labels, prefer-labels, send-retries, send-delay, misfire, owner, on-success, on-failure,
// shards, on-gone, before, after, fire-timeout and the flags idempotent and broadcast. A value is bare, "quoted" or `quoted` as
// in Go. One method may carry several clocks with different names.
//
// # Callbacks
//
// on-success and on-failure name methods of the same type. They run in the
// same process, directly after each attempt: func(context.Context, Out) with
// the output (func(context.Context) when there is none), and
// func(context.Context, error). The failure callback gets a context that is
// not cancelled, because the attempt's own one often is; it should end within
// the executor's KillGrace. A panic of the handler is reported to it too, and
// goes on afterwards, so that the attempt fails with the stack.
//
// # Strictness
//
// A comment that almost is a marker, an unknown key, a value out of range, a
// method whose signature does not fit: all are errors with file, line, column,
// what is wrong and what to do. All problems of a package are told at once.
//
// The package reads syntax, not types, so that it works while the code does
// not compile yet (registration code is often what is missing).
package generate
