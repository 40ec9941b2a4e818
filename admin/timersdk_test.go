package admin_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	sdkproxy "github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

type cancelOrder struct {
	Order int `json:"order"`
}

type manyOrders struct {
	Orders []int             `json:"orders"`
	Names  map[string]string `json:"names"`
	Raw    []byte            `json:"raw"`
}

// Package timers does with an admin node what it does with executortest, by a key
// that may do nothing else.
func TestTheSDKSetsTimers(t *testing.T) {
	t.Parallel()
	n := startNode(t, nil)
	var key struct{ Secret string }
	n.do(http.MethodPost, "/api/v1/api-keys", map[string]any{"name": "timers", "role": "timer"}, &key, 201)
	client, err := sdkproxy.New(sdkproxy.Config{URL: n.admin.URL(), Key: key.Secret})
	require.NoError(t, err)
	fired, release := make(chan int, 100), make(chan struct{})
	n.startExecutor("shop", nil, func(ex *executor.Executor) {
		executor.HandleIn(ex, "cancel-order", func(_ context.Context, in cancelOrder) error { fired <- in.Order; return nil })
		executor.HandleIn(ex, "lists", func(_ context.Context, in manyOrders) error {
			fired <- len(in.Orders) + len(in.Names) + len(in.Raw) + 7
			return nil
		}, executor.Job("lists", executor.Cron("0 0 0 1 1 *"), executor.Input(manyOrders{})))
		executor.HandleFunc(ex, "long", func(ctx context.Context) error {
			fired <- 0
			select {
			case <-release:
			case <-ctx.Done():
			}
			return ctx.Err()
		})
	})
	ctx := t.Context()
	orders, long := timers.New[cancelOrder](client, "shop", "cancel-order"), timers.NewPlain(client, "shop", "long")
	state := func(key, want string) {
		t.Helper()
		n.eventually(func() bool {
			timer, err := orders.Get(ctx, key)
			return err == nil && timer.State == want
		}, func() string {
			timer, err := orders.Get(ctx, key)
			return fmt.Sprint(timer, err)
		})
	}

	t.Run("one fires", func(t *testing.T) {
		timer, err := orders.After(ctx, 50*time.Millisecond, cancelOrder{1}, timers.Key("a/b %?#ü"), timers.Labels("shop:5"), timers.Note("unpaid"),
			timers.Attempts(2), timers.Timeout(time.Minute), timers.StartWithin(time.Minute))
		require.NoError(t, err)
		require.Equal(t, timers.Created, timer.Outcome)
		require.Equal(t, 1, <-fired)
		require.False(t, time.Now().Before(timer.FireAt))
		state("a/b %?#ü", "succeeded")
		timer, err = orders.After(ctx, time.Hour, cancelOrder{2}, timers.Key("a/b %?#ü"))
		require.NoError(t, err)
		require.Equal(t, timers.Kept, timer.Outcome)
		require.Equal(t, "succeeded", timer.State)
		require.NotEmpty(t, timer.Run)
		_, err = orders.Cancel(ctx, "a/b %?#ü")
		require.ErrorIs(t, err, timers.ErrEnded)
		_, err = orders.At(ctx, time.Now().Add(-time.Hour), cancelOrder{3})
		require.NoError(t, err)
		require.Equal(t, 3, <-fired, "what has passed is now")
	})
	t.Run("lists that were not set", func(t *testing.T) {
		_, err := timers.New[manyOrders](client, "shop", "lists").After(ctx, time.Millisecond, manyOrders{})
		require.NoError(t, err)
		require.Equal(t, 7, <-fired)
	})
	t.Run("policies, cancel, reschedule", func(t *testing.T) {
		set := func(opts ...timers.Option) (*timers.Timer, error) {
			return orders.After(ctx, time.Hour, cancelOrder{4}, append(opts, timers.Key("k"))...)
		}
		timer, err := set()
		require.NoError(t, err)
		require.True(t, timer.Pending())
		require.JSONEq(t, `{"order":4}`, string(timer.Input))
		_, err = set(timers.OnExisting(timers.Reject))
		require.ErrorIs(t, err, timers.ErrExists)
		timer, err = set(timers.OnExisting(timers.Replace))
		require.NoError(t, err)
		require.Equal(t, timers.Replaced, timer.Outcome)
		timer, err = orders.Reschedule(ctx, "k", timers.After(2*time.Hour))
		require.NoError(t, err)
		require.Greater(t, time.Until(timer.FireAt), 100*time.Minute)
		timer, err = orders.Cancel(ctx, "k")
		require.NoError(t, err)
		require.Equal(t, "cancelled", timer.State)
		_, err = orders.Cancel(ctx, "k")
		require.NoError(t, err, "cancelled is cancelled")
		_, err = orders.Reschedule(ctx, "k", timers.After(time.Hour))
		require.ErrorIs(t, err, timers.ErrEnded)
		_, err = set(timers.OnExisting(timers.Reject))
		require.NoError(t, err, "the key of a cancelled timer is free")
		_, err = orders.Reschedule(ctx, "k", timers.At(time.Now()))
		require.NoError(t, err)
		require.Equal(t, 4, <-fired)
	})
	t.Run("one that has started", func(t *testing.T) {
		_, err := long.After(ctx, 0, timers.Key("long"))
		require.NoError(t, err)
		<-fired
		n.eventually(func() bool {
			_, err = long.Reschedule(ctx, "long", timers.After(time.Hour))
			return err != nil
		}, func() string { return "it was moved" })
		require.ErrorIs(t, err, timers.ErrStarted)
		_, err = long.After(ctx, time.Hour, timers.Key("long"), timers.OnExisting(timers.Replace))
		require.ErrorIs(t, err, timers.ErrStarted)
		_, err = long.Cancel(ctx, "long")
		require.NoError(t, err)
		close(release)
	})
	t.Run("refusals", func(t *testing.T) {
		_, err := orders.Get(ctx, "nobody")
		require.ErrorIs(t, err, timers.ErrNotFound)
		_, err = orders.After(ctx, 20*366*24*time.Hour, cancelOrder{})
		var refused *timers.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "validation_failed", refused.Code)
		_, err = timers.New[map[string]any](client, "shop", "cancel-order").After(ctx, time.Hour, map[string]any{"order": "x"})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "unfit_input", refused.Code)
		_, err = timers.NewPlain(client, "nowhere", "x").After(ctx, time.Hour)
		require.ErrorIs(t, err, timers.ErrNotFound)
		_, err = sdkproxy.Call[sdkproxy.None](ctx, client, "shop", "long", nil)
		require.ErrorContains(t, err, "permission_denied")
	})
	t.Run("many", func(t *testing.T) {
		items := make([]timers.Item[cancelOrder], 10_500)
		for i := range items {
			items[i] = timers.Item[cancelOrder]{Key: fmt.Sprintf("many-%05d", i), When: timers.After(time.Hour), Input: cancelOrder{i}}
		}
		items[3].Key = "k" // it has fired
		answers, err := orders.Many(ctx, items, timers.OnExisting(timers.Reject))
		require.ErrorIs(t, err, timers.ErrExists)
		for i, a := range answers {
			require.Equal(t, i == 3, a.Err != nil, a.Err)
		}
		timer, err := orders.Get(ctx, "many-10499")
		require.NoError(t, err)
		require.True(t, timer.Pending())

		count, err := orders.Count(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 10_499, count)
		listed := 0
		for timer, err := range orders.List(ctx, timers.Filter{Prefix: "many-001", From: time.Now(), To: time.Now().Add(2 * time.Hour)}) {
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("many-%05d", 100+listed), timer.Key)
			listed++
		}
		require.Equal(t, 100, listed)
		keys := []string{"nobody", "k"}
		for i := range 10_100 {
			keys = append(keys, fmt.Sprintf("many-%05d", i))
		}
		for range 2 { // cancelled is cancelled
			answers, err = orders.CancelMany(ctx, keys)
			require.ErrorContains(t, err, "3 of 10102 timers were not cancelled")
			require.ErrorIs(t, answers[0].Err, timers.ErrNotFound)
			require.ErrorIs(t, answers[1].Err, timers.ErrEnded)
			require.ErrorIs(t, answers[5].Err, timers.ErrNotFound, "many-00003 is k")
			for i, a := range answers {
				require.Equal(t, i != 0 && i != 1 && i != 5, a.Outcome == timers.Cancelled, a)
			}
		}
		c, err := orders.CancelPrefix(ctx, "many-")
		require.NoError(t, err)
		require.NoError(t, c.Wait(ctx))
		require.Equal(t, []int64{400, 400}, []int64{c.Found, c.Cancelled})
		_, err = orders.After(ctx, time.Hour, cancelOrder{8}, timers.Key("labelled"), timers.Labels("eu"))
		require.NoError(t, err)
		c, err = orders.CancelLabel(ctx, "eu")
		require.NoError(t, err)
		require.NoError(t, c.Wait(ctx))
		count, err = orders.Count(ctx)
		require.NoError(t, err)
		require.Zero(t, count)
		ended := 0
		for timer, err := range orders.List(ctx, timers.Filter{State: timers.Ended, Label: "eu"}) {
			require.NoError(t, err)
			require.Equal(t, "labelled", timer.Key)
			ended++
		}
		require.Equal(t, 1, ended)
	})
	t.Run("outbox", func(t *testing.T) {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db"))
		require.NoError(t, err)
		defer db.Close()
		box, err := timers.NewOutbox(timers.OutboxConfig{Client: client, DB: db, Dialect: timers.SQLite})
		require.NoError(t, err)
		require.NoError(t, box.Create(ctx))
		for _, set := range []func() error{
			func() error {
				_, err := orders.After(ctx, 0, cancelOrder{7}, timers.Tx(db, timers.SQLite), timers.Key("in-a-box"))
				return err
			},
			func() error {
				_, err := timers.New[string](client, "shop", "cancel-order").After(ctx, 0, "poison", timers.Tx(db, timers.SQLite))
				return err
			},
			func() error {
				_, err := timers.NewPlain(client, "shop", "not-yet").After(ctx, 0, timers.Tx(db, timers.SQLite))
				return err
			},
		} {
			require.NoError(t, set())
		}
		sent, err := box.Drain(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, sent)
		require.Equal(t, 7, <-fired)
		aside, err := box.SetAside(ctx, 10)
		require.NoError(t, err)
		require.Len(t, aside, 1)
		require.Contains(t, aside[0].Err, "unfit_input")

		tx := timers.Tx(db, timers.SQLite)
		for _, key := range []string{"moved", "dropped", "both"} {
			_, err := orders.After(ctx, time.Hour, cancelOrder{9}, tx, timers.Key(key))
			require.NoError(t, err)
		}
		_, err = orders.Reschedule(ctx, "in-a-box", timers.After(time.Hour), tx) // has ended
		require.NoError(t, err)
		_, err = orders.Cancel(ctx, "both", tx)
		require.NoError(t, err)
		sent, err = box.Drain(ctx)
		require.NoError(t, err)
		require.Equal(t, 4, sent, "one is cancelled before it was set")
		_, err = orders.Get(ctx, "both")
		require.ErrorIs(t, err, timers.ErrNotFound)
		moved, err := orders.Reschedule(ctx, "moved", timers.After(2*time.Hour), tx)
		require.NoError(t, err)
		_, err = orders.CancelMany(ctx, []string{"dropped", "in-a-box", "nobody"}, tx)
		require.NoError(t, err)
		_, err = timers.NewPlain(client, "shop", "never").Cancel(ctx, "x", tx) // is not known to have timers
		require.NoError(t, err)
		sent, err = box.Drain(ctx)
		require.NoError(t, err)
		require.Equal(t, 4, sent)
		timer, err := orders.Get(ctx, "moved")
		require.NoError(t, err)
		require.Equal(t, moved.FireAt.UnixMilli(), timer.FireAt.UnixMilli())
		state("dropped", "cancelled")
		var left int
		require.NoError(t, db.QueryRowContext(ctx, "SELECT COUNT(*) FROM carillon_timers WHERE due_at IS NOT NULL AND error IS NOT NULL").Scan(&left))
		require.Equal(t, 2, left, "the handlers that are not there, not-yet and never, are tried again")
	})
}
