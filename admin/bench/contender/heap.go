package contender

import "github.com/carillon-sched/carillon/admin/internal/scheduler/pending"

// Heap is a 4-ary min-heap by instant. Four children a node make it half as
// deep as a binary heap, and the children's keys share a cache line. Values lie
// beside it and do not move; they know where in the heap they are, so that a
// cancelled one leaves at once. The zero Heap is ready for use.
type Heap[T any] struct {
	items  []heapItem
	values []heapValue[T]
	free   []uint32
}

type heapItem struct {
	at    int64
	value uint32
}

type heapValue[T any] struct {
	position   int32 // in items; -1 = free
	generation uint32
	value      T
}

const arity = 4

var _ pending.Queue[int] = (*Heap[int])(nil)

// Add implements pending.Queue.
func (h *Heap[T]) Add(at int64, value T) pending.Handle {
	var i uint32
	if n := len(h.free); n > 0 {
		i, h.free = h.free[n-1], h.free[:n-1]
	} else {
		i = uint32(len(h.values))
		h.values = append(h.values, heapValue[T]{})
	}
	v := &h.values[i]
	v.generation++
	v.value = value
	h.items = append(h.items, heapItem{})
	h.up(len(h.items)-1, heapItem{at, i})
	return pending.Handle(uint64(v.generation)<<32 | uint64(i))
}

// Cancel implements pending.Queue.
func (h *Heap[T]) Cancel(handle pending.Handle) bool {
	i, generation := uint32(handle), uint32(handle>>32)
	if int(i) >= len(h.values) || h.values[i].generation != generation || h.values[i].position < 0 || generation == 0 {
		return false
	}
	h.remove(int(h.values[i].position))
	return true
}

// PopDue implements pending.Queue.
func (h *Heap[T]) PopDue(now int64, out []T) []T {
	for len(h.items) > 0 && h.items[0].at <= now {
		out = append(out, h.values[h.items[0].value].value)
		h.remove(0)
	}
	return out
}

// Next implements pending.Queue.
func (h *Heap[T]) Next() (int64, bool) {
	if len(h.items) == 0 {
		return 0, false
	}
	return h.items[0].at, true
}

// Len implements pending.Queue.
func (h *Heap[T]) Len() int { return len(h.items) }

// remove takes the item at a position out and puts the last one in its place.
func (h *Heap[T]) remove(position int) {
	i := h.items[position].value
	v := &h.values[i]
	var none T
	v.value, v.position = none, -1
	h.free = append(h.free, i)
	last := len(h.items) - 1
	item := h.items[last]
	h.items = h.items[:last]
	if position == last {
		return
	}
	if position > 0 && item.at < h.items[(position-1)/arity].at {
		h.up(position, item)
	} else {
		h.down(position, item)
	}
}

func (h *Heap[T]) put(position int, item heapItem) {
	h.items[position] = item
	h.values[item.value].position = int32(position)
}

func (h *Heap[T]) up(i int, item heapItem) {
	for i > 0 {
		parent := (i - 1) / arity
		if h.items[parent].at <= item.at {
			break
		}
		h.put(i, h.items[parent])
		i = parent
	}
	h.put(i, item)
}

func (h *Heap[T]) down(i int, item heapItem) {
	for {
		first := i*arity + 1
		if first >= len(h.items) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h.items)); c++ {
			if h.items[c].at < h.items[least].at {
				least = c
			}
		}
		if item.at <= h.items[least].at {
			break
		}
		h.put(i, h.items[least])
		i = least
	}
	h.put(i, item)
}
