package timers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/executor-sdk/executortest"
	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

type CancelOrder struct {
	Order int `json:"order"`
}

// shop is what the tests of the timers' meaning work with.
type shop struct {
	*testing.T
	admin  *executortest.Admin
	orders timers.Handler[CancelOrder]
	sweep  timers.Plain
	fired  []CancelOrder
	sweeps int
}

// inShop runs test with a handler of each kind, by a fake clock.
func inShop(t *testing.T, test func(s *shop)) {
	executortest.Test(t, func(t *testing.T, admin *executortest.Admin) {
		client := admin.Proxy()
		s := &shop{T: t, admin: admin, orders: timers.New[CancelOrder](client, "test", "cancel-order"), sweep: timers.NewPlain(client, "test", "sweep")}
		ex := admin.Executor()
		executor.HandleIn(ex, "cancel-order", func(_ context.Context, in CancelOrder) error {
			s.fired = append(s.fired, in)
			return nil
		})
		executor.HandleFunc(ex, "sweep", func(context.Context) error { s.sweeps++; return errors.New("always") })
		test(s)
	})
}

func TestATimerFiresOnceAtItsTime(t *testing.T) {
	inShop(t, func(s *shop) {
		timer, err := s.orders.After(s.Context(), 30*time.Minute, CancelOrder{77}, timers.Key("order-77"), timers.Labels("shop:5"), timers.Note("unpaid"))
		require.NoError(s, err)
		require.Equal(s, timers.Created, timer.Outcome)
		require.True(s, timer.Pending())
		require.Empty(s, timer.Run)
		require.Equal(s, []string{"shop:5"}, timer.Labels)
		require.WithinDuration(s, time.Now().Add(30*time.Minute), timer.FireAt, 0)

		s.admin.Sleep(30*time.Minute - time.Millisecond)
		require.Empty(s, s.fired)
		s.admin.Sleep(time.Millisecond)
		require.Equal(s, []CancelOrder{{77}}, s.fired)

		timer, err = s.orders.Get(s.Context(), "order-77")
		require.NoError(s, err)
		require.Equal(s, "succeeded", timer.State)
		require.NotEmpty(s, timer.Run)
		runs := s.admin.Runs("cancel-order")
		require.Len(s, runs, 1)
		require.Equal(s, timer.FireAt.UnixMilli(), runs[0].FireTime().UnixMilli())
		s.admin.Sleep(24 * time.Hour)
		require.Len(s, s.fired, 1)
	})
}

func TestPlainTimersAndAttempts(t *testing.T) {
	inShop(t, func(s *shop) {
		at := time.Now().Add(time.Hour)
		timer, err := s.sweep.At(s.Context(), at, timers.Attempts(3), timers.StartWithin(time.Minute), timers.Timeout(time.Second))
		require.NoError(s, err)
		require.NotEmpty(s, timer.Key, "a random one")
		require.WithinDuration(s, at, timer.FireAt, time.Millisecond)
		s.admin.Sleep(2 * time.Hour)
		require.Equal(s, 3, s.sweeps)
		_, err = s.sweep.At(s.Context(), time.Now().Add(-time.Hour))
		require.NoError(s, err)
		s.admin.Sleep(0)
		require.Equal(s, 4, s.sweeps, "what has passed is now")
	})
}

func TestPoliciesOnAKeyInUse(t *testing.T) {
	inShop(t, func(s *shop) {
		set := func(order int, opts ...timers.Option) (*timers.Timer, error) {
			return s.orders.After(s.Context(), time.Hour, CancelOrder{order}, append(opts, timers.Key("k"))...)
		}
		_, err := set(1)
		require.NoError(s, err)
		kept, err := set(2)
		require.NoError(s, err)
		require.Equal(s, timers.Kept, kept.Outcome)
		require.JSONEq(s, `{"order":1}`, string(kept.Input))
		_, err = set(3, timers.OnExisting(timers.Reject))
		require.ErrorIs(s, err, timers.ErrExists)
		replaced, err := set(4, timers.OnExisting(timers.Replace))
		require.NoError(s, err)
		require.Equal(s, timers.Replaced, replaced.Outcome)
		s.admin.Sleep(2 * time.Hour)
		require.Equal(s, []CancelOrder{{4}}, s.fired)

		kept, err = set(5)
		require.NoError(s, err)
		require.Equal(s, "succeeded", kept.State, "one that has fired is the answer, too")
		fresh, err := set(6, timers.OnExisting(timers.Replace))
		require.NoError(s, err)
		require.Equal(s, timers.Created, fresh.Outcome)
		s.admin.Sleep(2 * time.Hour)
		require.Equal(s, []CancelOrder{{4}, {6}}, s.fired)
	})
}

