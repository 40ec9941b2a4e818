package batch

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type item struct {
	owner, rank int64
	n           int // order of coming
}

func placeOf(i *item) Place { return Place{Owner: i.owner, Rank: i.rank} }

func compare(a, b item) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.n, b.n)) }

// fairModel plays a fair queue against lists.
type fairModel struct {
	f       *fair[item]
	waiting map[int64][]item
	missed  map[int64]int // flushes of its kind since the owner's last one
	next    int
	// Flushes under way: their ends, and whose items they have.
	dones  []func()
	owners []map[int64]bool
}

func (m *fairModel) size() (n int) {
	for _, w := range m.waiting {
		n += len(w)
	}
	return n
}

func (m *fairModel) add(t *rapid.T) {
	owner, n := rapid.Int64Range(1, 6).Draw(t, "owner"), rapid.IntRange(1, 40).Draw(t, "count")
	var items []item
	for range n {
		items = append(items, item{owner, rapid.Int64Range(0, 9).Draw(t, "rank"), m.next})
		m.next++
	}
	m.waiting[owner] = append(m.waiting[owner], items...)
	m.f.push(items)
	clear(items) // the queue has its own copy
}

func (m *fairModel) end(t *rapid.T) {
	if len(m.dones) > 0 {
		at := rapid.IntRange(0, len(m.dones)-1).Draw(t, "flush")
		m.dones[at]()
		m.dones, m.owners = slices.Delete(m.dones, at, at+1), slices.Delete(m.owners, at, at+1)
	}
}

func (m *fairModel) take(t *rapid.T) {
	limit := rapid.IntRange(1, 25).Draw(t, "limit")
	before := map[int64]int{}
	for owner, w := range m.waiting {
		if len(w) > 0 {
			before[owner] = len(w)
		}
	}
	mixed := len(before) > 1 || time.Now().Before(m.f.mixedTil)
	got, done := m.f.take(limit)
	if len(got) == 0 {
		if len(before) > 0 && len(m.dones) == 0 {
			t.Fatalf("%d wait, nothing is under way and nothing is taken", m.size())
		}
		return
	}
	share := m.took(t, got)
	m.dones = append(m.dones, done)
	busy := map[int64]bool{}
	for owner := range share {
		for _, others := range m.owners {
			if m.f.ordered && others[owner] {
				t.Fatalf("owner %d is in two flushes", owner)
			}
		}
		busy[owner] = true
	}
	m.owners = append(m.owners, busy)
	if len(m.dones) > 2*m.f.workers {
		t.Fatalf("%d flushes under way", len(m.dones))
	}
	if mixed {
		m.fairShares(t, limit, len(got), before, share)
	}
}

// took checks that each item comes once, and an owner's in their order.
func (m *fairModel) took(t *rapid.T, got []item) map[int64]int {
	share, last := map[int64]int{}, map[int64]item{}
	for _, g := range got {
		share[g.owner]++
		at := slices.IndexFunc(m.waiting[g.owner], func(w item) bool { return w.n == g.n })
		if at < 0 {
			t.Fatalf("item %d came twice, or was never added", g.n)
		}
		m.waiting[g.owner] = slices.Delete(m.waiting[g.owner], at, at+1)
		if p, ok := last[g.owner]; ok && compare(p, g) >= 0 {
			t.Fatalf("owner %d: %v before %v", g.owner, p, g)
		}
		last[g.owner] = g
	}
	for owner, taken := range last {
		for _, w := range m.waiting[owner] {
			if compare(w, taken) < 0 {
				t.Fatalf("owner %d: %v was taken and %v waits", owner, taken, w)
			}
		}
	}
	return share
}

// fairShares checks that floods and others are apart, and that each of a kind
// got its part.
func (m *fairModel) fairShares(t *rapid.T, limit, got int, before, share map[int64]int) {
	part := max(limit/floodPart, 1)
	flood := false
	for owner := range share {
		flood = before[owner] > part
	}
	kind := 0
	for owner, had := range before {
		if (had > part) != flood {
			if share[owner] > 0 {
				t.Fatalf("a flood shares a batch with others: %v of %v", share, before)
			}
			continue
		}
		if flood && share[owner] > part {
			t.Fatalf("owner %d floods and got %d of %d", owner, share[owner], got)
		}
		kind++
	}
	for owner, had := range before {
		if (had > part) != flood || m.f.ordered {
			continue
		}
		fairShare := min(had, limit/kind) // up to one, for who is served first
		if flood {
			fairShare = min(fairShare, part)
		}
		if share[owner] < fairShare {
			t.Fatalf("owner %d with %d items got %d of %d among %d owners", owner, had, share[owner], got, kind)
		}
		if m.missed[owner]++; share[owner] > 0 {
			m.missed[owner] = 0
		} else if m.missed[owner] >= 12 {
			t.Fatalf("owner %d got nothing of %d flushes", owner, m.missed[owner])
		}
	}
}

