package batch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/carillon-sched/carillon/admin/internal/batch"
)

// paced runs f with a queue whose flushes begin 10 ms apart, in virtual time;
// flushes returns how many items were flushed when.
func paced(t *testing.T, workers, added int, f func(q *batch.Queue[int], flushes func() map[time.Duration]int)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var mu sync.Mutex
		sizes := map[time.Duration]int{}
		q := batch.New(workers, 100, func(_ context.Context, items []int) {
			mu.Lock()
			sizes[time.Since(start)] += len(items)
			mu.Unlock()
			time.Sleep(time.Millisecond)
		})
		q.Pace(10 * time.Millisecond)
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()
		f(q, func() map[time.Duration]int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return sizes
		})
		cancel()
		<-done
		total := 0
		for _, n := range sizes {
			total += n
		}
		require.Equal(t, added, total, "nothing stays behind")
	})
}

func TestAPaceLetsItemsWaitForCompany(t *testing.T) {
	for _, workers := range []int{1, 3} {
		paced(t, workers, 31, func(q *batch.Queue[int], flushes func() map[time.Duration]int) {
			for i := range 30 {
				q.Add(i)
				time.Sleep(time.Millisecond)
			}
			time.Sleep(40 * time.Millisecond)
			q.Add(30)
			require.Equal(t, map[time.Duration]int{
				0:                     1, // alone, at once
				10 * time.Millisecond: flushes()[10*time.Millisecond],
				20 * time.Millisecond: flushes()[20*time.Millisecond],
				30 * time.Millisecond: flushes()[30*time.Millisecond],
				70 * time.Millisecond: 1, // after a silence, at once
			}, flushes())
			require.GreaterOrEqual(t, flushes()[10*time.Millisecond], 9)
			require.Equal(t, 29, flushes()[10*time.Millisecond]+flushes()[20*time.Millisecond]+flushes()[30*time.Millisecond])
		})
	}
}

func TestABatchThatFillsDoesNotWaitForThePace(t *testing.T) {
	paced(t, 2, 26, func(q *batch.Queue[int], flushes func() map[time.Duration]int) {
		q.Add(0)
		time.Sleep(2 * time.Millisecond)
		q.Add(1)
		time.Sleep(2 * time.Millisecond)
		q.Add(make([]int, 24)...) // a quarter of a batch
		require.Equal(t, map[time.Duration]int{0: 1, 4 * time.Millisecond: 25}, flushes())
	})
}

func TestThePaceDoesNotOutlastTheQueue(t *testing.T) {
	paced(t, 2, 2, func(q *batch.Queue[int], flushes func() map[time.Duration]int) {
		q.Add(0)
		time.Sleep(2 * time.Millisecond)
		q.Add(1)
		require.Equal(t, map[time.Duration]int{0: 1}, flushes())
	}) // it ends at 2 ms: see there
}

// TestWhatIsExpectedIsWaitedFor, for as long as it is worth it; once all is
// there, nothing waits for the pace.
func TestWhatIsExpectedIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		var mu sync.Mutex
		expected, until := 0, start
		sizes := map[time.Duration]int{}
		q := batch.New(2, 100, func(_ context.Context, items []int) {
			mu.Lock()
			defer mu.Unlock()
			sizes[time.Since(start)] += len(items)
		})
		q.Pace(10 * time.Millisecond)
		q.Expects(func() (time.Duration, bool) {
			mu.Lock()
			defer mu.Unlock()
			return time.Until(until), expected == 0
		})
		expect := func(n int, end time.Time) {
			mu.Lock()
			defer mu.Unlock()
			expected, until = n, end
		}
		done := make(chan struct{})
		go func() { q.Run(ctx); close(done) }()

		expect(2, at(20))
		q.Add(1)
		time.Sleep(time.Until(at(12)))
		expect(0, at(20))
		q.Add(2) // the last one, at 12 ms
		time.Sleep(time.Until(at(13)))
		q.Add(3) // nothing is expected, at 13 ms
		time.Sleep(time.Until(at(14)))
		expect(2, at(30))
		q.Add(4) // at 30 ms: the other does not come in time
		time.Sleep(time.Until(at(35)))
		q.Add(5) // it is late, at 40 ms: the pace
		time.Sleep(time.Until(at(60)))
		synctest.Wait()
		cancel()
		<-done
		ms := time.Millisecond
		require.Equal(t, map[time.Duration]int{12 * ms: 2, 13 * ms: 1, 30 * ms: 1, 40 * ms: 1}, sizes)
	})
}