func TestCancelAndReschedule(t *testing.T) {
	inShop(t, func(s *shop) {
		ctx := s.Context()
		for _, key := range []string{"a/b %?#ü", "moved", "fires"} {
			_, err := s.orders.After(ctx, time.Hour, CancelOrder{len(key)}, timers.Key(key))
			require.NoError(s, err)
		}
		require.Len(s, s.admin.Timers("cancel-order"), 3)
		timer, err := s.orders.Cancel(ctx, "a/b %?#ü")
		require.NoError(s, err)
		require.Equal(s, "cancelled", timer.State)
		_, err = s.orders.Cancel(ctx, "a/b %?#ü")
		require.NoError(s, err, "cancelled is cancelled")
		timer, err = s.orders.Reschedule(ctx, "moved", timers.After(3*time.Hour))
		require.NoError(s, err)
		require.True(s, timer.Pending())
		s.admin.Sleep(2 * time.Hour)
		require.Equal(s, []CancelOrder{{len("fires")}}, s.fired)
		pending := s.admin.Timers("")
		require.Len(s, pending, 1)
		require.Equal(s, "moved", pending[0].Key)
		_, err = s.orders.Reschedule(ctx, "moved", timers.At(time.Now().Add(time.Minute)))
		require.NoError(s, err)
		s.admin.Sleep(time.Minute)
		require.Len(s, s.fired, 2)

		timer, err = s.orders.Cancel(ctx, "fires")
		require.ErrorIs(s, err, timers.ErrEnded)
		require.Equal(s, "succeeded", timer.State)
		_, err = s.orders.Reschedule(ctx, "fires", timers.After(time.Hour))
		require.ErrorIs(s, err, timers.ErrEnded)
		_, err = s.orders.Cancel(ctx, "nobody")
		require.ErrorIs(s, err, timers.ErrNotFound)
		_, err = s.orders.Get(ctx, "nobody")
		require.ErrorIs(s, err, timers.ErrNotFound)
		_, err = s.orders.After(ctx, time.Hour, CancelOrder{9}, timers.Key("a/b %?#ü"), timers.OnExisting(timers.Reject))
		require.NoError(s, err, "the key of a cancelled timer is free")
	})
}

func TestManyAnswersForEach(t *testing.T) {
	inShop(t, func(s *shop) {
		items := make([]timers.Item[CancelOrder], 25_000)
		for i := range items {
			items[i] = timers.Item[CancelOrder]{Key: fmt.Sprintf("order-%05d", i), When: timers.After(time.Hour + time.Duration(i)*time.Second), Input: CancelOrder{i}}
		}
		items[1].Key = items[0].Key
		items[2].Key = ""
		answers, err := s.orders.Many(s.Context(), items, timers.OnExisting(timers.Reject))
		require.ErrorIs(s, err, timers.ErrExists)
		require.ErrorContains(s, err, "1 of 25000 timers")
		require.Equal(s, len(items), len(answers))
		for i, a := range answers {
			if i == 1 {
				require.ErrorIs(s, a.Err, timers.ErrExists)
				require.Empty(s, a.Outcome)
				continue
			}
			require.NoError(s, a.Err)
			require.Equal(s, timers.Created, a.Outcome)
			require.False(s, a.FireAt.IsZero())
			require.NotEmpty(s, a.Key)
		}
		require.Equal(s, len(items)-1, len(s.admin.Timers("cancel-order")))
		none, err := s.orders.Many(s.Context(), nil)
		require.NoError(s, err)
		require.Empty(s, none)
		plain, err := s.sweep.Many(s.Context(), []timers.Item[timers.None]{{When: timers.After(time.Hour)}})
		require.NoError(s, err)
		require.Equal(s, timers.Created, plain[0].Outcome)
	})
}

