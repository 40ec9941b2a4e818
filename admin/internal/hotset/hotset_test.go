package hotset

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
	"github.com/carillon-sched/carillon/internal/testenv"
	"github.com/carillon-sched/carillon/internal/testenv/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const horizon = 3 * time.Second

// world is a Set on a Redis of its own keys, and the timers of the database.
type world struct {
	*Set
	t      *testing.T
	server *redis.Client
	proxy  *proxy.Proxy
	held   []domain.PartitionTerm
	clock  time.Time
	rows   []store.HotTimer
	reads  int
}

// PendingTimers implements store.TimerPages.
func (w *world) PendingTimers(_ context.Context, p store.PendingTimersParams) (page []store.HotTimer, _ error) {
	w.reads++
	order := func(a, b store.HotTimer) int {
		return cmp.Or(a.FireAt.Compare(b.FireAt), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	}
	slices.SortFunc(w.rows, order)
	for _, r := range w.rows {
		fits := r.Partition == p.Partition && !r.FireAt.Before(p.From) && r.FireAt.Before(p.To)
		if fits && (p.After.ID == 0 || order(p.After, r) < 0) && len(page) < p.Limit {
			page = append(page, r)
		}
	}
	return page, nil
}

func newWorld(t *testing.T) *world {
	t.Helper()
	broker := testenv.Redis(t)
	p, err := proxy.New(broker.Addr, proxy.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	w := &world{t: t, proxy: p, clock: time.Now().UTC().Truncate(time.Hour), held: []domain.PartitionTerm{{Partition: 0, Term: 7}, {Partition: 9, Term: 3}}}
	w.server = redis.NewClient(&redis.Options{Addr: broker.Addr, Password: broker.Password})
	t.Cleanup(func() { require.NoError(t, w.server.Close()) })
	w.Set, err = Open(Options{
		URL: "redis://:" + broker.Password + "@" + p.Addr() + "/0", Prefix: t.Name(), Timers: w, Held: func() []domain.PartitionTerm { return w.held },
		Now: func() time.Time { return w.clock }, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	w.redis.look = 3 * time.Second // shorter than the delay of a test, and no machine is as slow
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// add makes n pending timers that are due one after the other.
func (w *world) add(partition, n int, from time.Time, every time.Duration) []domain.TimerID {
	ids := make([]domain.TimerID, n)
	for i := range n {
		ids[i] = domain.TimerID(len(w.rows) + 1)
		w.rows = append(w.rows, store.HotTimer{ID: ids[i], Tenant: 1, Partition: partition, FireAt: from.Add(time.Duration(i) * every)})
	}
	return ids
}

// due is one look: what is named, and of which partitions the database has to be asked.
func (w *world) due() (ids []domain.TimerID, unknown []int) {
	w.t.Helper()
	named, unknown := w.DueTimers(w.t.Context(), w.held, horizon, 20_000)
	slices.Sort(unknown)
	for _, t := range named {
		require.False(w.t, t.FireAt.After(w.clock.Add(horizon)))
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return ids, slices.Compact(unknown)
}

// settle copies slices until the watermark is where it is to be, and takes the first
// look, which leaves all to the database.
func (w *world) settle() {
	w.t.Helper()
	w.again = time.Time{}
	for range 3 {
		w.migrate(w.t.Context())
	}
	_, unknown := w.due()
	require.Equal(w.t, []int{0, 9}, unknown)
}

func TestTimersOfASliceAreNamedWhenTheyAreDue(t *testing.T) {
	w := newWorld(t)
	due := w.add(0, 12_000, w.clock.Add(time.Second), 0) // all in one millisecond: three pages
	soon := w.add(9, 10, w.clock.Add(2*time.Second), 100*time.Millisecond)
	later := w.add(0, 500, w.clock.Add(40*time.Second), time.Millisecond) // of the next slice
	w.add(0, 1, w.clock.Add(time.Hour), 0)
	w.settle()
	require.Len(t, w.parts[0].pages, 3)
	for _, p := range w.parts {
		require.False(t, p.until.Before(w.clock.Add(ahead)))
	}

	ids, unknown := w.due()
	require.Empty(t, unknown)
	require.Equal(t, slices.Concat(due, soon), ids, "named until they were tried")
	w.TimersTried(ids)
	ids, unknown = w.due()
	require.Empty(t, ids)
	require.Empty(t, unknown)

	reads := w.reads
	w.clock = w.clock.Add(20 * time.Second)
	w.migrate(t.Context())
	ids, unknown = w.due()
	require.Empty(t, unknown)
	require.Empty(t, ids)
	w.clock = w.clock.Add(17*time.Second + 100*time.Millisecond)
	w.migrate(t.Context())
	ids, unknown = w.due()
	require.Empty(t, unknown)
	require.Equal(t, later[:101], ids)
	require.Less(t, w.reads-reads, 8, "each slice is read once")
	require.EqualValues(t, 12_510, w.Stats().Copied)
	keys, err := w.server.Keys(t.Context(), t.Name()+"*").Result()
	require.NoError(t, err)
	for _, key := range keys {
		ttl, err := w.server.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.Positive(t, ttl, "%s leaves by itself", key)
		require.LessOrEqual(t, ttl, ahead+2*slice+keepFor)
	}
}

func TestTimersThatAreSetLater(t *testing.T) {
	w := newWorld(t)
	w.settle()
	at := w.clock.Add(10 * time.Second)
	set := func(id domain.TimerID, at time.Time) store.HotTimer {
		return store.HotTimer{ID: id, Partition: 9, FireAt: at}
	}
	w.Put([]store.HotTimer{set(1, at), set(2, w.clock.Add(lateWithin+time.Second))})
	w.addLate(t.Context())
	require.EqualValues(t, 1, w.Stats().Added, "the other one is found when its slice is copied")
	ids, unknown := w.due()
	require.Empty(t, ids)
	require.Empty(t, unknown)
	w.clock = at.Add(-horizon)
	ids, _ = w.due()
	require.Equal(t, []domain.TimerID{1}, ids)
	w.TimersTried(ids)
	ids, _ = w.due()
	require.Empty(t, ids)

	both := w.add(9, 1, w.clock.Add(50*time.Second), 0)
	w.Put(w.rows)
	w.addLate(t.Context())
	w.migrate(t.Context())
	w.clock = w.clock.Add(25 * time.Second)
	w.migrate(t.Context())
	w.clock = w.clock.Add(23 * time.Second)
	w.migrate(t.Context())
	ids, unknown = w.due()
	require.Empty(t, unknown)
	require.Equal(t, append(both, both...), ids, "set before its slice was copied")
	w.TimersTried(both)
	ids, unknown = w.due()
	require.Empty(t, ids, "one claim is enough")
	require.Empty(t, unknown)

	w.Put([]store.HotTimer{set(3, w.clock.Add(store.SoonTimer))})
	_, unknown = w.due()
	require.Equal(t, []int{9}, unknown, "one that is due before Redis may have it")
	_, unknown = w.due()
	require.Empty(t, unknown)

	w.late = make([]store.HotTimer, maxLate)
	w.Put([]store.HotTimer{set(4, at)})
	require.Len(t, w.late, maxLate)
	require.EqualValues(t, 1, w.Stats().Dropped)
}

// Whatever happens to Redis, all partitions are left to the database at once, and
// copied anew when it is well.
func TestABrokenStoreNamesNothing(t *testing.T) {
	page := func(w *world) string { return w.parts[0].pages[0].key }
	for name, fault := range map[string]func(t *testing.T, w *world) (heal func()){
		"flushed": func(t *testing.T, w *world) func() {
			require.NoError(t, w.server.FlushAll(t.Context()).Err())
			return nil
		},
		"half of a page": func(t *testing.T, w *world) func() {
			require.NoError(t, w.server.ZPopMin(t.Context(), page(w), 50).Err())
			return nil
		},
		"one more": func(t *testing.T, w *world) func() {
			require.NoError(t, w.server.ZAdd(t.Context(), page(w), redis.Z{Member: "x"}).Err())
			return nil
		},
		"another type": func(t *testing.T, w *world) func() {
			require.NoError(t, w.server.Set(t.Context(), page(w), 1, 0).Err())
			return nil
		},
		"connections reset": func(_ *testing.T, w *world) func() { w.proxy.Silence(); w.proxy.Reset(); return w.proxy.Heal },
		"silent":            func(_ *testing.T, w *world) func() { w.proxy.Silence(); return w.proxy.Heal },
		"5 s late": func(_ *testing.T, w *world) func() {
			w.proxy.Delay(5 * time.Second)
			return func() { w.proxy.Delay(0); w.proxy.Reset() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ids := w.add(0, 100, w.clock, 10*time.Millisecond)
			w.settle()
			claimed := redis.Z{Score: float64(w.clock.UnixMilli()), Member: 4711} // while Redis is away
			require.NoError(t, w.server.ZAdd(t.Context(), w.lateKey(0), claimed).Err())
			heal := fault(t, w)
			named, unknown := w.due()
			require.Empty(t, named)
			require.Equal(t, []int{0, 9}, unknown)
			require.False(t, w.Stats().Available)
			reads := w.reads
			w.migrate(t.Context())
			require.Equal(t, reads, w.reads, "Redis is left alone for a while")
			_, unknown = w.due()
			require.Equal(t, []int{0, 9}, unknown)
			if heal != nil {
				heal()
			}
			w.settle()
			require.True(t, w.Stats().Available)
			named, unknown = w.due()
			require.Empty(t, unknown)
			require.Equal(t, ids, named)
		})
	}
}

// A Redis without memory takes no page: nothing counts as copied.
func TestAFullStoreIsNotUsed(t *testing.T) {
	w := newWorld(t)
	w.add(0, 100, w.clock, 0)
	require.NoError(t, w.server.ConfigSet(t.Context(), "maxmemory", "1").Err())
	t.Cleanup(func() { require.NoError(t, w.server.ConfigSet(context.Background(), "maxmemory", "0").Err()) })
	w.migrate(t.Context())
	require.Empty(t, w.parts)
	_, unknown := w.due()
	require.Equal(t, []int{0, 9}, unknown)
	w.Put([]store.HotTimer{{ID: 1, FireAt: w.clock.Add(10 * time.Second)}})
	require.Empty(t, w.late)
	w.again = time.Time{}
	w.Put([]store.HotTimer{{ID: 1, FireAt: w.clock.Add(10 * time.Second)}})
	w.addLate(t.Context())
	require.EqualValues(t, 2, w.Stats().Failures)
	require.EqualValues(t, 1, w.Stats().Dropped)
}

// What is no id is passed over, and ids of nobody are named until they were tried.
func TestForeignMembers(t *testing.T) {
	w := newWorld(t)
	w.settle()
	at := float64(w.clock.UnixMilli())
	key := w.lateKey(9)
	require.NoError(t, w.server.ZAdd(t.Context(), key, redis.Z{Score: -5, Member: "-4"}, redis.Z{Score: at, Member: "x"}, redis.Z{Score: at, Member: 77}).Err())
	ids, unknown := w.due()
	require.Empty(t, unknown)
	require.Equal(t, []domain.TimerID{77}, ids)
	w.TimersTried(ids)
	ids, _ = w.due()
	require.Empty(t, ids)
}

func TestANewTermBeginsAnew(t *testing.T) {
	w := newWorld(t)
	ids := w.add(0, 3, w.clock.Add(time.Second), 0)
	w.settle()
	w.held[0].Term++
	named, unknown := w.due()
	require.Equal(t, []int{0}, unknown)
	require.Empty(t, named)
	w.migrate(t.Context())
	_, unknown = w.due()
	require.Equal(t, []int{0}, unknown, "what was set before the copy is in the database")
	named, _ = w.due()
	require.Equal(t, ids, named)
	w.held = w.held[:1]
	w.migrate(t.Context())
	require.NotContains(t, w.parts, 9)

	w.clock = w.clock.Add(time.Hour) // nothing was copied for longer than the copies reach
	_, unknown = w.due()
	require.Equal(t, []int{0}, unknown)
	w.migrate(t.Context())
	require.Empty(t, w.parts[0].pages)
	require.True(t, w.parts[0].until.After(w.clock))
}

func TestCheckURL(t *testing.T) {
	for _, url := range []string{"redis://h", "redis://user:p%40ss@h:6380/2", "rediss://h:6379"} {
		require.NoError(t, CheckURL(url), url)
	}
	for _, url := range []string{"h:6379", "http://user:secret@h", "redis://user:se/cret@h", "redis://user:secret@h/x", "redis://user:sec%ret@h"} {
		err := CheckURL(url)
		require.Error(t, err, url)
		require.False(t, strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "cret"), "%s", err)
	}
}

// A Redis that announces too much costs no memory.
func TestAHostileStore(t *testing.T) {
	for _, text := range []string{"*2000000000\r\n", strings.Repeat("*1\r\n", 1000), "$2000000000\r\n"} {
		at := testenv.Peer(t, func(conn net.Conn) { testenv.Speak(conn, text, 1) })
		require.Less(t, testenv.Allocated(func() {
			require.ErrorContains(t, Ping(t.Context(), "redis://"+at.String()), "Redis: ")
		}), uint64(testenv.MostForAPeer))
	}
}
