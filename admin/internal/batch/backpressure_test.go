package batch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestABacklogHoldsItsOwnerBack: a first step that is quicker than the last one
// goes on only as the last one does; other owners notice nothing.
func TestABacklogHoldsItsOwnerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, batch, runs = 100, 10, 2000
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var others []time.Duration // how long the other owner's items took through both steps
		count, deepest := 0, 0
		backpressure := NewBackpressure(most)
		last := NewFair(1, batch, placeOf, func(_ context.Context, items []item) {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			count += len(items)
			for _, i := range items {
				if i.owner == 2 {
					others = append(others, time.Duration(time.Now().UnixNano()-i.rank))
				}
			}
		})
		first := NewOrdered(batch, placeOf, func(_ context.Context, items []item) {
			time.Sleep(time.Millisecond)
			last.Add(items...)
			mu.Lock()
			defer mu.Unlock()
			deepest = max(deepest, last.Len())
		})
		last.CountsInto(backpressure)
		first.ThrottledBy(backpressure)
		var wg sync.WaitGroup
		for _, q := range []*Queue[item]{first, last} {
			wg.Go(func() { q.Run(ctx) })
		}
		all := make([]item, runs)
		for i := range all {
			all[i].owner = 1
		}
		first.Add(all...)
		for range 20 {
			time.Sleep(37 * time.Millisecond)
			first.Add(item{owner: 2, rank: time.Now().UnixNano()})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		mu.Lock()
		require.Equal(t, runs+20, count, "nothing stays behind")
		require.LessOrEqual(t, deepest, most+2*batch)
		require.Greater(t, deepest, most/2, "there was a backlog")
		for _, took := range others {
			require.LessOrEqual(t, took, 25*time.Millisecond)
		}
		mu.Unlock()
		require.Empty(t, backpressure.waiting)
		cancel()
		wg.Wait()
	})
}
