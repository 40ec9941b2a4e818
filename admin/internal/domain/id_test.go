package domain

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestIDSourceIsUniqueOverGoroutinesAndClockSteps(t *testing.T) {
	const goroutines, each = 8, 20_000
	var reads atomic.Int64
	// The clock jumps back by a minute and forward again, over and over.
	now := func() time.Time {
		n := reads.Add(1)
		at := t0.Add(time.Duration(n/100) * time.Millisecond)
		if n%5000 > 4000 {
			at = at.Add(-time.Minute)
		}
		return at
	}
	sources := []*IDSource{NewIDSource(1, now), NewIDSource(MaxNodeID, now)}
	made := make([][]int64, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for range each {
				made[g] = append(made[g], sources[g%2].Next())
			}
		})
	}
	wg.Wait()

	seen := make(map[int64]struct{}, goroutines*each)
	for _, ids := range made {
		for i, id := range ids {
			require.Positive(t, id)
			if i > 0 && id <= ids[i-1] {
				t.Fatalf("one caller got %d after %d: ids must grow", id, ids[i-1])
			}
			seen[id] = struct{}{}
		}
	}
	require.Len(t, seen, goroutines*each)
}

func TestIDSourceBorrowsFromTheNextMillisecond(t *testing.T) {
	frozen := func() time.Time { return t0 }
	s := NewIDSource(7, frozen)
	last := s.Next()
	for range 3 << idSeqBits {
		id := s.Next()
		require.Greater(t, id, last)
		require.Equal(t, int64(7), id>>idSeqBits&MaxNodeID, "the node stands in every id")
		last = id
	}
	require.Equal(t, t0.UnixMilli()-idEpoch+3, last>>(idNodeBits+idSeqBits))
}

func TestIDSourceBeforeItsEpoch(t *testing.T) {
	s := NewIDSource(1, func() time.Time { return time.Unix(0, 0) })
	a, b := s.Next(), s.Next()
	require.Positive(t, a)
	require.Greater(t, b, a)
}

func TestPartitionOfSpreads(t *testing.T) {
	const jobs = 64_000
	clock := t0
	s := NewIDSource(1, func() time.Time { return clock })
	for _, row := range []struct {
		name string
		id   func(i int) JobID
	}{
		{"made in one burst", func(int) JobID { return JobID(s.Next()) }},
		{"one a second", func(i int) JobID { clock = t0.Add(time.Duration(i) * time.Second); return JobID(s.Next()) }},
		{"one a minute", func(i int) JobID { clock = t0.Add(time.Duration(i) * time.Minute); return JobID(s.Next()) }},
		{"counted", func(i int) JobID { return JobID(i + 1) }},
		{"multiples of 4096", func(i int) JobID { return JobID(i+1) << 12 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			counts := make([]int, Partitions)
			for i := range jobs {
				p := PartitionOf(row.id(i))
				require.GreaterOrEqual(t, p, 0)
				require.Less(t, p, Partitions)
				counts[p]++
			}
			for p, n := range counts {
				if n < jobs/Partitions/2 || n > jobs/Partitions*2 {
					t.Errorf("partition %d has %d jobs, fair are %d", p, n, jobs/Partitions)
				}
			}
		})
	}
	require.Equal(t, PartitionOf(12345), PartitionOf(12345))
}

func TestParseID(t *testing.T) {
	id, err := ParseID[JobID]("9007199254740993") // beyond what a browser's number can hold
	require.NoError(t, err)
	require.Equal(t, JobID(9007199254740993), id)
	require.Equal(t, "9007199254740993", id.String())
	for _, bad := range []string{"", "0", "-1", "1.5", "0x10", "9223372036854775808", "1 ", "abc"} {
		_, err := ParseID[ExecutionID](bad)
		require.Equal(t, CodeNotFound, CodeOf(err), "%q", bad)
	}
}

func TestFirstWithin(t *testing.T) {
	size := func(n *int) int64 { return int64(*n) }
	for _, c := range []struct {
		list []int
		want int
	}{{nil, 0}, {[]int{3, 3}, 2}, {[]int{5, 5, 1}, 2}, {[]int{10, 1}, 1}, {[]int{99}, 1}, {[]int{9, 9, 9}, 2}} {
		require.Equal(t, c.want, FirstWithin(c.list, 10, size), "%v", c.list)
	}
}
