package batch

import (
	"slices"
	"time"
)

// Place says whose an item is and where it stands among that owner's.
type Place struct {
	// Owner is who shares the queue with others: a tenant.
	Owner int64
	// Rank orders the items of one owner, lowest first; equal ones keep the
	// order in which they came.
	Rank int64
	// Newest lets the item go before older ones of its owner while these have
	// waited for longer than late: the two kinds take turns then. FreshRank
	// orders such items, lowest first.
	Newest    bool
	FreshRank int64
}

// late is how long the first of an owner's items may wait before what comes new
// takes turns with it. Without that everything is late once there is a backlog,
// and goes on being late until the backlog is gone (docs/adr/0048).
const late = 2 * time.Second

// pruneEvery is how often items that are of no use any more are looked for.
const pruneEvery = time.Second

// fair holds items by owner and hands them out in turn: one of each owner that
// has any, then the next of each (deficit round robin where all items cost the
// same). An owner who floods the queue only waits for himself.
//
// While items of several owners come, those who flood and the others are
// flushed apart: the others have a worker of their own, so that they wait
// neither for the flood's batch under way nor in it, and what floods gets half
// of the workers and a part of a batch, so that their flushes, too, find the
// database free. Without others a flood has all of it.
type fair[T any] struct {
	// fixed after construction
	place       func(*T) Place
	workers     int
	ordered     bool // an owner's items are in one flush at a time
	flushLimit  *limitedQueue
	countsInto  *Backpressure
	throttledBy *Backpressure
	now         func() time.Time
	dead        func(*T) bool // nil: none is
	dropped     func([]T)

	pruned time.Time // when dead items were looked for last

	owners map[int64]*owner[T]
	ring   []*owner[T] // those that have items; the first one is served next
	size   int
	count  uint64 // of all items ever, to keep equal ones in order

	floods, others int            // flushes under way; without several owners all are floods
	busy           map[int64]bool // owners with items under way; used when ordered

	last     int64     // owner of the newest item
	mixedTil time.Time // items of several owners have come within mixedFor
}

const (
	// mixedFor is how long after items of several owners came a flood is
	// still taken in parts.
	mixedFor = time.Second
	// floodPart is the part of a batch beyond which what an owner has waiting
	// is a flood, and which it gets then: a quarter costs about half of what a
	// batch of 200 does, commit included.
	floodPart = 4
)

// owner holds one owner's items: each is in one of two heaps. items goes by rank.
// fresh has what came while the first of items had waited for too long, the best
// by its fresh rank first.
type owner[T any] struct {
	id    int64
	items heap[T]
	fresh heap[T]
	turn  bool // the next one is of fresh
	left  int  // what it may still take of this batch
}

func (o *owner[T]) len() int { return len(o.items) + len(o.fresh) }

func (o *owner[T]) push(p Place, e entry[T]) {
	if p.Newest && len(o.items) > 0 && e.since.Sub(o.items[0].since) > late {
		e.rank = p.FreshRank
		o.fresh.push(e)
		return
	}
	o.items.push(e)
}

func (o *owner[T]) pop() entry[T] {
	if len(o.fresh) > 0 && (o.turn || len(o.items) == 0) {
		o.turn = false
		return o.fresh.pop()
	}
	o.turn = true
	return o.items.pop()
}

// heap is a binary heap.
type heap[T any] []entry[T]

// entry points into the slice that Add was given a copy of: items can be large,
// and the heap moves them about.
type entry[T any] struct {
	rank  int64
	seq   uint64
	since time.Time // when it was added
	item  *T
}

func (e entry[T]) before(o entry[T]) bool {
	return e.rank < o.rank || e.rank == o.rank && e.seq < o.seq
}

func newFair[T any](workers int, place func(*T) Place) *fair[T] {
	return &fair[T]{place: place, workers: workers, now: time.Now, owners: map[int64]*owner[T]{}, busy: map[int64]bool{}}
}

func (f *fair[T]) len() int { return f.size }

func (f *fair[T]) push(items []T) {
	f.prune()
	own := append([]T(nil), items...)
	now := f.now()
	for i := range own {
		p := f.place(&own[i])
		o := f.owners[p.Owner]
		if o == nil {
			o = &owner[T]{id: p.Owner}
			f.owners[p.Owner] = o
			f.ring = append(f.ring, o)
		}
		if len(f.ring) > 1 || p.Owner != f.last && f.count > 0 {
			f.mixedTil = now.Add(mixedFor)
		}
		f.last = p.Owner
		o.push(p, entry[T]{rank: p.Rank, seq: f.count, since: now, item: &own[i]})
		f.countsInto.add(o.id, 1)
		f.count++
		f.size++
	}
}

