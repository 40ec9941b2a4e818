package testenv

import (
	"context"
	"sync"
	"testing"
	"time"
)

// WaitLimit bounds every Wait of this package. It is generous because it only
// decides how long a broken test takes: a good one is woken by the event.
const WaitLimit = 30 * time.Second

// recorder keeps what a server saw, and wakes those who wait for more.
type recorder[T any] struct {
	mu      sync.Mutex
	items   []T           // guarded by mu; only ever appended to
	changed chan struct{} // guarded by mu; closed and replaced by add
}

func newRecorder[T any]() *recorder[T] {
	return &recorder[T]{changed: make(chan struct{})}
}

func (r *recorder[T]) add(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, item)
	close(r.changed)
	r.changed = make(chan struct{})
}

// snapshot returns a copy of the items and the channel that the next add
// closes.
func (r *recorder[T]) snapshot() ([]T, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]T(nil), r.items...), r.changed
}

// wait returns all items as soon as there are at least n of them, and fails
// tb when ctx ends first. Call it from the test's own goroutine.
func (r *recorder[T]) wait(ctx context.Context, tb testing.TB, n int, noun string) []T {
	tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, WaitLimit)
	defer cancel()
	for {
		items, changed := r.snapshot()
		if len(items) >= n {
			return items
		}
		select {
		case <-changed:
		case <-ctx.Done():
			tb.Fatalf("waited for %d %s, saw %d: %v", n, noun, len(items), context.Cause(ctx))
		}
	}
}

// script is a queue of prepared answers; one is used up per question.
type script[T any] struct {
	mu      sync.Mutex
	answers []T // guarded by mu
}

func (s *script[T]) push(answers ...T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answers...)
}

// takeFirst removes and returns the oldest answer that fits.
func (s *script[T]) takeFirst(fits func(T) bool) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, answer := range s.answers {
		if fits(answer) {
			s.answers = append(s.answers[:i:i], s.answers[i+1:]...)
			return answer, true
		}
	}
	var none T
	return none, false
}
