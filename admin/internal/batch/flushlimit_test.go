package batch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFloodsOfSeveralQueuesTakeTurns: two queues with floods never flush them at
// once, and rest in between for as long as that takes; the one that comes last on
// the path goes first, other owners wait for neither, and everything is flushed.
func TestFloodsOfSeveralQueuesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Millisecond
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		floods, most, count := 0, 0, map[int64]int{}
		var ended time.Time // the last flush of a flood
		var ends []int      // which queue's flood was flushed, in order
		flush := func(queue int) func(context.Context, []item) {
			return func(_ context.Context, items []item) {
				mu.Lock()
				flood := len(items) == 10 // a part; the tail of 5 is none
				if flood {
					floods++
					if rest := time.Since(ended); rest < took {
						t.Errorf("a flood was flushed %v after another", rest)
					}
				}
				most = max(most, floods)
				mu.Unlock()
				time.Sleep(took)
				mu.Lock()
				defer mu.Unlock()
				if flood {
					floods--
					ended = time.Now()
					ends = append(ends, queue)
				}
				for _, i := range items {
					count[i.owner]++
					if i.owner == 2 && time.Now().UnixNano()-i.rank > int64(2*took) {
						t.Errorf("the other owner waited %v", time.Duration(time.Now().UnixNano()-i.rank))
					}
				}
			}
		}
		last, first := NewFair(2, 40, placeOf, flush(1)), NewOrdered(40, placeOf, flush(0))
		limit := NewFlushLimit(1)
		last.LimitFlushes(limit)
		first.LimitFlushes(limit)
		other := func(q *Queue[item]) { q.Add(item{owner: 2, rank: time.Now().UnixNano()}) }
		var wg sync.WaitGroup
		for _, q := range []*Queue[item]{last, first} {
			wg.Go(func() { q.Run(ctx) })
		}
		for _, q := range []*Queue[item]{first, last} {
			other(q) // items of several owners come: floods are bounded from now on
			synctest.Wait()
			time.Sleep(2 * took)
			all := make([]item, 405)
			for i := range all {
				all[i].owner = 1
			}
			q.Add(all...)
		}
		for range 30 {
			time.Sleep(3 * took)
			other(first)
			other(last)
			time.Sleep(took / 2)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, 1, most, "floods under way at once")
		require.Equal(t, map[int64]int{1: 810, 2: 62}, count)
		seen := 0 // floods of the last queue, once it had any
		for _, q := range ends[1:] {
			if q == 0 && seen > 0 && seen < 400/10-2 {
				t.Errorf("the first queue's flood went before the last one's, after %d of these", seen)
			}
			seen += q
		}
		mu.Unlock()
		cancel()
		wg.Wait()
	})
}

// TestNothingIsLeftBehindABoundWhenStopping: the last flush takes all that is
// queued, whoever else has the place.
func TestNothingIsLeftBehindABoundWhenStopping(t *testing.T) {
	limit := NewFlushLimit(1)
	holder := limit.join(func() {})
	require.True(t, holder.acquire())
	got := 0
	q := NewFair(1, 10, placeOf, func(_ context.Context, items []item) { got += len(items) })
	q.LimitFlushes(limit)
	for i := range 100 {
		q.Add(item{owner: int64(i % 2)})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q.Run(ctx)
	require.Equal(t, 100, got)
}
