// Package timers asks for one run of a handler at one instant: "cancel this order
// in 30 minutes, unless it is paid". Any process may, also one that has no
// handlers; millions may be pending.
//
//	client, err := proxy.New(proxy.Config{URL: "https://carillon.internal"}) // CARILLON_API_KEY
//	…
//	cancelOrder := timers.New[CancelOrder](client, "shop", "cancel-order")
//	_, err = cancelOrder.After(ctx, 30*time.Minute, CancelOrder{Order: 77}, timers.Key("order-77"))
//	…
//	_, err = cancelOrder.Cancel(ctx, "order-77")
//
// Code that `carillon generate` writes beside handlers marked with
// //carillon:timer proxy has a Handler for each of them (the marker means a type with
// handlers, whether or not timers run them):
//
//	orders := shop.NewOrdersTimers(client, "shop")
//	_, err = orders.Cancel.After(ctx, 30*time.Minute, shop.CancelOrder{Order: 77}, timers.Key("order-77"))
//
// # Many
//
// Many and CancelMany have an answer for each timer. CancelPrefix and CancelLabel end all
// that they find, and tell how far they are. List gives the timers of a handler one by one,
// and Count how many are pending.
//
//	cancellation, err := cancelOrder.CancelLabel(ctx, "tenant:7")
//	…
//	err = cancellation.Wait(ctx)
//
// # What is promised
//
// A timer that was taken fires once, never before its time, and its run is one like
// any other: routed, tried again as its handler declares, logged, seen. Of each
// handler there is at most one living timer with a key. Setting one again with the
// same key is the same timer (Policy says otherwise); without Key there is a
// random key, so that a request that is repeated after a lost answer makes no second one.
//
// # In a transaction
//
// With the option Tx a timer is written to a table of the application's own
// database, in the application's own transaction: it will be set if that commits,
// and not if it does not, whatever happens to the process or the network. So are
// cancellations and moves: an order that is paid ends its timer in the same transaction.
//
//	_, err = cancelOrder.Cancel(ctx, "order-77", timers.Tx(tx, timers.PostgreSQL))
//
// An Outbox in one or several processes sends what is there, that of one key in its order. The
// package needs nothing but the standard library; the driver is the application's.
//
// # Who may
//
// The API key of the client needs the permission "timer", as the role of the same name
// has it, and may be bound to executors and to handlers.
package timers
