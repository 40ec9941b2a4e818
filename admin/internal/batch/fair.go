package batch

import "time"

// Place says whose an item is and where it stands among that owner's.
type Place struct {
	// Owner is who shares the queue with others: a tenant.
	Owner int64
	// Rank orders the items of one owner, lowest first; equal ones keep the
	// order in which they came.
	Rank int64
}

// fair holds items by owner and hands them out in turn: one of each owner that
// has any, then the next of each (deficit round robin where all items cost the
// same). An owner who floods the queue only waits for himself: another one's
// item is in the batch that is taken next, unless there are more owners than
// the batch has places, and then in one of the following.
//
// A full batch takes several times as long as a small one, and others wait for
// the one under way and for their own. So an owner with more than a whole batch
// in the queue gets a part of one only, while others come too.
type fair[T any] struct {
	place  func(*T) Place
	owners map[int64]*owner[T]
	ring   []*owner[T] // those that have items; the first one is served next
	size   int
	count  uint64 // of all items ever, to keep equal ones in order

	last     int64     // owner of the newest item
	mixedTil time.Time // items of several owners have come within mixedFor
}

const (
	// mixedFor is how long after items of several owners came a flood is
	// still taken in parts.
	mixedFor = time.Second
	// floodPart is the part of a batch that an owner with a flood gets then: a
	// quarter costs about half of what a batch of 200 does, commit included.
	floodPart = 4
)

// owner is a binary heap of one owner's items.
type owner[T any] struct {
	id    int64
	items []entry[T]
	left  int // what it may still take of this batch
}

// entry points into the slice that Add was given a copy of: items can be large,
// and the heap moves them about.
type entry[T any] struct {
	rank int64
	seq  uint64
	item *T
}

func (e entry[T]) before(o entry[T]) bool {
	return e.rank < o.rank || e.rank == o.rank && e.seq < o.seq
}

func newFair[T any](place func(*T) Place) *fair[T] {
	return &fair[T]{place: place, owners: map[int64]*owner[T]{}}
}

func (f *fair[T]) len() int { return f.size }

func (f *fair[T]) push(items []T) {
	own := append([]T(nil), items...)
	for i := range own {
		p := f.place(&own[i])
		o := f.owners[p.Owner]
		if o == nil {
			o = &owner[T]{id: p.Owner}
			f.owners[p.Owner] = o
			f.ring = append(f.ring, o)
		}
		if len(f.ring) > 1 || p.Owner != f.last && f.count > 0 {
			f.mixedTil = time.Now().Add(mixedFor)
		}
		f.last = p.Owner
		o.push(entry[T]{rank: p.Rank, seq: f.count, item: &own[i]})
		f.count++
		f.size++
	}
}

func (f *fair[T]) pop(limit int) []T {
	part := limit
	if len(f.ring) > 1 || f.size > limit && time.Now().Before(f.mixedTil) {
		part = max(limit/floodPart, 1)
	}
	for _, o := range f.ring {
		if o.left = limit; len(o.items) > limit {
			o.left = part
		}
	}
	out := make([]T, 0, min(limit, f.size))
	var served []*owner[T] // they have had their part
	for len(out) < limit && len(f.ring) > 0 {
		o := f.ring[0]
		f.ring[0] = nil
		f.ring = f.ring[1:]
		out = append(out, *o.pop().item)
		f.size--
		o.left--
		switch {
		case len(o.items) == 0:
			delete(f.owners, o.id)
		case o.left == 0:
			served = append(served, o)
		default:
			f.ring = append(f.ring, o)
		}
	}
	f.ring = append(f.ring, served...)
	return out
}

// push mostly adds what belongs at the end: then nothing moves.
func (o *owner[T]) push(e entry[T]) {
	o.items = append(o.items, e)
	at := len(o.items) - 1
	for at > 0 {
		parent := (at - 1) / 2
		if !e.before(o.items[parent]) {
			break
		}
		o.items[at] = o.items[parent]
		at = parent
	}
	o.items[at] = e
}

func (o *owner[T]) pop() entry[T] {
	first, last := o.items[0], o.items[len(o.items)-1]
	o.items[len(o.items)-1] = entry[T]{} // the item is not kept alive
	o.items = o.items[:len(o.items)-1]
	if len(o.items) == 0 {
		return first
	}
	at := 0
	for {
		child := 2*at + 1
		if child >= len(o.items) {
			break
		}
		if child+1 < len(o.items) && o.items[child+1].before(o.items[child]) {
			child++
		}
		if !o.items[child].before(last) {
			break
		}
		o.items[at] = o.items[child]
		at = child
	}
	o.items[at] = last
	return first
}

// fifo hands items out as they came.
type fifo[T any] struct{ items []T }

func (f *fifo[T]) len() int       { return len(f.items) }
func (f *fifo[T]) push(items []T) { f.items = append(f.items, items...) }

func (f *fifo[T]) pop(limit int) (out []T) {
	if len(f.items) <= limit {
		out, f.items = f.items, nil
		return out
	}
	out = f.items[:limit:limit]
	f.items = f.items[limit:]
	return out
}
