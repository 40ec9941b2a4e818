package shop

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/sample-shop/shopclient"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// A parcel waits for its payment, survives a retry, and is sent once.
func TestAParcelIsSentOnceItsOrderIsPaid(t *testing.T) {
	_, err := filled() // by the real clock: other tests share it
	require.NoError(t, err)
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		s := open(t)
		RegisterShipping(admin.Executor(), &Shipping{Shop: s, Carrier: &Carrier{}})
		shipping := shopclient.NewShippingProxy(admin.Proxy(), "test")
		ctx := t.Context()
		r := rand.New(rand.NewPCG(1, 1))
		var order int64
		for order%5 != 0 || order == 0 { // one whose first van is full
			var err error
			order, err = s.PlaceOrder(ctx, r)
			require.NoError(t, err)
		}

		quote, err := shipping.Quote(ctx, shopclient.QuoteInput{OrderID: order})
		require.NoError(t, err)
		require.Contains(t, []int64{0, parcelCents}, quote.Cents)
		run, err := shipping.StartShip(ctx, shopclient.ShipInput{OrderID: order}, proxy.Attempts(2))
		require.NoError(t, err)
		admin.Sleep(time.Minute)
		status, err := run.Status(ctx)
		require.NoError(t, err)
		require.False(t, status.Done, "it waits, and has not failed: %s", status.State)
		require.Zero(t, s.number(t, "SELECT COUNT(*) FROM parcels"))

		require.NoError(t, s.inTx(ctx, func(tx *sql.Tx) error { return pay(ctx, tx, order, 1000, s.now()) }))
		parcel, err := run.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, order, parcel.OrderID)
		require.Equal(t, 1, s.number(t, "SELECT COUNT(*) FROM parcels WHERE order_id = ? AND label = ?", order, parcel.Label))

		for _, c := range []struct {
			order       int64
			state, kind string
		}{{11, "cancelled", "cancelled"}, {1 << 40, "failed", "permanent"}} {
			_, err := shipping.Ship(ctx, shopclient.ShipInput{OrderID: c.order})
			failed, ok := errors.AsType[*proxy.RunError](err)
			require.True(t, ok, err)
			require.Equal(t, c.state, failed.State)
			require.Equal(t, c.kind, failed.Kind)
		}
	})
}

// An attempt that was given up buys nothing any more.
func TestTheCarrierRefusesAnOldFence(t *testing.T) {
	var c Carrier
	first, err := c.BuyLabel(executor.Task{ExecutionID: 7, Fence: 2})
	require.NoError(t, err)
	again, err := c.BuyLabel(executor.Task{ExecutionID: 7, Fence: 3})
	require.NoError(t, err)
	require.Equal(t, first, again)
	_, err = c.BuyLabel(executor.Task{ExecutionID: 7, Fence: 2})
	require.ErrorContains(t, err, "was given up")
}

// The count goes in four slices, each product in one of them.
func TestShelvesAreCountedInSlices(t *testing.T) {
	_, err := filled()
	require.NoError(t, err)
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		s := open(t)
		RegisterShelves(admin.Executor(), &Shelves{Shop: s})
		fire := admin.Call("count-shelves", nil)
		require.Equal(t, executortest.Succeeded, fire.State())
		require.Len(t, fire.Shards(), 4)
		var sum Counted
		fire.After().Output(&sum)
		require.Equal(t, s.number(t, "SELECT COUNT(*) FROM products"), sum.Products)
		require.Equal(t, s.number(t, "SELECT SUM(stock) FROM products"), sum.Units)

		_, err := s.db.ExecContext(t.Context(), "DELETE FROM order_lines; DELETE FROM products")
		require.NoError(t, err)
		require.Equal(t, "before_hook", admin.Call("count-shelves", nil).ErrKind())
	})
}
