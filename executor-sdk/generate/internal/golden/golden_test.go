package golden

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/executor-sdk/generate"
	"github.com/carillon-sched/carillon/executor-sdk/generate/internal/golden/client"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
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

// The generated registrations and proxies work together: a call runs the
// method, and callbacks follow a job's runs until they succeed.
func TestGeneratedCodeRuns(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		o := &Orders{}
		ex := admin.Executor()
		RegisterOrders(ex, o)
		RegisterStockKeeper(ex, &StockKeeper{})
		for _, hook := range []string{"prepare", "collect"} {
			executor.HandleFunc(ex, hook, func(context.Context) error { return nil })
		}
		proxies := NewOrdersProxy(admin.Proxy(), "test")
		ctx := t.Context()

		report, err := proxies.Close(ctx, CloseDay{Day: "Mon"})
		require.NoError(t, err)
		require.Equal(t, Report{Orders: 3}, report)
		require.NoError(t, proxies.Sweep(ctx))
		run, err := proxies.StartClose(ctx, CloseDay{})
		require.NoError(t, err)
		_, err = run.Wait(ctx)
		require.ErrorContains(t, err, "no day")
		admin.Wait()
		require.Equal(t, []Report{{Orders: 3}}, o.Closed, "callbacks follow calls, too")
		require.Len(t, o.Failed, 1, "after the last attempt, once")
		require.Equal(t, 2, o.Done, "a callback that failed is tried again")

		require.Equal(t, executortest.Succeeded, admin.Call("close-day", CloseDay{Day: "Monday"}).State())
		admin.Wait()
		require.Equal(t, []Report{{Orders: 3}, {Orders: 6}}, o.Closed)
		require.Equal(t, executortest.Failed, admin.Call("close-day", CloseDay{}).State())
		admin.Wait()
		require.Len(t, o.Failed, 2)
		require.EqualError(t, o.Failed[1], "no day")
		require.Equal(t, executortest.Failed, admin.Call("cancel-unpaid", map[string]any{"orderId": -1}).State())
		admin.Wait()
		require.EqualError(t, o.Failed[2], "panic: negative order")

		require.Equal(t, executortest.Succeeded, admin.Call("sweep", nil).State())
		admin.Wait()
		require.Equal(t, 3, o.Done)
	})
}

// A program that knows only the folder with the copies calls the same handlers.
func TestGeneratedClientRuns(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		RegisterStockKeeper(admin.Executor(), &StockKeeper{})
		stock := client.NewStockKeeperProxy(admin.Proxy(), "test")
		got, err := stock.CountShelf(t.Context(), client.Shelf{Name: "bell", Wait: time.Second})
		require.NoError(t, err)
		require.Equal(t, client.List[client.Count]{Items: []client.Count{{Thing: "bell", N: 3}}, Total: 1}, got)
		all, err := stock.Count(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]int{"bell": 64}, all)
	})
}

// Timers that are set through the generated types run the methods at their time.
func TestGeneratedTimersFire(t *testing.T) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		o := &Orders{}
		ex := admin.Executor()
		RegisterOrders(ex, o)
		for _, hook := range []string{"prepare", "collect"} {
			executor.HandleFunc(ex, hook, func(context.Context) error { return nil })
		}
		orders := NewOrdersTimers(admin.Proxy(), "test")
		ctx := t.Context()
		_, err := orders.Close.After(ctx, time.Minute, CloseDay{Day: "Mon"}, timers.Key("monday"))
		require.NoError(t, err)
		_, err = orders.Sweep.At(ctx, time.Now().Add(time.Minute))
		require.NoError(t, err)
		_, err = orders.Close.Reschedule(ctx, "monday", timers.After(time.Hour))
		require.NoError(t, err)
		_, err = orders.Close.Many(ctx, []timers.Item[CloseDay]{{Key: "tuesday", When: timers.After(time.Hour), Input: CloseDay{"Tue"}}})
		require.NoError(t, err)
		count, err := orders.Close.Count(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 2, count)
		for timer, err := range orders.Sweep.List(ctx, timers.Filter{}) {
			require.NoError(t, err)
			require.Equal(t, "sweep", timer.Handler)
		}
		_, err = orders.Close.CancelMany(ctx, []string{"tuesday"})
		require.NoError(t, err)
		admin.Sleep(time.Minute)
		require.Empty(t, o.Closed)
		require.Positive(t, o.Done)
		admin.Sleep(time.Hour)
		require.Contains(t, o.Closed, Report{Orders: 3})
		require.Empty(t, admin.Timers(""))
	})
}
