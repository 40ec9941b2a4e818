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
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/executor-sdk/proxy"
	"github.com/carillon-sched/carillon/executor-sdk/timers"
)

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
