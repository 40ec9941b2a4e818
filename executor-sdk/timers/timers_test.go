package timers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// A cancel of many is repeated after a lost answer, and bounded in bytes.
func TestCancelManyIsRepeatedAndBounded(t *testing.T) {
	var sent []int
	f, orders := startFaulty(t, nil)
	f.fault = func(n int) string {
		var in struct{ Keys []string }
		_ = json.Unmarshal([]byte(f.requests[n-1]), &in)
		sent = append(sent, len(in.Keys))
		if n == 1 {
			return "unheard"
		}
		var items []string
		for _, key := range in.Keys {
			raw, _ := json.Marshal(map[string]string{"key": key, "outcome": "cancelled"})
			items = append(items, string(raw))
		}
		return `200 {"items":[` + strings.Join(items, ",") + `]}`
	}
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%05d", strings.Repeat("<", 155), i) // six bytes each in JSON
	}
	answers, err := orders.CancelMany(t.Context(), keys)
	require.NoError(t, err)
	require.Equal(t, keys[9_999], answers[9_999].Key)
	require.Len(t, sent, 3)
	require.Equal(t, sent[0], sent[1])
	require.Equal(t, 10_000, sent[1]+sent[2])
}

func TestACancellationThatIsNotDone(t *testing.T) {
	_, orders := startFaulty(t, func(n int) string {
		return fmt.Sprintf(`200 {"id":"7","keyPrefix":"a-","found":%d,"cancelled":%d,"done":%t}`, 10*n, 10*n-1, n == 4)
	})
	c, err := orders.CancelPrefix(t.Context(), "a-")
	require.NoError(t, err)
	require.False(t, c.Done)
	require.NoError(t, c.Refresh(t.Context()))
	require.EqualValues(t, 19, c.Cancelled)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	require.ErrorIs(t, c.Wait(ctx), why)
	require.NoError(t, c.Wait(t.Context()))
	require.Equal(t, []any{true, int64(40), int64(39)}, []any{c.Done, c.Found, c.Cancelled})
}

// faulty answers timers as the API does, but for some answers, which are lost or
// others.
type faulty struct {
	mu       sync.Mutex
	requests []string // bodies
	timers   map[string]bool
	fault    func(n int) string // of the nth request: "lost", "unheard", a status with a body, or ""
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	f.requests = append(f.requests, string(raw))
	fault := f.fault(len(f.requests))
	if fault == "unheard" {
		panic(http.ErrAbortHandler)
	}
	if status, body, ok := strings.Cut(fault, " "); ok {
		var n int
		_, _ = fmt.Sscan(status, &n)
		w.WriteHeader(n)
		_, _ = io.WriteString(w, body)
		return
	}
	var in struct {
		Key, Policy string
		Timers      []struct{ Key string }
	}
	_ = json.Unmarshal(raw, &in)
	set := func(key string) string {
		if f.timers[key] {
			return "kept"
		}
		f.timers[key] = true
		return "created"
	}
	var answer string
	if in.Timers == nil {
		answer = fmt.Sprintf(`{"key":%q,"state":"pending","outcome":%q,"run":null,"fireAt":"2030-01-01T00:00:00.000Z"}`, in.Key, set(in.Key))
	} else {
		var items []string
		for _, t := range in.Timers {
			items = append(items, fmt.Sprintf(`{"key":%q,"outcome":%q,"fireAt":"2030-01-01T00:00:00.000Z"}`, t.Key, set(t.Key)))
		}
		answer = `{"items":[` + strings.Join(items, ",") + `]}`
	}
	if fault == "lost" {
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, answer)
}

// bodies are those of the requests so far.
func (f *faulty) bodies() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// has reports whether a timer of the key is set, count how many there are.
func (f *faulty) has(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.timers[key]
}

func (f *faulty) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

func startFaulty(t *testing.T, fault func(n int) string) (*faulty, timers.Handler[CancelOrder]) {
	f := &faulty{timers: map[string]bool{}, fault: fault}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client, err := proxy.New(proxy.Config{URL: server.URL, Key: "ck_1"})
	require.NoError(t, err)
	return f, timers.New[CancelOrder](client, "shop", "cancel-order")
}

func first(fault string) func(int) string {
	return func(n int) string {
		if n == 1 {
			return fault
		}
		return ""
	}
}

// A request whose answer was lost is repeated with the same random key, and is one
// timer that this caller has made.
func TestARepetitionMakesNoSecondTimer(t *testing.T) {
	f, orders := startFaulty(t, first("lost"))
	timer, err := orders.After(t.Context(), time.Hour, CancelOrder{1})
	require.NoError(t, err)
	require.Equal(t, timers.Created, timer.Outcome)
	require.Len(t, f.bodies(), 2)
	require.Equal(t, f.bodies()[0], f.bodies()[1])
	require.Equal(t, 1, f.count())

	f, orders = startFaulty(t, first("lost"))
	answers, err := orders.Many(t.Context(), []timers.Item[CancelOrder]{{When: timers.After(time.Hour)}, {When: timers.After(time.Hour)}})
	require.NoError(t, err)
	require.Equal(t, 2, f.count())
	for _, a := range answers {
		require.Equal(t, timers.Created, a.Outcome)
		require.True(t, f.has(a.Key))
	}
}

