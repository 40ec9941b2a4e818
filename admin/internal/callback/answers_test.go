package callback

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	executor "github.com/carillon-sched/carillon/executor-sdk"
	"github.com/carillon-sched/carillon/internal/httpcall"
)

// outputs are results that the database has not taken.
type outputs struct {
	mu      sync.Mutex
	waiting []func()            // guarded by mu
	kept    []httpcall.Response // guarded by mu
	taken   bool                // guarded by mu: the database takes them at once
}

func (o *outputs) settled(_ context.Context, f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.taken {
		f()
		return
	}
	o.waiting = append(o.waiting, f)
}

func (o *outputs) keep(r httpcall.Response) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.taken {
		o.kept = append(o.kept, r)
	}
}

func (o *outputs) take() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, f := range o.waiting {
		f()
	}
	o.waiting, o.kept, o.taken = nil, nil, true
}

// While the database is away, 1,024 calls of a tenant at once with answers as large as allowed
// hold no more than its share. Another tenant has room. When the database is back, each answer
// is read whole.
func TestLargeAnswersAreBounded(t *testing.T) {
	const most = 120 << 10
	body := bytes.Repeat([]byte("x"), most)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) }))
	t.Cleanup(server.Close)
	s := New(Options{Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Logger: slog.New(slog.DiscardHandler)})
	database := &outputs{}
	s.answers.settled, s.answers.readPatience, s.answers.sendPatience = database.settled, time.Second, time.Millisecond
	caller := map[domain.TenantID]*httpcall.Caller{}
	for id := range domain.TenantID(3) {
		p, err := s.read(id, &domain.CallbackPolicy{Hosts: []string{"*"}, MaxTimeout: time.Minute, PerHost: slots})
		require.NoError(t, err)
		t.Cleanup(p.close)
		caller[id] = p.caller
	}
	var whole, cut atomic.Int64
	call := func(tenant domain.TenantID) {
		out, err := caller[tenant].Call(t.Context(), httpcall.Request{URL: server.URL, MaxResponse: most}, executor.Task{ExecutionID: 1}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Error(err)
			return
		}
		database.keep(out)
		switch {
		case len(out.Body) == most && !out.Truncated:
			whole.Add(1)
		case out.Body == "" && out.Truncated && out.Status == http.StatusOK:
			cut.Add(1)
		default:
			t.Errorf("%d bytes, truncated: %t", len(out.Body), out.Truncated)
		}
	}
	many := func() {
		var all sync.WaitGroup
		for range slots {
			all.Go(func() { call(1) })
		}
		all.Wait()
	}
	live := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}

	before := live()
	many()
	held, peak := s.answers.Held()
	t.Logf("of %d answers %d were read; %d bytes are held, %d were at most; the heap grew by %d", slots, whole.Load(), held, peak, int64(live())-int64(before))
	require.LessOrEqual(t, peak, int64(answerShare))
	require.GreaterOrEqual(t, whole.Load(), int64(30), "results wait with three times their bytes")
	require.Equal(t, int64(slots), whole.Load()+cut.Load())
	require.True(t, s.answers.open(t.Context(), 2))
	was := whole.Load()
	call(2)
	require.Equal(t, was+1, whole.Load(), "another tenant has its own share")

	database.take()
	s.answers.readPatience = readPatience
	for id := range caller { // as for a new policy
		p, err := s.read(id, &domain.CallbackPolicy{Hosts: []string{"*"}, MaxTimeout: time.Minute, PerHost: slots})
		require.NoError(t, err)
		t.Cleanup(p.close)
		caller[id] = p.caller
	}
	whole.Store(0)
	began := time.Now()
	many()
	_, peak = s.answers.Held()
	t.Logf("with the database: %d answers in %s", whole.Load(), time.Since(began))
	require.EqualValues(t, slots, whole.Load())
	require.LessOrEqual(t, peak, int64(answerBytes))
	held, _ = s.answers.Held()
	require.Zero(t, held)
	require.Zero(t, s.answers.Owners())
}

// A call that finds no room is not sent.
func TestNoCallsWithoutRoom(t *testing.T) {
	a := newAnswers()
	a.sendPatience = time.Millisecond
	all, err := a.Take(t.Context(), 1, answerShare)
	require.NoError(t, err)
	require.False(t, a.open(t.Context(), 1))
	require.True(t, a.open(t.Context(), 2))
	all.Release()
	require.True(t, a.open(t.Context(), 1))
}
