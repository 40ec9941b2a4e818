package session

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// seedPatience is how long no session at all must have stood before the
// configured addresses are tried again beside the listed nodes.
const seedPatience = 3 * time.Second

// target is one address that is tried over and over.
type target struct {
	node     string // id; empty for a seed
	address  string // guarded by Fleet.mu: the list may move a node
	answered string // guarded by Fleet.mu: the node that answered last
	removed  bool   // guarded by Fleet.mu: no longer listed
	told     string // the failure that was logged last; owned by the target's goroutine
	// news: there is a reason to try again at once; capacity 1, nobody closes it.
	news chan struct{}
}

func newTarget(node, address string) *target {
	return &target{node: node, address: address, news: make(chan struct{}, 1)}
}

// poke ends the pause before the next try.
func (t *target) poke() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// keep tries one target until ctx ends or the node is no longer listed.
func (f *Fleet) keep(ctx context.Context, t *target) {
	var b backoff
	for f.mayDial(ctx, t) {
		began := time.Now()
		err := f.serve(ctx, t)
		if ctx.Err() != nil || errors.Is(err, errStopped) || f.gone() {
			return
		}
		if errors.Is(err, errParked) {
			continue // mayDial waits until it is wanted
		}
		why, planned := recycled(err)
		if planned {
			f.options.Logger.Info("admin node replaces the session, connecting again", "address", f.addressOf(t), "reason", why)
			if time.Since(began) >= healthyAfter {
				continue // at once: the node is there, and asked for it
			}
		}
		var refused *RefusedError
		if errors.As(err, &refused) && refused.Code == "moved" {
			f.follow(refused.Addresses)
		}
		pause := b.next(err, time.Since(began), f.disconnected(), rand.Float64())
		if !errors.Is(err, errDuplicate) && !planned { // of a duplicate mayDial waits for that session's end
			f.tell(t, err, pause)
		}
		if !f.pause(ctx, t, &b, pause, retriesOnNews(err)) {
			return
		}
	}
}

// newsSpread is the most that a try waits which news brought about: a thousand
// executors hear them in one instant.
const newsSpread = 300 * time.Millisecond

// pause waits, unless there are news: then it begins with the short pauses
// again. It returns false when ctx has ended.
func (f *Fleet) pause(ctx context.Context, t *target, b *backoff, d time.Duration, heed bool) bool {
	news := t.news
	if !heed {
		news = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-news:
	}
	b.failures = 0
	timer.Reset(rand.N(newsSpread))
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// retriesOnNews reports whether news may shorten the pause after err: not when the
// admin said how long to wait.
func retriesOnNews(err error) bool {
	var refused *RefusedError
	return !errors.As(err, &refused) || refused.RetryAfter == 0
}

// recycled reports whether the admin ended a session only because it, or the
// certificate that it began with, was old; why is what it says.
func recycled(err error) (why string, ok bool) {
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != "recycled" {
		return "", false
	}
	return refused.Message, true
}

// addressOf is the target's address now.
func (f *Fleet) addressOf(t *target) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return t.address
}

// gone reports whether Leave was called.
func (f *Fleet) gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.left
}

// disconnected reports whether no node has a session with us.
func (f *Fleet) disconnected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ready) == 0
}

// mayDial waits until t should be tried. It returns false when t is over.
func (f *Fleet) mayDial(ctx context.Context, t *target) bool {
	for {
		f.mu.Lock()
		wait, over := f.verdict(t, time.Now())
		changed := f.changed
		f.mu.Unlock()
		if over || ctx.Err() != nil {
			return false
		}
		if wait == 0 {
			return true
		}
		var later <-chan time.Time
		if wait > 0 {
			later = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		case <-later:
		}
	}
}

// verdict says how long t has to wait: 0 = dial now, negative = until
// something changes. mu is held.
func (f *Fleet) verdict(t *target, now time.Time) (wait time.Duration, over bool) {
	switch {
	case t.removed || f.left:
		return 0, true
	case f.claimed[t.node] != nil, f.claimed[t.answered] != nil, f.parked != "" && t.node != f.parked:
		return -1, false
	case t.node != "", len(f.nodes) == 0:
		return 0, false
	case len(f.claimed) > 0, f.listed(t.address):
		return -1, false
	}
	return max(0, seedPatience-now.Sub(f.aloneAt)), false
}

// listed reports whether a node of the list has the address: its own target
// tries it. mu is held.
func (f *Fleet) listed(address string) bool {
	for _, t := range f.nodes {
		if t.address == address {
			return true
		}
	}
	return false
}

// tell logs a failure once, until it changes or a session stood again.
func (f *Fleet) tell(t *target, err error, pause time.Duration) {
	f.mu.Lock()
	f.refused = err
	address := t.address
	f.mu.Unlock()
	var refused *RefusedError
	if errors.As(err, &refused) && f.options.Refused != nil {
		f.options.Refused(refused)
	}
	if err.Error() == t.told {
		return
	}
	t.told = err.Error()
	logger := f.options.Logger.With("address", address, "err", err)
	if errors.As(err, &refused) && refused.RetryAfter < 0 {
		logger.Error("admin refuses this executor", "do", refused.advice(), "retry_in", pause.Round(time.Second))
		return
	}
	logger.Warn("no session with admin node, trying again")
}
