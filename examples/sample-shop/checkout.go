package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"example.com/sample-shop/shopclient"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

// checkout is the other application: it takes orders, and leaves what follows to
// handlers that run wherever the shop does. It knows them by package shopclient
// only.
type checkout struct {
	shipping *shopclient.ShippingProxy
	orders   *shopclient.OrdersTimers
	unpaid   time.Duration
}

// ordered arranges what follows an order.
func (c *checkout) ordered(ctx context.Context, order int64) error {
	// The key makes it safe to ask again.
	unpaid := shopclient.CancelUnpaidInput{OrderID: order}
	if _, err := c.orders.CancelUnpaid.After(ctx, c.unpaid, unpaid, timers.Key(fmt.Sprintf("order-%d", order))); err != nil {
		return err
	}
	// The customer waits for the price, so this call waits as well.
	quote, err := c.shipping.Quote(ctx, shopclient.QuoteInput{OrderID: order}, proxy.StartWithin(10*time.Second))
	if err != nil {
		return err
	}
	// Nobody waits for the parcel. Whichever instance sends it, and however often
	// this is asked: the key makes it one run.
	run, err := c.shipping.StartShip(ctx, shopclient.ShipInput{OrderID: order}, proxy.Key(fmt.Sprintf("ship-%d", order)), proxy.Attempts(3))
	if err != nil {
		return err
	}
	slog.Debug("ordered", "order", order, "parcel_cents", quote.Cents, "run", run.ID())
	return nil
}
