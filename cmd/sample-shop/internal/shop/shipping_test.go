package shop

import (
	"database/sql"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
)

// A parcel waits for its payment, survives a retry, and is sent once.
func TestAParcelIsSentOnceItsOrderIsPaid(t *testing.T) {
	_, err := filled() // by the real clock: other tests share it
	require.NoError(t, err)
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		s := open(t)
		RegisterShipping(admin.Executor(), &Shipping{Shop: s})
		shipping := NewShippingProxy(admin.Proxy(), "test")
		ctx := t.Context()
		r := rand.New(rand.NewPCG(1, 1))
		var order int64
		for order%5 != 0 || order == 0 { // one whose first van is full
			var err error
			order, err = s.PlaceOrder(ctx, r)
			require.NoError(t, err)
		}

		run, err := shipping.StartShip(ctx, ShipInput{OrderID: order}, proxy.Attempts(2))
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
			_, err := shipping.Ship(ctx, ShipInput{OrderID: c.order})
			failed, ok := errors.AsType[*proxy.RunError](err)
			require.True(t, ok, err)
			require.Equal(t, c.state, failed.State)
			require.Equal(t, c.kind, failed.Kind)
		}
	})
}
