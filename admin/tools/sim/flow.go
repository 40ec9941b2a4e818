package sim

import (
	"iter"
	"slices"
	"time"
)

// flow is product code that waits for answers: it runs until it asks the
// database, and goes on when the answer is there. It is a coroutine, so that
// one thing happens at a time, and always in the same order.
type flow struct {
	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

// gone unwinds the flows of a process that has died.
type gone struct{}

// Unwinds lets it pass where a panic costs only the work that panicked.
func (gone) Unwinds() {}

// flow runs f until it waits for the first time.
func (n *node) flow(f func()) {
	fl := &flow{}
	fl.next, fl.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil && r != (gone{}) {
				panic(r)
			}
		}()
		fl.yield = yield
		f()
	})
	n.flows = append(n.flows, fl)
	n.resume(fl)
}

func (n *node) resume(fl *flow) {
	was := n.running
	n.running = fl
	_, goesOn := fl.next()
	n.running = was
	if i := slices.Index(n.flows, fl); !goesOn && i >= 0 {
		n.flows = slices.Delete(n.flows, i, i+1)
	}
}

// await asks, and returns when the answer has come. ask may not answer at once.
func (n *node) await(ask func(answer func())) {
	fl := n.running
	ask(func() { n.resume(fl) })
	if !fl.yield(struct{}{}) {
		panic(gone{})
	}
}

// call is one transaction, as the store makes it: what do finds counts only
// when there is no error.
func (n *node) call(name string, limit time.Duration, do func()) (err error) {
	n.await(func(answer func()) {
		n.tx(name, limit, do, func(e error) { err = e; answer() })
	})
	return err
}

// die ends all flows where they stand.
func (n *node) die() {
	for _, fl := range n.flows {
		fl.stop()
	}
	n.flows, n.running = nil, nil
}

// rounds does f at once and then every d, unless it is still at it.
func (n *node) rounds(d time.Duration, f func()) {
	busy := false
	n.every(d, func() {
		if !busy {
			busy = true
			n.flow(func() { f(); busy = false })
		}
	})
}