func TestCancelManyAnswersForEach(t *testing.T) {
	inShop(t, func(s *shop) {
		ctx := s.Context()
		items, keys := make([]timers.Item[CancelOrder], 12_000), make([]string, 0, 12_003)
		for i := range items {
			items[i] = timers.Item[CancelOrder]{Key: fmt.Sprintf("order-%05d", i), When: timers.After(time.Hour), Input: CancelOrder{i}}
			keys = append(keys, items[i].Key)
		}
		_, err := s.orders.Many(ctx, items)
		require.NoError(s, err)
		_, err = s.orders.After(ctx, 0, CancelOrder{}, timers.Key("fired"))
		require.NoError(s, err)
		s.admin.Sleep(time.Minute)
		_, err = s.orders.Cancel(ctx, "order-00007")
		require.NoError(s, err)
		answers, err := s.orders.CancelMany(ctx, append(keys, "nobody", "fired", "order-00000"))
		require.ErrorIs(s, err, timers.ErrNotFound)
		require.ErrorContains(s, err, "2 of 12003 timers were not cancelled")
		for i, a := range answers[:12_000] {
			require.Equal(s, timers.Answer{Key: keys[i], Outcome: timers.Cancelled}, a)
		}
		require.ErrorIs(s, answers[12_000].Err, timers.ErrNotFound)
		require.ErrorIs(s, answers[12_001].Err, timers.ErrEnded)
		require.Equal(s, timers.Cancelled, answers[12_002].Outcome, "cancelled is cancelled")
		require.Empty(s, s.admin.Timers(""))
		none, err := s.orders.CancelMany(ctx, nil)
		require.NoError(s, err)
		require.Empty(s, none)
		answers, err = s.sweep.CancelMany(ctx, []string{"a", "b"})
		require.ErrorIs(s, err, timers.ErrNotFound, "a handler that never had a timer")
		require.Len(s, answers, 2)
	})
}

func TestCancelByPrefixAndLabel(t *testing.T) {
	inShop(t, func(s *shop) {
		ctx := s.Context()
		for i := range 6 {
			_, err := s.orders.After(ctx, time.Hour, CancelOrder{i}, timers.Key(fmt.Sprintf("%c-%d", 'a'+i%2, i)), timers.Labels(fmt.Sprintf("third:%d", i/2)))
			require.NoError(s, err)
		}
		_, err := s.sweep.After(ctx, time.Hour, timers.Key("a-sweep"))
		require.NoError(s, err)
		c, err := s.orders.CancelPrefix(ctx, "a-")
		require.NoError(s, err)
		require.NoError(s, c.Wait(ctx))
		require.Equal(s, []any{int64(3), int64(3), true, "a-", ""}, []any{c.Found, c.Cancelled, c.Done, c.Prefix, c.Label})
		c, err = s.orders.CancelLabel(ctx, "third:0")
		require.NoError(s, err)
		require.NoError(s, c.Wait(ctx))
		require.EqualValues(s, 1, c.Cancelled, "a-0 is cancelled already")
		again, err := s.orders.Cancellation(ctx, c.ID)
		require.NoError(s, err)
		require.Equal(s, c, again)
		require.Len(s, s.admin.Timers("cancel-order"), 2)
		require.Len(s, s.admin.Timers("sweep"), 1, "of another handler")
		_, err = s.orders.CancelPrefix(ctx, "")
		require.ErrorContains(s, err, "timers of test/cancel-order: the admin refuses (validation_failed)")
		_, err = s.orders.Cancellation(ctx, "99")
		require.ErrorIs(s, err, timers.ErrNotFound)
	})
}

