// Package batch answers: how do many small requests become few transactions?
//
// Durable commits cost about the same for one row as for five hundred. A
// Queue collects items while its workers are busy and hands them over
// together as soon as one is free: a lone item goes at once, and under load
// batches grow by themselves. Where many small batches would follow each other,
// a pace makes fewer of them (Pace, docs/adr/0031). A queue made by
// NewFair also answers: whose turn is it? No owner of items waits for another
// owner's backlog, nor for a batch that is full of it (docs/adr/0009, 0017).
package batch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/panics"
)

// Queue collects items of one kind. Create it with New or NewFair; Add is safe
// for concurrent use and never blocks.
type Queue[T any] struct {
	flush   func(ctx context.Context, items []T)
	workers int
	max     int

	pace time.Duration                         // fixed before Run
	soon func() (left time.Duration, all bool) // fixed before Run; may be nil

	aside func(item T, err error) // fixed before Run; may be nil

	mu      sync.Mutex
	items   line[T]       // guarded by mu
	waiting chan struct{} // holds a token while there may be items
	closed  bool          // guarded by mu
	began   time.Time     // guarded by mu: of the last flush
	pausing chan struct{} // guarded by mu: not nil while a worker waits for the pace; closed to end that
}

// line is the order in which items wait.
type line[T any] interface {
	push(items []T)
	// take takes up to limit items for one flush; none = nothing may be flushed
	// now. done, unless nil, is called when that flush has ended, under the
	// queue's lock as all methods.
	take(limit int) (items []T, done func())
	len() int
}

// New returns a Queue that calls flush with 1 to max items, from at most
// workers goroutines at once, in the order in which they came. flush owns the
// slice.
func New[T any](workers, max int, flush func(ctx context.Context, items []T)) *Queue[T] {
	return newQueue(workers, max, &fifo[T]{}, flush)
}

// NewFair is New for items of several owners, who get equal shares. While one
// of them floods the queue, the others have a further worker for themselves.
// place is called once per item, under the queue's lock.
func NewFair[T any](workers, max int, place func(*T) Place, flush func(ctx context.Context, items []T)) *Queue[T] {
	return newQueue(workers+1, max, newFair(workers, place), flush)
}

// LimitFlushes puts the queue's floods under a bound that it shares with other
// queues.
// Call it once, before Run, first for the queue that comes last on the items'
// path. It is for queues made by NewFair or NewOrdered.
func (q *Queue[T]) LimitFlushes(l *FlushLimit) {
	q.items.(*fair[T]).flushLimit = l.join(q.wake)
}

// Pace sets the least time between the beginnings of two flushes of Run: what
// comes sooner waits for company, unless it fills a quarter of a batch. What
// comes after a longer silence goes at once. Call it once, before Run.
func (q *Queue[T]) Pace(d time.Duration) { q.pace = d }

// Expects tells the queue of items that are about to come, so that what waits
// goes with them. soon says for how long they are worth waiting for, and whether
// all have come: then what waits is flushed at once, whatever the pace. It is
// called under the queue's lock. Call it once, before Run.
func (q *Queue[T]) Expects(soon func() (left time.Duration, all bool)) { q.soon = soon }

// Drops makes the queue leave out items that are of no use any more, without a
// flush, and tell dropped of them. Both are called under the queue's lock. Call
// it once, before Run, for queues made by NewFair or NewOrdered.
func (q *Queue[T]) Drops(dead func(*T) bool, dropped func([]T)) {
	f := q.items.(*fair[T])
	f.dead, f.dropped = dead, dropped
}

// NewOrdered is NewFair with one worker, and no two flushes at once have items
// of the same owner: they are flushed in the order of their places.
func NewOrdered[T any](max int, place func(*T) Place, flush func(ctx context.Context, items []T)) *Queue[T] {
	items := newFair(1, place)
	items.ordered = true
	return newQueue(2, max, items, flush)
}

// Guards makes a panic of flush cost the item that it is about, and no other: the
// halves of what was to be flushed are flushed again, down to single items, and
// aside is told of the one that panics alone, outside of the queue's lock. A
// flush has to bear to be repeated. Without Guards a panic is nobody's here. Call
// it once, before Run.
func (q *Queue[T]) Guards(aside func(item T, err error)) { q.aside = aside }

func newQueue[T any](workers, max int, items line[T], flush func(ctx context.Context, items []T)) *Queue[T] {
	return &Queue[T]{flush: flush, workers: workers, max: max, items: items, waiting: make(chan struct{}, workers)}
}

