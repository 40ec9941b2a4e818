package sim

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

// loop is the only clock, and the only order of events.
type loop struct {
	now   time.Duration // since the world began
	rng   *rand.Rand    // breaks ties
	queue events
	made  uint64
	steps int
	hash  uint64 // of all that has happened
	tail  [64]traced
	told  int // how often something was traced
}

// traced is one thing that happened, for reading a failure.
type traced struct {
	at   time.Duration
	who  string
	what string
	a, b int64
}

type event struct {
	at   time.Duration
	tie  uint64
	made uint64
	who  *actor // nil: nobody can pause or crash
	life int
	do   func()
}

type events []*event

func (q events) Len() int { return len(q) }
func (q events) Less(i, j int) bool {
	a, b := q[i], q[j]
	if a.at != b.at {
		return a.at < b.at
	}
	if a.tie != b.tie {
		return a.tie < b.tie
	}
	return a.made < b.made
}
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)   { *q = append(*q, x.(*event)) }
func (q *events) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}

// actor is a process: what is its own ends with its life, and waits while it
// is paused.
type actor struct {
	name   string
	life   int
	alive  bool
	paused time.Duration // until then
	done   func()        // after each of its events; may be nil
}

// after lets f happen in d. who may be nil.
func (l *loop) after(who *actor, d time.Duration, f func()) {
	e := &event{at: l.now + max(d, 0), tie: l.rng.Uint64(), made: l.made, who: who, do: f}
	if who != nil {
		e.life = who.life
	}
	l.made++
	heap.Push(&l.queue, e)
}

// step lets the next event happen; false: there is none before end.
func (l *loop) step(end time.Duration) bool {
	for len(l.queue) > 0 && l.queue[0].at <= end {
		e := heap.Pop(&l.queue).(*event)
		if w := e.who; w != nil {
			if w.life != e.life || !w.alive {
				continue
			}
			if w.paused > e.at { // it happens as soon as the process goes on, in the same order
				e.at, e.tie = w.paused, 0
				heap.Push(&l.queue, e)
				continue
			}
		}
		l.now = e.at
		l.steps++
		e.do()
		if e.who != nil && e.who.done != nil && e.who.alive {
			e.who.done()
		}
		return true
	}
	return false
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// trace adds to the hash of what has happened.
func (l *loop) trace(who, what string, a, b int64) {
	h := l.hash
	for _, s := range [...]string{who, what} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * fnvPrime
		}
	}
	for _, n := range [...]uint64{uint64(l.now), uint64(a), uint64(b)} {
		h = (h ^ n) * fnvPrime
		h ^= h >> 29
	}
	l.hash = h
	l.tail[l.told%len(l.tail)] = traced{l.now, who, what, a, b}
	l.told++
}