func TestListAndCount(t *testing.T) {
	inShop(t, func(s *shop) {
		ctx := s.Context()
		begin := time.Now()
		items := make([]timers.Item[CancelOrder], 250) // three pages
		for i := range items {
			items[i] = timers.Item[CancelOrder]{Key: fmt.Sprintf("order-%03d", i), When: timers.At(begin.Add(time.Duration(i+1) * time.Minute)), Input: CancelOrder{i}}
		}
		_, err := s.orders.Many(ctx, items, timers.Labels("all"))
		require.NoError(s, err)
		_, err = s.sweep.After(ctx, time.Hour)
		require.NoError(s, err)
		keys := func(f timers.Filter) (out []string) {
			for timer, err := range s.orders.List(ctx, f) {
				require.NoError(s, err)
				out = append(out, timer.Key)
			}
			return out
		}
		all := keys(timers.Filter{})
		require.Len(s, all, 250)
		require.True(s, slices.IsSorted(all))
		require.Len(s, slices.Compact(all), 250)
		require.Len(s, keys(timers.Filter{Prefix: "order-1"}), 100)
		require.Len(s, keys(timers.Filter{Label: "all"}), 250)
		require.Empty(s, keys(timers.Filter{Label: "none"}))
		require.Equal(s, []string{"order-001", "order-002"}, keys(timers.Filter{From: begin.Add(2 * time.Minute), To: begin.Add(4 * time.Minute)}))
		for timer, err := range s.orders.List(ctx, timers.Filter{}) {
			require.NoError(s, err)
			require.Equal(s, "order-000", timer.Key)
			break // asks for no more
		}

		s.admin.Sleep(3 * time.Minute)
		_, err = s.orders.Cancel(ctx, "order-100")
		require.NoError(s, err)
		require.ElementsMatch(s, []string{"order-100", "order-002", "order-001", "order-000"}, keys(timers.Filter{State: timers.Ended}))
		require.Empty(s, keys(timers.Filter{State: timers.Claimed}))
		n, err := s.orders.Count(ctx)
		require.NoError(s, err)
		require.EqualValues(s, 246, n)
	})
}

// An error is the last that a list gives, and what came before it was given.
func TestAListThatBreaksOff(t *testing.T) {
	_, orders := startFaulty(t, func(n int) string {
		if n == 1 {
			return `200 {"items":[{"key":"a","fireAt":"2030-01-01T00:00:00.000Z"}],"nextCursor":"more"}`
		}
		return `403 {"code":"permission_denied","detail":"no more"}`
	})
	var got []string
	for timer, err := range orders.List(t.Context(), timers.Filter{}) {
		if err != nil {
			require.EqualError(t, err, "timers of shop/cancel-order: the admin refuses (permission_denied): no more")
			got = append(got, "error")
			continue
		}
		got = append(got, timer.Key)
	}
	require.Equal(t, []string{"a", "error"}, got)
}

func TestInputThatIsNoJSON(t *testing.T) {
	client, err := proxy.New(proxy.Config{URL: "http://127.0.0.1:1", Key: "ck_1"})
	require.NoError(t, err)
	_, err = timers.New[any](client, "shop", "x").After(t.Context(), time.Hour, func() {})
	require.ErrorContains(t, err, "encode input")
	_, err = timers.New[any](client, "shop", "x").Many(t.Context(), []timers.Item[any]{{}, {Input: func() {}}})
	require.ErrorContains(t, err, "item 1")
}

// Instants are rounded up: a timer is never early.
func TestInstantsAreRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{timers: map[string]bool{}, fault: func(int) string { return "" }}
		client, err := proxy.New(proxy.Config{URL: "http://127.0.0.1", Key: "ck_1", HTTP: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			return w.Result(), nil
		})}})
		require.NoError(t, err)
		orders := timers.New[CancelOrder](client, "shop", "cancel-order")
		_, err = orders.After(t.Context(), time.Second+1, CancelOrder{})
		require.NoError(t, err)
		_, err = orders.At(t.Context(), time.Date(2030, 1, 1, 8, 0, 0, 1, time.FixedZone("", 8*3600)), CancelOrder{})
		require.NoError(t, err)
		_, err = orders.After(t.Context(), -time.Hour, CancelOrder{})
		require.NoError(t, err)
		require.Contains(t, f.bodies()[0], `"after":"1.001s"`)
		require.Contains(t, f.bodies()[1], `"at":"2030-01-01T00:00:00.001Z"`)
		require.Contains(t, f.bodies()[2], `"after":"0s"`)
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A node may know of some that it does not know whether they are set.
func TestSomeOfManyAreUnconfirmed(t *testing.T) {
	_, orders := startFaulty(t, func(int) string {
		return `200 {"items":[{"key":"a","outcome":"created"},{"key":"b","outcome":"failed","problem":{"code":"unavailable","detail":"the database is away"}}]}`
	})
	answers, err := orders.Many(t.Context(), []timers.Item[CancelOrder]{{Key: "a"}, {Key: "b"}})
	var gone *timers.UnconfirmedError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, timers.Created, answers[0].Outcome)
	require.ErrorAs(t, answers[1].Err, &gone)
	require.True(t, gone.MayBeDone)
	require.ErrorContains(t, gone, "the database is away")
}
