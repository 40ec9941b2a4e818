package batch

import (
	"cmp"
	"context"
	"slices"
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

func placeOf(i *item) Place { return Place{i.owner, i.rank} }

func compare(a, b item) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.n, b.n)) }

// TestFairQueueProperties plays any mix of adding and taking against a list.
func TestFairQueueProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := newFair(placeOf)
		waiting := map[int64][]item{}
		missed := map[int64]int{} // items that others got since the owner's last one
		next, size := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				owner, n := rapid.Int64Range(1, 6).Draw(t, "owner"), rapid.IntRange(1, 40).Draw(t, "count")
				var items []item
				for range n {
					items = append(items, item{owner, rapid.Int64Range(0, 9).Draw(t, "rank"), next})
					next++
				}
				waiting[owner] = append(waiting[owner], items...)
				f.push(items)
				clear(items) // the queue has its own copy
				size += n
			},
			"take": func(t *rapid.T) {
				limit := rapid.IntRange(1, 25).Draw(t, "limit")
				owners := len(f.owners)
				before := map[int64]int{}
				for owner, w := range waiting {
					before[owner] = len(w)
				}
				got := f.pop(limit)
				part := max(limit/floodPart, 1)
				if least := min(limit, size); len(got) > least || len(got) < min(least, part) || owners == 1 && size <= limit && len(got) != size {
					t.Fatalf("took %d of %d, limit %d", len(got), size, limit)
				}
				size -= len(got)
				share := map[int64]int{}
				last := map[int64]item{}
				for _, g := range got {
					share[g.owner]++
					at := slices.IndexFunc(waiting[g.owner], func(w item) bool { return w.n == g.n })
					if at < 0 {
						t.Fatalf("item %d came twice, or was never added", g.n)
					}
					waiting[g.owner] = slices.Delete(waiting[g.owner], at, at+1)
					if p, ok := last[g.owner]; ok && compare(p, g) >= 0 {
						t.Fatalf("owner %d: %v before %v", g.owner, p, g)
					}
					last[g.owner] = g
				}
				for owner, taken := range last {
					for _, w := range waiting[owner] {
						if compare(w, taken) < 0 {
							t.Fatalf("owner %d: %v was taken and %v waits", owner, taken, w)
						}
					}
				}
				for owner, had := range before {
					// Equal shares, up to one for who is served first.
					fairShare := min(had, limit/max(owners, 1))
					if had > limit { // a flood
						fairShare = min(fairShare, part)
						if owners > 1 && share[owner] > part {
							t.Fatalf("owner %d floods and got %d of %d", owner, share[owner], len(got))
						}
					}
					if share[owner] < fairShare {
						t.Fatalf("owner %d with %d items got %d of %d among %d owners", owner, had, share[owner], len(got), owners)
					}
					if had == 0 {
						continue
					}
					if missed[owner] += len(got) - share[owner]; share[owner] > 0 {
						missed[owner] = 0
					} else if missed[owner] >= 6 {
						t.Fatalf("owner %d got nothing of %d items", owner, missed[owner])
					}
				}
			},
			"": func(t *rapid.T) {
				if f.len() != size {
					t.Fatalf("%d items wait, not %d", f.len(), size)
				}
				if len(f.ring) != len(f.owners) {
					t.Fatalf("%d in the ring, %d owners", len(f.ring), len(f.owners))
				}
			},
		})
		for f.len() > 0 { // what remains comes out in order
			f.pop(1)
		}
		if f.len() != 0 || len(f.owners) != 0 || len(f.ring) != 0 {
			t.Fatalf("%d items, %d owners left", f.len(), len(f.owners))
		}
	})
}

// TestRankDecidesAmongWhatWaits: an urgent item that comes later goes first.
func TestRankDecidesAmongWhatWaits(t *testing.T) {
	f := newFair(placeOf)
	f.push([]item{{1, 5, 0}, {1, 3, 1}, {1, 5, 2}})
	require.Equal(t, []item{{1, 3, 1}}, f.pop(1))
	f.push([]item{{1, 1, 3}, {1, 9, 4}})
	require.Equal(t, []item{{1, 1, 3}, {1, 5, 0}, {1, 5, 2}, {1, 9, 4}}, f.pop(9))
}

// TestAFloodDelaysNobodyElse: while one owner has a backlog of seconds, each
// item of another one is in the batch that begins next, and neither that one nor
// the one before it is long. A batch takes as long as it does on MariaDB.
func TestAFloodDelaysNobodyElse(t *testing.T) {
	const size, fixed, each = 200, 3 * time.Millisecond, 40 * time.Microsecond
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		type sent struct {
			owner int64
			at    time.Time
		}
		waits := map[int64][]time.Duration{}
		var batches []int
		q := NewFair(1, size, func(s *sent) Place { return Place{Owner: s.owner} }, func(_ context.Context, items []sent) {
			time.Sleep(fixed + time.Duration(len(items))*each)
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
		part := fixed + (size/floodPart+1)*each
		require.LessOrEqual(t, waits[2][197], 2*part, "the batch under way, and its own")
		require.LessOrEqual(t, waits[2][199], fixed+size*each+part, "the first one met a full batch")
		require.Greater(t, slices.Max(waits[1]), 6*time.Second, "it was a flood")
		require.Equal(t, size, batches[0])
		require.Equal(t, size, batches[len(batches)-2], "alone again, the flood goes in full batches")
	})
}
