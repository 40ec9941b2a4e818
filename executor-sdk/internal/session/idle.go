package session

import (
	"context"
	"errors"
	"hash/fnv"
	"time"
)

// errParked ends the sessions that an idle executor does not keep.
var errParked = errors.New("the executor has nothing to do")

// watchIdle parks when there was nothing to do for IdleAfter.
func (f *Fleet) watchIdle(ctx context.Context) {
	tick := time.NewTicker(max(f.options.IdleAfter/8, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if f.options.Events.Load().GetRunning() > 0 {
			f.active()
		}
		for _, l := range f.park(time.Now()) {
			l.goAwayFor(errParked)
		}
	}
}

// park chooses the session that stays, and returns the others when it is time.
func (f *Fleet) park(now time.Time) (others []*Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parked != "" || len(f.ready) < 2 || f.left || now.Sub(f.activeAt) < f.options.IdleAfter {
		return nil
	}
	var home *Link
	for _, l := range f.ready {
		if home == nil || f.weight(l.node) > f.weight(home.node) {
			home = l
		}
	}
	f.parked = home.node
	for _, l := range f.ready {
		if l != home {
			others = append(others, l)
		}
	}
	home.beatSoon()
	f.options.Logger.Info("nothing to do: one session stays", "node", home.node)
	return others
}

// weight spreads idle executors over the nodes, and lets each choose the same
// one again while it is there.
func (f *Fleet) weight(node string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(f.options.Boot + " " + node))
	return h.Sum64()
}

// wake brings the sessions to all nodes back.
func (f *Fleet) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parked != "" {
		f.wakeLocked()
		f.broadcast()
	}
}

func (f *Fleet) wakeLocked() { f.parked, f.activeAt = "", time.Now() }

// offered notes that something was offered: no session rests.
func (f *Fleet) offered() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.activeAt = time.Now()
	for _, l := range f.ready {
		l.stir()
	}
}

// active notes that there is something to do.
func (f *Fleet) active() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.activeAt = time.Now()
}

// parkedAt reports whether the session to this node is the only one that is kept.
func (f *Fleet) parkedAt(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.parked == node
}
