package scheduler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timerheap"
)

// Timer holds executions until their NotBefore, or until a little ahead of it, and
// then hands them to fire: all that are due in one call, or where they are many, in
// one call for each tenant of whom there are many, and before these in one for all
// others. Create it with NewTimer, run it with Run; Add and AddPunctual are safe
// for concurrent use.
type Timer struct {
	now   func() time.Time // the database's clock
	ahead time.Duration
	fire  func([]*domain.Execution)

	mu      sync.Mutex
	pending timerheap.Heap[*domain.Execution] // guarded by mu
	held    map[domain.ExecutionID]entry      // guarded by mu: what is pending
	tenants map[domain.TenantID]int           // guarded by mu: how many of whom
	wake    chan struct{}
}

// A run that is offered ahead of its time leaves the timer up to Lead+leadStep
// before it, together with those of the same leadStep: nobody waits for it then,
// and fewer transactions make the offers (docs/adr/0045, with what was measured).
const (
	Lead     = 40 * time.Millisecond
	leadStep = 15 * time.Millisecond
)

// entry is an execution's place in the heap.
type entry struct {
	item  *timerheap.Item[*domain.Execution]
	at    time.Time
	bound bool // to one instance
}

// NewTimer returns a Timer that fires at least so long ahead of what Add is given;
// 0: not before its time. fire must return quickly.
func NewTimer(now func() time.Time, ahead time.Duration, fire func([]*domain.Execution)) *Timer {
	return &Timer{
		now: now, ahead: ahead, fire: fire,
		held: map[domain.ExecutionID]entry{}, tenants: map[domain.TenantID]int{}, wake: make(chan struct{}, 1),
	}
}

// Add takes executions to fire ahead of their NotBefore; past ones fire at once.
// Of an execution that is held already the copy for the earlier instant stays,
// of two for the same instant the first.
func (t *Timer) Add(executions ...domain.Execution) { t.add(t.ahead, executions) }

// AddPunctual is Add for executions to fire at their NotBefore.
func (t *Timer) AddPunctual(executions ...domain.Execution) { t.add(0, executions) }

func (t *Timer) add(ahead time.Duration, executions []domain.Execution) {
	if len(executions) == 0 {
		return
	}
	t.mu.Lock()
	before, had := t.pending.Next()
	for _, e := range executions {
		at := e.NotBefore
		if ahead > 0 {
			at = at.Add(-ahead).Truncate(leadStep)
		}
		if held, ok := t.held[e.ID]; ok {
			if !at.Before(held.at) {
				continue
			}
			t.pending.Remove(held.item)
		} else {
			t.tenants[e.TenantID]++
		}
		t.held[e.ID] = entry{t.pending.Add(at.UnixNano(), &e), at, e.Bound != 0}
	}
	after, has := t.pending.Next()
	t.mu.Unlock()
	if has && (!had || after < before) {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// Len returns the number of executions held.
func (t *Timer) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pending.Len()
}

// Waiting adds how many executions of each tenant are held.
func (t *Timer) Waiting(into map[domain.TenantID]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for tenant, n := range t.tenants {
		into[tenant] += n
	}
}

// Unattended leaves out what is held here, and returns the rest in its order.
// What is for one instance alone is held, and yet to be looked at: that may go.
func (t *Timer) Unattended(ids []domain.ExecutionID) []domain.ExecutionID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool {
		e, held := t.held[id]
		return held && !e.bound
	})
}

// pace is the least time between two calls of fire. What comes due alone is
// fired at once; from some hundred a second on, what comes due in the meantime
// is fired together, which costs everybody on its way less (docs/adr/0031).
const pace = 5 * time.Millisecond

// Run fires until ctx ends. What is still held then is left to other nodes.
func (t *Timer) Run(ctx context.Context) {
	timerheap.Loop(ctx, t.wake, pace, t.Round)
}

// Round is one round of Run: it fires what has come due, and says how long it is
// until the next of it.
func (t *Timer) Round() (fired bool, wait time.Duration) {
	due, wait := t.due()
	for _, part := range apart(due) {
		t.fire(part)
	}
	return len(due) > 0, wait
}

// maxSleep bounds the sleep, so that a database clock that was set forward is
// followed.
const maxSleep = time.Second

func (t *Timer) due() (due []*domain.Execution, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now().UnixNano()
	due = t.pending.PopDue(now, nil)
	for i := range due {
		delete(t.held, due[i].ID)
		if t.tenants[due[i].TenantID]--; t.tenants[due[i].TenantID] == 0 {
			delete(t.tenants, due[i].TenantID)
		}
	}
	at, ok := t.pending.Next()
	if !ok {
		return due, maxSleep
	}
	return due, min(max(0, time.Duration(at-now)), maxSleep)
}

// many is from how many runs on a tenant's are handed over by themselves, after
// those of tenants with fewer: to take ten thousand takes tens of milliseconds.
const many = 200

// apart divides what is due at once, so that one tenant's burst keeps nobody
// else's runs waiting (docs/adr/0017).
func apart(due []*domain.Execution) (parts [][]*domain.Execution) {
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
