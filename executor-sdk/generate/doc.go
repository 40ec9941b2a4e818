// Package generate turns marker comments into registration code: it answers
// "which methods of this package are handlers, and when do they run?".
//
// The marker timer groups the handlers of one type; a clock is one handler. (A timer
// of package timers is one run of any handler at an instant: another thing, with the same
// word.)
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
// timer: name (default: the type's name in kebab case), description and
// proxy, alone or with a folder.
//
// clock: name (required), description; when: cron, dialect, every, delay, at,
// window, start-at, end-at, jitter, zone, gap, overlap, calendars, days, misfire,
// misfire-threshold, misfire-window, misfire-max-runs; with what: input;
// how: retries, retry-delay, retry-backoff, max-retry-delay, timeout, on-lost, blocking,
// parallelism, max-waiting, priority, idempotent; where: dispatch-timeout, routing, routing-key, require-labels, prefer-labels, send-retries,
// send-delay; in parts: shards, broadcast, on-gone, before, after, fire-timeout;
// whose: labels, owner, owned-by, when-removed; who is told: alert-on-failure,
// alert-no-executor (true or false), alert-emails, alert-webhook; after it: on-success, on-failure; and of the
// handler itself: weight, max-result (bytes, or 64KiB), kill-grace, stuck. idempotent
// and broadcast are flags. Lists have commas, as in labels="team=books, env=prod". A value is bare, "quoted" or `quoted` as in Go. One
// method may carry several clocks with different names.
//
// Each key is an option of package executor, where it is explained.
//
// # Callbacks
//
// on-success and on-failure name methods of the same type. They run after the
// run has ended, retries included, as runs of their own on any instance of the executor, at
// least once: func(context.Context, Out) with the output (func(context.Context)
// when there is none), and func(context.Context, error). They may return an error:
// then they are tried again. Their handlers are called like the clock, with .succeeded or
// .failed behind.
//
// # Proxies
//
// The flag proxy of a timer asks for a third file, carillon_proxy.go, with a type that
// calls the timer's handlers wherever they run (package proxy), here
//
//	orders := shop.NewOrdersProxy(client, "shop")
//	report, err := orders.CloseDay(ctx)         // waits for the result
//	run, err := orders.StartCloseDay(ctx)       // run.Wait, run.Status, run.Cancel
//
// and one that sets timers for them (package timers), which has a field for each:
//
//	orders := shop.NewOrdersTimers(client, "shop")
//	timer, err := orders.CloseDay.After(ctx, 30*time.Minute, timers.Key("today"))
//	_, err = orders.CloseDay.Cancel(ctx, "today") // or Reschedule, Get, At, Many, CancelMany, List, …
//
// Who imports that package inherits what its handlers depend on. With a folder,
// proxy=../shopclient, the same type is written to carillon_client.go there, for
// other applications. The types that handlers take and give, and what those are
// made of, are copied into it, as far as the handlers' package declares them; those
// of other packages are imported there as well. A type that writes its own JSON cannot be
// copied: it belongs into a package that both sides import. Constants and methods are not
// copied. The folder may be in another module.
//
// What a clock says of how it runs holds for calls too: retries, timeout, on-lost, callbacks,
// blocking among the calls, where it runs. Callers may ask for less. retries=0 says that nothing is repeated;
// without retries a caller may ask for it. Package proxy tells more.
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
