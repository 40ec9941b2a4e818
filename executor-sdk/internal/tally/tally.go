// Package tally answers one question: how often, and how long did it take?
//
// It counts durations in fixed buckets, without locks, so that whoever is
// measured pays some nanoseconds and nothing has to be switched on.
package tally

import (
	"sort"
	"sync/atomic"
	"time"
)

// Bounds are the upper ends of the buckets; one more takes the rest.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond,
	50 * time.Millisecond, 100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
}

// Durations counts durations. The zero value is ready; it must not be copied.
type Durations struct {
	buckets [len(Bounds) + 1]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

// Add counts one.
func (d *Durations) Add(took time.Duration) {
	i := sort.Search(len(Bounds), func(i int) bool { return took <= Bounds[i] })
	d.buckets[i].Add(1)
	d.sum.Add(int64(took))
}

// Read returns how many were at most as long as each bound, all of them, and
// their sum. What is added meanwhile may be in one of these and not the other.
func (d *Durations) Read() (upTo []uint64, count uint64, sum time.Duration) {
	upTo = make([]uint64, len(Bounds))
	for i := range Bounds {
		count += d.buckets[i].Load()
		upTo[i] = count
	}
	return upTo, count + d.buckets[len(Bounds)].Load(), time.Duration(d.sum.Load())
}
