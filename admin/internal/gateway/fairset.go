package gateway

import (
	"container/heap"
	"container/list"
)

// fairSet says who goes first when there is no room for all: of the owner that
// has most items the oldest one; of equal owners, of the one whose oldest item is
// older, else many owners with one item each would lose the newest again and
// again. Items of rank 0 are older than those of rank 1. The zero value is empty.
// It is not safe for concurrent use.
type fairSet[T any] struct {
	owners byMost[T]
	puts   int64 // so far
}

// owner has items in one set. The zero value has none.
type owner[T any] struct {
	items [2]list.List // by rank, the oldest first
	at    int          // in fairSet.owners
}

// entry is in a set while place is not nil.
type entry[T any] struct {
	value T         // fixed
	owner *owner[T] // fixed while it is in a set
	place *list.Element
	rank  int
	since int64 // fairSet.puts then
}

func (o *owner[T]) len() int { return o.items[0].Len() + o.items[1].Len() }

// oldest returns nil when there is none.
func (o *owner[T]) oldest() *entry[T] {
	for i := range o.items {
		if e := o.items[i].Front(); e != nil {
			return e.Value.(*entry[T])
		}
	}
	return nil
}

// put makes an item the newest one of a rank.
func (s *fairSet[T]) put(i *entry[T], rank int) {
	s.remove(i)
	s.puts++
	i.rank, i.since, i.place = rank, s.puts, i.owner.items[rank].PushBack(i)
	if i.owner.len() == 1 {
		heap.Push(&s.owners, i.owner)
	} else {
		heap.Fix(&s.owners, i.owner.at)
	}
}

// remove does nothing to an item that is in no set.
func (s *fairSet[T]) remove(i *entry[T]) {
	if i.place == nil {
		return
	}
	last := i.owner.len() == 1
	if last {
		heap.Remove(&s.owners, i.owner.at)
	}
	i.owner.items[i.rank].Remove(i.place)
	i.place = nil
	if !last {
		heap.Fix(&s.owners, i.owner.at)
	}
}

// most returns the owner whose oldest item goes first; nil: the set is empty.
func (s *fairSet[T]) most() *owner[T] {
	if len(s.owners) == 0 {
		return nil
	}
	return s.owners[0]
}

// byMost is a heap of owners that have items.
type byMost[T any] []*owner[T]

func (h byMost[T]) Len() int { return len(h) }
func (h byMost[T]) Less(i, j int) bool {
	if a, b := h[i].len(), h[j].len(); a != b {
		return a > b
	}
	return h[i].oldest().since < h[j].oldest().since
}
func (h byMost[T]) Swap(i, j int) { h[i], h[j] = h[j], h[i]; h[i].at, h[j].at = i, j }
func (h *byMost[T]) Push(o any)   { o.(*owner[T]).at = len(*h); *h = append(*h, o.(*owner[T])) }
func (h *byMost[T]) Pop() any {
	last := len(*h) - 1
	o := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	return o
}
