package golden

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/generate"
)

func TestGeneratedFilesAreFresh(t *testing.T) {
	out, err := generate.Dir(".", generate.Options{})
	require.NoError(t, err)
	changes, err := out.Changes()
	require.NoError(t, err)
	for _, c := range changes {
		t.Errorf("%s differs; run go generate and review:\n%s", c.Path, c.Summary)
	}
}

// The core takes what the generated code hands to it: names, schemas, options.
func TestRegisters(t *testing.T) {
	ex, err := executor.New(executor.Config{
		Name: "golden", Addresses: []string{"127.0.0.1:7070"}, Token: "cjt_test", JournalDir: t.TempDir(),
	})
	require.NoError(t, err)
	RegisterOrders(ex, &Orders{})
	RegisterStockKeeper(ex, &StockKeeper{})
	require.PanicsWithValue(t, `carillon: handler "cancel-unpaid" is registered twice`,
		func() { RegisterOrders(ex, &Orders{}) })
}

func TestCallbacks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	o := &Orders{}
	closeDay := carillonInOut(o.Close, o.Closed1, o.Fail)

	out, err := closeDay(ctx, CloseDay{Day: "Mon"})
	require.NoError(t, err)
	require.Equal(t, Report{Orders: 3}, out)
	require.Equal(t, []Report{{Orders: 3}}, o.Closed)
	require.Empty(t, o.Failed)

	_, err = closeDay(ctx, CloseDay{})
	require.EqualError(t, err, "no day")
	require.Equal(t, []error{err}, o.Failed)
	require.Len(t, o.Closed, 1)

	require.NoError(t, carillonFunc(o.Sweep, o.Finished, nil)(ctx))
	require.Equal(t, 1, o.Done)

	cancel()
	var failureCtx context.Context
	failed := func(ctx context.Context, err error) { failureCtx = ctx; o.Fail(ctx, err) } //nolint:fatcontext // looked at below
	cancelOrder := carillonIn(o.Cancel, nil, failed)
	in := struct {
		OrderID int64 `json:"orderId"`
	}{OrderID: -1}
	require.PanicsWithValue(t, "negative order", func() { _ = cancelOrder(ctx, in) })
	require.ErrorIs(t, o.Failed[1], errCarillonPanic)
	require.NoError(t, failureCtx.Err(), "the failure callback outlives the attempt's context")
}