// prune drops the dead items, now and then: who is at the end of a long queue
// would count as waiting until his turn comes.
func (f *fair[T]) prune() {
	now := f.now()
	if f.dead == nil || now.Sub(f.pruned) < pruneEvery {
		return
	}
	f.pruned = now
	var dropped []T
	for _, o := range slices.Clone(f.ring) {
		before := o.len()
		for _, h := range []*heap[T]{&o.items, &o.fresh} {
			h.prune(f.dead, &dropped)
		}
		f.countsInto.add(o.id, o.len()-before)
		f.size += o.len() - before
		if o.len() == 0 {
			delete(f.owners, o.id)
			f.ring = slices.DeleteFunc(f.ring, func(other *owner[T]) bool { return other == o })
		}
	}
	if len(dropped) > 0 {
		f.dropped(dropped)
	}
}

func (f *fair[T]) take(limit int) ([]T, func()) {
	f.prune()
	if len(f.ring) < 2 && !f.now().Before(f.mixedTil) {
		f.flushLimit.withdraw()
		if f.floods+f.others >= f.workers {
			return nil, nil
		}
		return f.flush(&f.floods, limit, limit, func(*owner[T]) bool { return true })
	}
	part := max(limit/floodPart, 1)
	flood := func(o *owner[T]) bool { return o.len() > part && !f.busy[o.id] && !f.throttledBy.exceeded(o.id) }
	floods := f.floods < (f.workers+1)/2 && slices.ContainsFunc(f.ring, flood)
	if !floods {
		f.flushLimit.withdraw()
	}
	if f.others < f.workers {
		items, done := f.flush(&f.others, limit, limit, func(o *owner[T]) bool { return o.len() <= part })
		if len(items) > 0 {
			return items, done
		}
	}
	if !floods || !f.flushLimit.acquire() {
		return nil, nil
	}
	items, done := f.flush(&f.floods, limit, part, flood)
	began := f.now()
	return items, func() { done(); f.flushLimit.release(f.now().Sub(began)) }
}

// unbind ends what others have to say about this queue.
func (f *fair[T]) unbind() {
	f.flushLimit.withdraw()
	f.flushLimit, f.throttledBy = nil, nil
}

// flush takes up to limit items, at most share of one owner, from those that
// are of this kind, and counts the flush as under way until it is done.
func (f *fair[T]) flush(underWay *int, limit, share int, kind func(*owner[T]) bool) ([]T, func()) {
	var turn, rest []*owner[T]
	for _, o := range f.ring {
		if kind(o) && !f.busy[o.id] && !f.throttledBy.exceeded(o.id) {
			o.left = share
			turn = append(turn, o)
		} else {
			rest = append(rest, o)
		}
	}
	if len(turn) == 0 {
		return nil, nil
	}
	var ids []int64
	if f.ordered {
		for _, o := range turn[:min(len(turn), limit)] {
			ids = append(ids, o.id)
			f.busy[o.id] = true
		}
	}
	out := make([]T, 0, min(limit, f.size))
	for len(out) < limit && len(turn) > 0 {
		o := turn[0]
		turn = turn[1:]
		out = append(out, *o.pop().item)
		f.countsInto.add(o.id, -1)
		f.size--
		o.left--
		switch {
		case o.len() == 0:
			delete(f.owners, o.id)
		case o.left == 0:
			rest = append(rest, o)
		default:
			turn = append(turn, o)
		}
	}
	f.ring = append(turn, rest...)
	*underWay++
	return out, func() {
		*underWay--
		for _, id := range ids {
			delete(f.busy, id)
		}
	}
}

// push mostly adds what belongs at the end: then nothing moves.
func (h *heap[T]) push(e entry[T]) {
	items := append(*h, e)
	at := len(items) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if !e.before(items[parent]) {
			break
		}
		items[at] = items[parent]
		at = parent
	}
	items[at] = e
	*h = items
}

func (h *heap[T]) pop() entry[T] {
	items := *h
	first, last := items[0], items[len(items)-1]
	items[len(items)-1] = entry[T]{} // the item is not kept alive
	items = items[:len(items)-1]
	if len(items) > 0 {
		items.down(0, last)
	}
	*h = items
	return first
}

// down puts e where it belongs below at, of which there is nothing now.
func (h heap[T]) down(at int, e entry[T]) {
	for {
		child := 2*at + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(e) {
			break
		}
		h[at] = h[child]
		at = child
	}
	h[at] = e
}

// prune takes out what is dead.
func (h *heap[T]) prune(dead func(*T) bool, dropped *[]T) {
	kept := slices.DeleteFunc(*h, func(e entry[T]) bool {
		is := dead(e.item)
		if is {
			*dropped = append(*dropped, *e.item)
		}
		return is
	})
	if len(kept) == len(*h) {
		return
	}
	for at := len(kept)/2 - 1; at >= 0; at-- {
		kept.down(at, kept[at])
	}
	*h = kept
}

// fifo hands items out as they came.
type fifo[T any] struct{ items []T }

func (f *fifo[T]) len() int       { return len(f.items) }
func (f *fifo[T]) push(items []T) { f.items = append(f.items, items...) }

func (f *fifo[T]) take(limit int) (out []T, done func()) {
	if len(f.items) <= limit {
		out, f.items = f.items, nil
		return out, nil
	}
	out = f.items[:limit:limit]
	f.items = f.items[limit:]
	return out, nil
}