// Add queues items. After Run has returned they are dropped; whoever needs
// them finds them in the database.
func (q *Queue[T]) Add(items ...T) {
	if len(items) == 0 {
		return
	}
	q.mu.Lock()
	if !q.closed {
		q.items.push(items)
	}
	pausing := q.pausing != nil
	if pausing && q.patience() <= 0 {
		close(q.pausing)
		q.pausing = nil
	}
	q.mu.Unlock()
	if !pausing {
		q.wake()
	}
}

// patience is how long what waits should wait for more; under mu.
func (q *Queue[T]) patience() time.Duration {
	if q.items.len() >= max(q.max/4, 1) {
		return 0
	}
	left := q.pace - time.Since(q.began)
	if q.soon == nil {
		return left
	}
	soon, all := q.soon()
	if all {
		return 0
	}
	return max(left, soon)
}

func (q *Queue[T]) wake() {
	select {
	case q.waiting <- struct{}{}:
	default: // every worker has been woken already
	}
}

// Worker is a Queue of any kind of items.
type Worker interface {
	Run(ctx context.Context)
	// Flush hands over what waits, a batch at a time, until nothing does. It is
	// for those who work the queue themselves instead of calling Run (the
	// simulator); they call it from at most Workers places at once.
	Flush(ctx context.Context)
	Workers() int
	Len() int
	// Clock replaces time.Now; it is called before anything is added.
	Clock(now func() time.Time)
}

// Workers returns how many flushes may be under way at once.
func (q *Queue[T]) Workers() int { return q.workers }

// Clock implements Worker. Only queues made by NewFair or NewOrdered look at a
// clock.
func (q *Queue[T]) Clock(now func() time.Time) {
	if f, ok := q.items.(*fair[T]); ok {
		f.now = now
	}
}

// Len returns the number of items that wait.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.items.len()
}

// Run works until ctx ends, then flushes what is queued once more (with a
// context that has not ended) and returns when all flushes have.
func (q *Queue[T]) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for range q.workers {
		wg.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-q.waiting:
				}
				for q.pause(ctx) && q.flushOne(ctx) {
				}
			}
		})
	}
	wg.Wait()
	q.mu.Lock()
	if f, ok := q.items.(*fair[T]); ok {
		f.unbind() // nobody would come back for what has no place now
	}
	q.mu.Unlock()
	q.Flush(context.WithoutCancel(ctx))
	q.mu.Lock()
	q.closed, q.items = true, &fifo[T]{}
	q.mu.Unlock()
}

// pause waits until the pace allows another flush. It reports false when there is
// nothing to flush, ctx has ended, or another worker pauses, which takes it all.
func (q *Queue[T]) pause(ctx context.Context) bool {
	q.mu.Lock()
	if q.items.len() == 0 || q.pausing != nil {
		q.mu.Unlock()
		return false
	}
	left := q.patience()
	if left <= 0 {
		q.began = time.Now()
		q.mu.Unlock()
		return true
	}
	pressed := make(chan struct{})
	q.pausing = pressed
	q.mu.Unlock()
	over := time.NewTimer(left)
	defer over.Stop()
	select {
	case <-over.C:
	case <-pressed:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.pausing == pressed {
		q.pausing = nil
	}
	q.began = time.Now()
	return ctx.Err() == nil
}

// Flush hands over what waits, a batch at a time, until nothing does that has a
// place now: whoever ends another flush goes on with that.
func (q *Queue[T]) Flush(ctx context.Context) {
	for q.flushOne(ctx) {
	}
}

// flushOne is one batch of Flush; false: there was none.
func (q *Queue[T]) flushOne(ctx context.Context) bool {
	q.mu.Lock()
	items, done := q.items.take(q.max)
	more := q.items.len() > 0
	q.mu.Unlock()
	if len(items) == 0 {
		return false
	}
	if more {
		q.wake() // another worker may help
	}
	q.guarded(ctx, items)
	if done != nil {
		q.mu.Lock()
		done()
		q.mu.Unlock()
	}
	return true
}

// guarded is flush, as Guards says.
func (q *Queue[T]) guarded(ctx context.Context, items []T) {
	if q.aside == nil {
		q.flush(ctx, items)
		return
	}
	kept := slices.Clone(items) // flush owns items
	err := panics.Catch(func() error { q.flush(ctx, items); return nil })
	switch half := len(kept) / 2; {
	case err == nil:
	case half == 0:
		q.aside(kept[0], err)
	default:
		q.guarded(ctx, kept[:half:half])
		q.guarded(ctx, kept[half:])
	}
}
