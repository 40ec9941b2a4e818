// Package timerheap answers: what is due now, and when is the next look worth
// while?
//
// Nothing here reads a clock, starts a goroutine or locks: the owner of a heap
// does, and Loop is how it looks again and again (docs/adr/0063).
package timerheap

// Heap holds values until their instants, Unix nanoseconds: a 4-ary heap, whose
// items know where they are, so that one that is removed leaves at once. Of one
// instant those come out first that were added first. The zero Heap is ready for
// use.
type Heap[T any] struct {
	slots []slot[T]
	added uint64
}

// slot has the keys beside the item, so that a comparison reads the slots only.
type slot[T any] struct {
	at    int64
	order uint64 // among those of one instant
	item  *Item[T]
}

func (s *slot[T]) before(o *slot[T]) bool {
	return s.at < o.at || s.at == o.at && s.order < o.order
}

// Item is a value's place in a heap.
type Item[T any] struct {
	Value T
	index int
}

const arity = 4

// Add takes a value to come out at an instant, which may have passed.
func (h *Heap[T]) Add(at int64, value T) *Item[T] {
	h.added++
	s := slot[T]{at, h.added, &Item[T]{Value: value}}
	h.slots = append(h.slots, s)
	h.up(len(h.slots)-1, s)
	return s.item
}

// Remove takes an item out that is in the heap.
func (h *Heap[T]) Remove(item *Item[T]) {
	last := len(h.slots) - 1
	s := h.slots[last]
	h.slots[last] = slot[T]{}
	h.slots = h.slots[:last]
	switch i := item.index; {
	case last == 0:
		h.slots = nil // a burst is over: its memory goes
	case i == last:
	case i > 0 && s.before(&h.slots[(i-1)/arity]):
		h.up(i, s)
	default:
		h.down(i, s)
	}
}

// First returns the first value and its instant; false: the heap is empty.
func (h *Heap[T]) First() (at int64, value T, ok bool) {
	if len(h.slots) == 0 {
		return 0, value, false
	}
	return h.slots[0].at, h.slots[0].item.Value, true
}

// Len is the number of values held.
func (h *Heap[T]) Len() int { return len(h.slots) }

func (h *Heap[T]) put(i int, s slot[T]) {
	h.slots[i] = s
	s.item.index = i
}

func (h *Heap[T]) up(i int, s slot[T]) {
	for ; i > 0; i = (i - 1) / arity {
		parent := h.slots[(i-1)/arity]
		if !s.before(&parent) {
			break
		}
		h.put(i, parent)
	}
	h.put(i, s)
}

func (h *Heap[T]) down(i int, s slot[T]) {
	for {
		first := i*arity + 1
		if first >= len(h.slots) {
			break
		}
		least := first
		for c := first + 1; c < min(first+arity, len(h.slots)); c++ {
			if h.slots[c].before(&h.slots[least]) {
				least = c
			}
		}
		if !h.slots[least].before(&s) {
			break
		}
		h.put(i, h.slots[least])
		i = least
	}
	h.put(i, s)
}
