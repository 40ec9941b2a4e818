package batch

import "sync"

// Backpressure holds a queue back while too much of the same owner's waits in
// another one, further on the path of the items: what has been begun is ended
// before more is begun. Without it a step that is quicker than the last one
// fills the path, and what is on its way costs more the longer it is
// (docs/adr/0035). The zero value is of no use; create it with NewBackpressure.
type Backpressure struct {
	most int // fixed

	mu        sync.Mutex    // taken with a queue's lock held; takes none itself
	waiting   map[int64]int // guarded by mu: items by owner
	throttled []func()      // guarded by mu: wake those that are held back
}

// NewBackpressure returns a Backpressure that holds an owner back while more than
// most of his items wait.
func NewBackpressure(most int) *Backpressure {
	return &Backpressure{most: most, waiting: map[int64]int{}}
}

// CountsInto makes the queue's items count. Call it once, before Run, for queues
// made by NewFair or NewOrdered.
func (q *Queue[T]) CountsInto(b *Backpressure) { q.items.(*fair[T]).countsInto = b }

// ThrottledBy makes the queue flush nothing of an owner who is held back. Call
// it once, before Run, for queues made by NewFair or NewOrdered.
func (q *Queue[T]) ThrottledBy(b *Backpressure) {
	q.items.(*fair[T]).throttledBy = b
	b.mu.Lock()
	defer b.mu.Unlock()
	b.throttled = append(b.throttled, q.wake)
}

// add counts n more items of an owner, or fewer. A nil Backpressure counts nothing.
func (b *Backpressure) add(owner int64, n int) {
	if b == nil || n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.waiting[owner]
	if is := was + n; is > 0 {
		b.waiting[owner] = is
	} else {
		delete(b.waiting, owner)
	}
	if was > b.most && was+n <= b.most {
		for _, wake := range b.throttled {
			wake()
		}
	}
}

// Holds reports whether an owner is held back now. A nil Backpressure holds nobody.
func (b *Backpressure) Holds(owner int64) bool { return b.exceeded(owner) }

// exceeded reports whether an owner is held back.
func (b *Backpressure) exceeded(owner int64) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting[owner] > b.most
}