// What would not mean the same a second time is not repeated when it may have been
// heard.
func TestWhatCannotBeRepeatedIsUnconfirmed(t *testing.T) {
	for name, c := range map[string]struct {
		after    time.Duration
		policy   timers.Policy
		repeated bool
	}{
		"keep":                   {0, timers.Keep, true},
		"reject":                 {time.Hour, timers.Reject, false},
		"replace, fires soon":    {time.Second, timers.Replace, false},
		"replace, fires in time": {time.Hour, timers.Replace, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, orders := startFaulty(t, first("lost"))
			_, err := orders.After(t.Context(), c.after, CancelOrder{1}, timers.OnExisting(c.policy))
			if c.repeated {
				require.NoError(t, err)
				require.Len(t, f.bodies(), 2)
				return
			}
			var gone *timers.UnconfirmedError
			require.ErrorAs(t, err, &gone)
			require.True(t, gone.MayBeDone)
			require.True(t, f.has(gone.Key))
			require.Len(t, f.bodies(), 1)

			f, orders = startFaulty(t, first("lost"))
			answers, err := orders.Many(t.Context(), []timers.Item[CancelOrder]{
				{When: timers.After(24 * time.Hour)}, {When: timers.After(c.after), Options: []timers.Option{timers.OnExisting(c.policy)}},
			})
			require.ErrorAs(t, err, &gone)
			require.Len(t, f.bodies(), 1)
			for _, a := range answers {
				require.ErrorAs(t, a.Err, &gone)
				require.Equal(t, a.Key, gone.Key)
			}
		})
	}
}

// A move to a near instant is not repeated: the timer may have fired meanwhile, and
// the answer would be that it had ended.
func TestAMoveIsRepeatedWhileItsInstantIsFar(t *testing.T) {
	f, orders := startFaulty(t, first("lost"))
	_, err := orders.Reschedule(t.Context(), "order-77", timers.After(time.Second))
	var gone *timers.UnconfirmedError
	require.ErrorAs(t, err, &gone)
	require.Len(t, f.bodies(), 1)

	f, orders = startFaulty(t, first("lost"))
	_, err = orders.Reschedule(t.Context(), "order-77", timers.After(time.Hour))
	require.NoError(t, err)
	require.Len(t, f.bodies(), 2)
}

// Who is over his rate has done nothing: that is repeated, whatever the policy.
func TestTooManyRequestsAreRepeated(t *testing.T) {
	f, orders := startFaulty(t, first(`429 {"code":"rate_limited","detail":"too many"}`))
	_, err := orders.After(t.Context(), 0, CancelOrder{1}, timers.OnExisting(timers.Reject))
	require.NoError(t, err)
	require.Len(t, f.bodies(), 2)
}

func TestRefusalsHaveTheirErrors(t *testing.T) {
	for code, c := range map[string]struct {
		status int
		want   error
	}{
		"timer_exists":      {409, timers.ErrExists},
		"timer_started":     {409, timers.ErrStarted},
		"already_finished":  {409, timers.ErrEnded},
		"not_found":         {404, timers.ErrNotFound},
		"quota_exceeded":    {409, timers.ErrQuota},
		"permission_denied": {403, nil},
	} {
		t.Run(code, func(t *testing.T) {
			f, orders := startFaulty(t, func(int) string { return fmt.Sprintf(`%d {"code":%q,"detail":"so it is"}`, c.status, code) })
			_, err := orders.After(t.Context(), time.Hour, CancelOrder{1}, timers.Key("k"))
			var refused *timers.RefusedError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, &timers.RefusedError{Handler: "shop/cancel-order", Key: "k", Status: c.status, Code: code, Detail: "so it is"}, refused)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
			}
			require.Len(t, f.bodies(), 1)
			require.NotContains(t, err.Error(), "ck_1")

			answers, err := orders.Many(t.Context(), make([]timers.Item[CancelOrder], 12_000))
			require.ErrorAs(t, err, &refused)
			require.Equal(t, 12_000, len(answers))
			for _, a := range answers {
				require.ErrorAs(t, a.Err, &refused)
			}
		})
	}
}

// Nobody answers: the first request says that it may be done, and what was not
// asked for any more says that it is not.
func TestManyStopsWhenNobodyAnswers(t *testing.T) {
	f, orders := startFaulty(t, func(int) string { return "lost" })
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("enough")
	f.fault = func(int) string { cancel(why); return "lost" }
	answers, err := orders.Many(ctx, make([]timers.Item[CancelOrder], 12_000))
	require.ErrorIs(t, err, why)
	var gone *timers.UnconfirmedError
	require.ErrorAs(t, answers[0].Err, &gone)
	require.True(t, gone.MayBeDone)
	require.ErrorAs(t, answers[11_999].Err, &gone)
	require.False(t, gone.MayBeDone)
	require.Equal(t, answers[11_999].Key, gone.Key)
	require.Len(t, f.bodies(), 1)
}

// A batch keeps to the bytes that a body may have.
func TestBatchesAreOfBoundedSize(t *testing.T) {
	f, orders := startFaulty(t, func(int) string { return "" })
	long := strings.Repeat("x", 1_600_000)
	items := make([]timers.Item[CancelOrder], 12)
	_, err := orders.Many(t.Context(), items, timers.Note(long))
	require.NoError(t, err)
	require.Len(t, f.bodies(), 3)
	for _, body := range f.bodies() {
		require.Less(t, len(body), 8<<20)
	}
}

// An answer that makes no sense is not taken for a yes.
func TestAnswersForOthersAreUnconfirmed(t *testing.T) {
	_, orders := startFaulty(t, func(int) string { return `200 {"items":[{"key":"a","outcome":"created"}]}` })
	_, err := orders.Many(t.Context(), make([]timers.Item[CancelOrder], 2))
	var gone *timers.UnconfirmedError
	require.ErrorAs(t, err, &gone)
	require.True(t, gone.MayBeDone)
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