// TestFairQueueProperties plays any mix of adding, taking and ending flushes.
func TestFairQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &fairModel{f: newFair(rapid.IntRange(1, 3).Draw(t, "workers"), placeOf), waiting: map[int64][]item{}, missed: map[int64]int{}}
		m.f.ordered = rapid.Bool().Draw(t, "ordered")
		l := NewFlushLimit(1)
		l.after = func(_ time.Duration, do func()) { do() } // nobody waits here
		m.f.flushLimit = l.join(func() {})
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "take": m.take, "end": m.end,
			"": func(t *rapid.T) {
				if m.f.len() != m.size() {
					t.Fatalf("%d items wait, not %d", m.f.len(), m.size())
				}
				if len(m.f.ring) != len(m.f.owners) {
					t.Fatalf("%d in the ring, %d owners", len(m.f.ring), len(m.f.owners))
				}
			},
		})
		for _, done := range m.dones {
			done()
		}
		m.dones = nil
		for m.f.len() > 0 { // what remains comes out
			_, done := m.f.take(1)
			done()
		}
		if m.f.len() != 0 || len(m.f.owners) != 0 || len(m.f.ring) != 0 || len(m.f.busy) != 0 {
			t.Fatalf("%d items, %d owners left", m.f.len(), len(m.f.owners))
		}
	})
}

// TestRankDecidesAmongWhatWaits: an urgent item that comes later goes first.
func TestRankDecidesAmongWhatWaits(t *testing.T) {
	f := newFair(1, placeOf)
	take := func(limit int) []item {
		items, done := f.take(limit)
		done()
		return items
	}
	f.push([]item{{1, 5, 0}, {1, 3, 1}, {1, 5, 2}})
	require.Equal(t, []item{{1, 3, 1}}, take(1))
	f.push([]item{{1, 1, 3}, {1, 9, 4}})
	require.Equal(t, []item{{1, 1, 3}, {1, 5, 0}, {1, 5, 2}, {1, 9, 4}}, take(9))
}

// TestAFloodDelaysNobodyElse: while one owner has a backlog of seconds, each
// item of another one is flushed at once, by itself. A batch takes as long as it
// does on MariaDB.
func TestAFloodDelaysNobodyElse(t *testing.T) {
	const size, fixed, each = 200, 3 * time.Millisecond, 40 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		type sent struct {
			owner int64
			at    time.Time
		}
		var mu sync.Mutex
		waits := map[int64][]time.Duration{}
		var batches []int
		q := NewFair(1, size, func(s *sent) Place { return Place{Owner: s.owner} }, func(_ context.Context, items []sent) {
			time.Sleep(fixed + time.Duration(len(items))*each)
			mu.Lock()
			defer mu.Unlock()
			batches = append(batches, len(items))
			for _, s := range items {
				waits[s.owner] = append(waits[s.owner], time.Since(s.at))
			}
		})
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		flood := make([]sent, 100_000)
		for i := range flood {
			flood[i] = sent{1, time.Now()}
		}
		q.Add(flood...)
		for range 200 {
			time.Sleep(17 * time.Millisecond)
			q.Add(sent{2, time.Now()})
		}
		time.Sleep(time.Minute)
		cancel()
		<-done
		require.Len(t, waits[1], len(flood))
		require.Len(t, waits[2], 200)
		slices.Sort(waits[2])
		require.Equal(t, fixed+each, waits[2][199], "a batch of its own, at once")
		require.Greater(t, slices.Max(waits[1]), 6*time.Second, "it was a flood")
		require.Equal(t, size, batches[0])
		require.Equal(t, size, batches[len(batches)-2], "alone again, the flood goes in full batches")
	})
}
