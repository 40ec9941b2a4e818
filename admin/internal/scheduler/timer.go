package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/timerheap"
)

// Timer holds executions until their NotBefore, or until a little ahead of it, and
// then hands them to fire: all that are due in one call, or where they are many, in
// one call for each tenant of whom there are many, and before these in one for all
// others. Create it with NewTimer, run it with Run; Add and AddOnTime are safe
// for concurrent use.
type Timer struct {
	now   func() time.Time // the database's clock
	ahead time.Duration
	fire  func([]*domain.Execution)
	wake  chan struct{}

	table   *runtable.Table // its lock guards what follows
	pending timerheap.Heap[*timed]
}

// A run that is offered ahead of its time leaves the timer up to Lead+leadStep
// before it, together with those of the same leadStep: nobody waits for it then,
// and fewer transactions make the offers (docs/adr/0045, with what was measured).
const (
	Lead     = 40 * time.Millisecond
	leadStep = 15 * time.Millisecond
)

// timed is the place of a run that waits for its time.
type timed struct {
	run   *domain.Execution
	at    time.Time
	timer *Timer
	item  *timerheap.Item[*timed]
}

// Stage implements runtable.Place, as the following methods do.
func (p *timed) Stage() runtable.Stage { return runtable.Timed }

func (p *timed) Removed() { p.timer.pending.Remove(p.item) }

func (p *timed) Yields(to *domain.Execution) bool { return to.Fence >= p.run.Fence }

// Attended: what is for one instance alone is to be looked at: that may go.
func (p *timed) Attended(time.Time) bool { return p.run.Bound == 0 }

// NewTimer returns a Timer that fires at least so long ahead of what Add is given;
// 0: not before its time. fire must return quickly.
func NewTimer(table *runtable.Table, now func() time.Time, ahead time.Duration, fire func([]*domain.Execution)) *Timer {
	return &Timer{table: table, now: now, ahead: ahead, fire: fire, wake: make(chan struct{}, 1)}
}

// Add takes executions to fire ahead of their NotBefore; past ones fire at once.
// Of an execution that is held already the copy for the earlier instant stays,
// of two for the same instant the first. One that is further on its way than here
// comes back only if its place yields it.
func (t *Timer) Add(executions ...domain.Execution) { t.add(t.ahead, executions) }

// AddOnTime is Add for executions to fire at their NotBefore.
func (t *Timer) AddOnTime(executions ...domain.Execution) { t.add(0, executions) }

// Submit takes an execution that was just created. One for later stays in the
// database alone, however many there are; a sweep brings it shortly before
// its time (domain.FirstWake).
func (t *Timer) Submit(e domain.Execution) {
	if e.NotBefore.Sub(t.now()) <= domain.ColdAfter {
		t.Add(e)
	}
}

func (t *Timer) add(ahead time.Duration, executions []domain.Execution) {
	sooner := false
	for part := range slices.Chunk(executions, runtable.Most) {
		sooner = t.addSome(ahead, part) || sooner
	}
	if sooner {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// addSome reports whether one of them comes first now.
func (t *Timer) addSome(ahead time.Duration, executions []domain.Execution) (sooner bool) {
	t.table.Lock()
	defer t.table.Unlock()
	before, _, had := t.pending.First()
	for _, e := range executions {
		at := e.NotBefore
		if ahead > 0 {
			at = at.Add(-ahead).Truncate(leadStep)
		}
		if held, is := t.table.At(e.ID).(*timed); is && !at.Before(held.at) {
			continue
		}
		p := &timed{run: &e, at: at, timer: t}
		if t.table.Move(&e, p) {
			p.item = t.pending.Add(at.UnixNano(), p)
		}
	}
	after, _, has := t.pending.First()
	return has && (!had || after < before)
}

// Len returns the number of executions held.
func (t *Timer) Len() int {
	t.table.Lock()
	defer t.table.Unlock()
	return t.pending.Len()
}

// Run fires until ctx ends. What is still held then is left to other nodes.
func (t *Timer) Run(ctx context.Context) {
	timerheap.Loop(ctx, t.wake, t.Round)
}

// Round is one round of Run: it fires what has come due, and says how long it is
// until the next of it.
func (t *Timer) Round() (wait time.Duration) {
	due, wait := t.due()
	for _, part := range splitBursts(due) {
		t.fire(part)
	}
	return wait
}

// maxSleep bounds the sleep, so that a database clock that was set forward is
// followed.
const maxSleep = time.Second

func (t *Timer) due() (due []*domain.Execution, wait time.Duration) {
	t.table.Lock()
	defer t.table.Unlock()
	now := t.now().UnixNano()
	for {
		at, first, ok := t.pending.First()
		switch {
		case !ok:
			return due, maxSleep
		case at > now:
			return due, min(time.Duration(at-now), maxSleep)
		}
		t.table.Pass(first.run.ID, first, nil)
		if due = append(due, first.run); len(due)%runtable.Most == 0 {
			t.table.Unlock() // others have their turn
			t.table.Lock()
		}
	}
}

// many is from how many runs on a tenant's are handed over by themselves, after
// those of tenants with fewer: to take ten thousand takes tens of milliseconds.
const many = 200

// splitBursts divides what is due at once, so that one tenant's burst keeps nobody
// else's runs waiting (docs/adr/0017).
func splitBursts(due []*domain.Execution) (parts [][]*domain.Execution) {
	if len(due) == 0 {
		return nil
	}
	count := map[domain.TenantID]int{}
	if len(due) >= many {
		for _, e := range due {
			count[e.TenantID]++
		}
	}
	if len(count) < 2 {
		return append(parts, due)
	}
	var few []*domain.Execution
	burst := map[domain.TenantID][]*domain.Execution{}
	var order []domain.TenantID
	for _, e := range due {
		n := count[e.TenantID]
		if n < many {
			few = append(few, e)
			continue
		}
		if burst[e.TenantID] == nil {
			burst[e.TenantID] = make([]*domain.Execution, 0, n)
			order = append(order, e.TenantID)
		}
		burst[e.TenantID] = append(burst[e.TenantID], e)
	}
	if len(few) > 0 {
		parts = append(parts, few)
	}
	for _, tenant := range order {
		parts = append(parts, burst[tenant])
	}
	return parts
}
