package ledger

import (
	"math/bits"
	"time"

	"github.com/carillon-sched/carillon/admin/verify"
)

// lateness counts durations in buckets: whole milliseconds up to 64, then 32
// buckets for each doubling, so that a percentile is right within 3 %.
type lateness struct {
	buckets [64 + 32*40]int
	count   int
	max     time.Duration
}

func (l *lateness) add(d time.Duration) {
	l.buckets[bucketOf(d.Milliseconds())]++
	l.count++
	l.max = max(l.max, d)
}

// bucketOf numbers milliseconds.
func bucketOf(ms int64) int {
	if ms < 64 {
		return int(ms)
	}
	shift := bits.Len64(uint64(ms)) - 6
	return min(32*shift+int(ms>>shift), 64+32*40-1)
}

// upper is the last millisecond of a bucket.
func upper(bucket int) int64 {
	if bucket < 64 {
		return int64(bucket)
	}
	shift := bucket/32 - 1
	return (int64(bucket-32*shift)+1)<<shift - 1
}

func (l *lateness) percentile(p int) time.Duration {
	rank := (l.count-1)*p/100 + 1
	for bucket, n := range l.buckets {
		if rank -= n; rank <= 0 && n > 0 {
			return min(time.Duration(upper(bucket))*time.Millisecond, l.max)
		}
	}
	return l.max
}

func (l *lateness) stats() verify.Stats {
	if l.count == 0 {
		return verify.Stats{}
	}
	return verify.Stats{Count: l.count, P50: l.percentile(50), P99: l.percentile(99), Max: l.max}
}
