package batch

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
type fair[T any] struct {
	place  func(*T) Place
	owners map[int64]*owner[T]
	ring   []*owner[T] // those that have items; the first one is served next
	size   int
	count  uint64 // of all items ever, to keep equal ones in order
}

// owner is a binary heap of one owner's items.
type owner[T any] struct {
	id    int64
	items []entry[T]
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
		o.push(entry[T]{rank: p.Rank, seq: f.count, item: &own[i]})
		f.count++
		f.size++
	}
}

func (f *fair[T]) pop(limit int) []T {
	out := make([]T, 0, min(limit, f.size))
	for len(out) < cap(out) {
		o := f.ring[0]
		f.ring[0] = nil
		f.ring = f.ring[1:]
		out = append(out, *o.pop().item)
		f.size--
		if len(o.items) == 0 {
			delete(f.owners, o.id)
		} else {
			f.ring = append(f.ring, o)
		}
	}
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
