// Package budget answers: how much of something may the owners that share a node hold at
// once?
//
// Each owner has a share, and all of them together have the node's budget. A share that is
// taken may shrink, and is given back once.
package budget

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Errors of Take: the wait ended before there was room.
var (
	ErrShare = errors.New("the share of the owner is taken")
	ErrNode  = errors.New("the budget of the node is taken")
)

// Budget bounds units that owners hold at once. It is safe for concurrent use.
type Budget[K comparable] struct {
	node  *semaphore.Weighted
	share int64 // of an owner

	mu     sync.Mutex
	shares map[K]*shareOf // guarded by mu; those with any request
	held   int64          // guarded by mu: of all owners
	peak   int64          // guarded by mu: the most that was held
}

type shareOf struct {
	*semaphore.Weighted
	requests int
}

// New returns a Budget for a node, of which each owner may hold share.
func New[K comparable](node, share int64) *Budget[K] {
	return &Budget[K]{node: semaphore.NewWeighted(node), share: share, shares: map[K]*shareOf{}}
}

// Share is the most that one owner may hold.
func (b *Budget[K]) Share() int64 { return b.share }

// Owners is how many hold or want something.
func (b *Budget[K]) Owners() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.shares)
}

// Held is how much is held now, and Peak the most that was held.
func (b *Budget[K]) Held() (now, peak int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held, b.peak
}

// Take waits until so much is free for the owner. More than a share counts as a share. The
// error is ErrShare or ErrNode when ctx ends first.
func (b *Budget[K]) Take(ctx context.Context, who K, size int64) (*Held, error) {
	size = min(max(size, 1), b.share)
	share := b.enter(who)
	if share.Acquire(ctx, size) != nil {
		b.leave(who, 0)
		return nil, ErrShare
	}
	if b.node.Acquire(ctx, size) != nil {
		share.Release(size)
		b.leave(who, 0)
		return nil, ErrNode
	}
	b.mu.Lock()
	b.held += size
	b.peak = max(b.peak, b.held)
	b.mu.Unlock()
	return &Held{size: size, free: func(n int64, all bool) {
		b.node.Release(n)
		share.Release(n)
		if !all {
			b.mu.Lock()
			b.held -= n
			b.mu.Unlock()
			return
		}
		b.leave(who, n)
	}}, nil
}

// Held is what an owner holds of a Budget. It is safe for concurrent use.
type Held struct {
	free func(n int64, all bool) // fixed

	mu   sync.Mutex
	size int64 // guarded by mu; 0: given back
}

// Shrink gives back all but so much, which is at least 1.
func (h *Held) Shrink(to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if to = max(to, 1); to < h.size {
		h.free(h.size-to, false)
		h.size = to
	}
}

// Release gives all of it back. Another call has no effect.
func (h *Held) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.size > 0 {
		h.free(h.size, true)
		h.size = 0
	}
}

func (b *Budget[K]) enter(who K) *shareOf {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.shares[who]
	if s == nil {
		s = &shareOf{Weighted: semaphore.NewWeighted(b.share)}
		b.shares[who] = s
	}
	s.requests++
	return s
}

func (b *Budget[K]) leave(who K, held int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= held
	s := b.shares[who]
	if s.requests--; s.requests == 0 {
		delete(b.shares, who)
	}
}
