// Package proxy calls handlers that run in other processes: a function call
// here becomes a run there, with everything that a run has (routing to a living
// instance, attempts, log, history), and its result comes back.
//
//	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal"}) // CARILLON_API_KEY
//	…
//	report, err := proxy.Call[Report](ctx, client, "shop", "close-day", CloseDay{Day: "2026-11-20"})
//
// Code that `carillon generate` writes beside handlers marked with
// //carillon:timer proxy gives each method a function of its own, with its types:
//
//	orders := shop.NewOrdersProxy(client, "shop")
//	report, err := orders.Close(ctx, shop.CloseDay{Day: "2026-11-20"})
//
// # What is promised
//
// A call starts one run, whatever happens to the connection: it carries a key, by
// default a random one, and asking again with the same key finds the same run. The
// run is started at most once unless its handler or Attempts allow more; the rules are those
// of all runs. When ctx ends Call cancels the run, unless KeepRunning says otherwise.
//
// Waiting is a long poll: one request is open, and is answered when the run
// ends. Connections that break and nodes that stop are tried again, at the next of URLs.
//
// # What holds for a call
//
// What is declared beside the handler, as for the job that it declares: timeout,
// retries and their delays, callbacks, blocking among the calls of the handler,
// routing, labels, priority. A caller may narrow the timeout and the attempts and
// not widen them; where the handler says nothing it decides. When a job
// fires, and whose it is, does not touch calls. docs/guide/handlers.md has the table.
//
// # When nobody answers
//
// StartWithin bounds the time until the call has been taken and has started, by the
// caller's clock and whatever the nodes do. What they have not confirmed by then is an
// *UnconfirmedError: it says whether there may be a run, and has the key with
// which the same call makes no second one.
//
// # Who may call
//
// The client shows an API key. A key with the role caller can do nothing but call
// handlers, of the executors that it is made for, and see and cancel its own calls.
//
// The package needs nothing but the standard library.
package proxy
