package batch

import (
	"sync"
	"time"
)

// FlushLimit bounds how many flushes of floods are under way at once in several
// queues together. They share a database and its processors with everybody
// else: with a flush of each queue under way, those of the owners who have
// little would find all of it busy. It bounds nothing while a queue has one
// owner only.
//
// A place rests for as long as the flush has taken. Where processors are to
// spare, that is little; where there are none, the flush took long because
// everybody waited for them, and the others get through in its rest.
//
// A place that becomes free goes to the queue that comes last on the path of
// the items and has a flood: what has been begun is ended first.
type FlushLimit struct {
	after func(rest time.Duration, do func()) // fixed after construction

	mu     sync.Mutex // taken with a queue's lock held; takes none itself
	free   int
	queues []*limitedQueue // by rank, the last step first
}

// limitedQueue is one queue's wish.
type limitedQueue struct {
	limit *FlushLimit
	wake  func()
	wants bool // guarded by limit.mu
}

// NewFlushLimit returns a bound of n flushes.
func NewFlushLimit(n int) *FlushLimit {
	return &FlushLimit{free: n, after: func(rest time.Duration, do func()) { time.AfterFunc(rest, do) }}
}

// join adds a queue; earlier ones come first.
func (f *FlushLimit) join(wake func()) *limitedQueue {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := &limitedQueue{limit: f, wake: wake}
	f.queues = append(f.queues, q)
	return q
}

// acquire takes a place. Without one, wake is called when there may be one.
func (q *limitedQueue) acquire() bool {
	if q == nil {
		return true
	}
	f := q.limit
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.wants = f.free == 0 || f.firstLocked(q); q.wants {
		return false
	}
	f.free--
	return true
}

// firstLocked reports whether a queue before q waits for a place.
func (f *FlushLimit) firstLocked(q *limitedQueue) bool {
	for _, other := range f.queues {
		if other == q {
			return false
		}
		if other.wants {
			return true
		}
	}
	return false
}

// withdraw ends the wish of a queue that has no flood, or no worker for it.
func (q *limitedQueue) withdraw() {
	if q == nil {
		return
	}
	q.limit.mu.Lock()
	defer q.limit.mu.Unlock()
	if q.wants {
		q.wants = false
		q.limit.wakeLocked()
	}
}

// release gives a place back after its rest. The queue's worker is about to look
// for more, so the queue counts as wishing until that has acquired or withdrawn.
func (q *limitedQueue) release(took time.Duration) {
	if q == nil {
		return
	}
	f := q.limit
	f.mu.Lock()
	q.wants = true
	f.mu.Unlock()
	f.after(took, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.free++
		f.wakeLocked()
	})
}

func (f *FlushLimit) wakeLocked() {
	if f.free == 0 {
		return
	}
	for _, q := range f.queues {
		if q.wants {
			q.wake()
			return
		}
	}
}
