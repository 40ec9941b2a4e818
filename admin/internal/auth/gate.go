package auth

import (
	"context"
	"slices"
	"sync"
	"time"
)

// gate bounds work that anybody can ask for: how much of it is done at once, and
// how many wait for it. Who waits stands in the line of a name, an address for
// example, and the lines are served in turn: a thousand requests of one name
// delay another name's by one piece of work, not by a thousand.
//
// When all places are taken, the newest of the longest line has to go for
// somebody whose own line is shorter; else the newcomer is refused. It is safe
// for concurrent use.
type gate struct {
	slots, places int // fixed after construction

	mu      sync.Mutex
	running int              // guarded by mu
	waiting int              // guarded by mu: in all lines
	lines   map[string]*line // guarded by mu: those where somebody waits
	order   []*line          // guarded by mu: the first one's turn is next
}

type line struct {
	name string
	list []*waiter // oldest first
}

// waiter is told exactly once, unless it leaves by itself.
type waiter struct{ told chan bool } // capacity 1: true = its turn, false = refused

// gateRetry is when somebody who found no place may try again.
const gateRetry = time.Second

func newGate(slots, places int) *gate {
	return &gate{slots: slots, places: places, lines: map[string]*line{}}
}

// enter waits for the turn of name; the caller calls leave once when its work is
// done. *LimitedError: no place to wait.
func (g *gate) enter(ctx context.Context, name string) (leave func(), err error) {
	g.mu.Lock()
	if g.running < g.slots {
		g.running++
		g.mu.Unlock()
		return g.leave, nil
	}
	w := g.queueLocked(name)
	g.mu.Unlock()
	if w == nil {
		return nil, &LimitedError{After: gateRetry}
	}
	select {
	case turn := <-w.told:
		if turn {
			return g.leave, nil
		}
		return nil, &LimitedError{After: gateRetry}
	case <-ctx.Done():
	}
	g.mu.Lock()
	gone := g.removeLocked(name, w)
	g.mu.Unlock()
	if !gone && <-w.told {
		g.leave() // its turn came at the same moment
	}
	return nil, ctx.Err()
}

// leave ends one piece of work and lets the next begin.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.order) == 0 {
		g.running--
		return
	}
	l := g.order[0]
	w := l.list[0]
	g.order = append(g.order[1:], l) // its next turn comes after all others'
	g.removeLocked(l.name, w)
	w.told <- true
}

// queueLocked returns the newcomer's place, or nil when there is none.
func (g *gate) queueLocked(name string) *waiter {
	l := g.lines[name]
	if g.waiting >= g.places {
		longest := slices.MaxFunc(g.order, func(a, b *line) int { return len(a.list) - len(b.list) })
		mine := 1 // with the newcomer
		if l != nil {
			mine += len(l.list)
		}
		if len(longest.list) <= mine {
			return nil
		}
		last := longest.list[len(longest.list)-1]
		g.removeLocked(longest.name, last)
		last.told <- false
	}
	if l == nil {
		l = &line{name: name}
		g.lines[name] = l
		g.order = append(g.order, l)
	}
	w := &waiter{told: make(chan bool, 1)}
	l.list = append(l.list, w)
	g.waiting++
	return w
}

// removeLocked takes a waiter out of its line, and an empty line out of the
// order; false: it is not there any more.
func (g *gate) removeLocked(name string, w *waiter) bool {
	l := g.lines[name]
	if l == nil {
		return false
	}
	at := slices.Index(l.list, w)
	if at < 0 {
		return false
	}
	l.list = slices.Delete(l.list, at, at+1)
	g.waiting--
	if len(l.list) == 0 {
		delete(g.lines, name)
		g.order = slices.DeleteFunc(g.order, func(other *line) bool { return other == l })
	}
	return true
}
