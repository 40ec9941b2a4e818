package batch_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/batch"
)

func TestALoneItemGoesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var got atomic.Int64
		q := batch.New(1, 10, func(_ context.Context, items []int) { got.Add(int64(len(items))) })
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		q.Add(1)
		synctest.Wait() // no virtual time passes
		require.Equal(t, int64(1), got.Load())
		cancel()
		<-done
	})
}

func TestItemsPileUpIntoBatchesWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var sizes []int
		q := batch.New(1, 100, func(_ context.Context, items []int) {
			time.Sleep(time.Second)
			mu.Lock()
			sizes = append(sizes, len(items))
			mu.Unlock()
		})
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		q.Add(0)
		synctest.Wait()
		for i := range 150 {
			q.Add(i)
		}
		time.Sleep(10 * time.Second)
		cancel()
		<-done
		require.Equal(t, []int{1, 100, 50}, sizes)
	})
}

func TestEveryItemIsFlushedOnceEvenWhenStopping(t *testing.T) {
	const producers, each = 8, 500
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	seen := map[int]int{}
	q := batch.New(3, 64, func(_ context.Context, items []int) {
		mu.Lock()
		for _, i := range items {
			seen[i]++
		}
		mu.Unlock()
	})
	done := make(chan struct{})
	go func() { q.Run(ctx); close(done) }()
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				q.Add(p*each + i)
			}
		})
	}
	wg.Wait()
	cancel()
	<-done
	require.Len(t, seen, producers*each)
	for i, n := range seen {
		require.Equal(t, 1, n, "item %d", i)
	}
}

// A panic costs the item that it is about; all others are flushed, though their
// flush is repeated.
func TestAPanicCostsOneItem(t *testing.T) {
	for _, bad := range [][]int{{0}, {99}, {3, 4, 77}} {
		poison := map[int]bool{}
		for _, i := range bad {
			poison[i] = true
		}
		done, aside := map[int]bool{}, map[int]string{}
		q := batch.New(1, 200, func(_ context.Context, items []int) {
			for n, i := range items {
				if poison[i] {
					panic("poison")
				}
				done[i] = true
				items[n] = -1 // it owns them
			}
		})
		q.Guards(func(i int, err error) { aside[i] = err.Error() })
		for i := range 100 {
			q.Add(i)
		}
		q.Flush(t.Context())
		require.Len(t, done, 100-len(bad))
		require.Len(t, aside, len(bad))
		for _, i := range bad {
			require.Equal(t, "panic: poison", aside[i])
			require.False(t, done[i])
		}
	}
}
