package batch

import (
	"sync"
	"time"
)

// Floods bounds how many flushes of floods are under way at once in several
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
type Floods struct {
	after func(rest time.Duration, do func()) // fixed after construction

	mu     sync.Mutex // taken with a queue's lock held; takes none itself
	free   int
	queues []*flooded // by rank, the last step first
}

// flooded is one queue's wish.
type flooded struct {
	floods *Floods
	wake   func()
	wants  bool // guarded by floods.mu
}

// NewFloods returns a bound of n flushes.
func NewFloods(n int) *Floods {
	return &Floods{free: n, after: func(rest time.Duration, do func()) { time.AfterFunc(rest, do) }}
}

// join adds a queue; earlier ones come first.
func (f *Floods) join(wake func()) *flooded {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := &flooded{floods: f, wake: wake}
	f.queues = append(f.queues, q)
	return q
}

// enter takes a place. Without one, wake is called when there may be one.
func (q *flooded) enter() bool {
	if q == nil {
		return true
	}
	f := q.floods
	f.mu.Lock()
	defer f.mu.Unlock()
	if q.wants = f.free == 0 || f.firstLocked(q); q.wants {
		return false
	}
	f.free--
	return true
}

// firstLocked reports whether a queue before q waits for a place.
func (f *Floods) firstLocked(q *flooded) bool {
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

// pass withdraws the wish of a queue that has no flood, or no worker for it.
func (q *flooded) pass() {
	if q == nil {
		return
	}
	q.floods.mu.Lock()
	defer q.floods.mu.Unlock()
	if q.wants {
		q.wants = false
		q.floods.wakeLocked()
	}
}

// leave gives a place back after its rest. The queue's worker is about to look
// for more, so the queue counts as wishing until that has entered or passed.
func (q *flooded) leave(took time.Duration) {
	if q == nil {
		return
	}
	f := q.floods
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

func (f *Floods) wakeLocked() {
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
