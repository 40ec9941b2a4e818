package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Timer holds executions until their NotBefore and then hands them to fire,
// all that are due in one call. Create it with NewTimer, run it with Run; Add
// is safe for concurrent use.
type Timer struct {
	now  func() time.Time // the database's clock
	fire func([]domain.Execution)

	mu      sync.Mutex
	pending heap[domain.Execution]           // guarded by mu
	held    map[domain.ExecutionID]time.Time // guarded by mu: NotBefore of what is pending
	wake    chan struct{}
}

// NewTimer returns a Timer. fire must return quickly.
func NewTimer(now func() time.Time, fire func([]domain.Execution)) *Timer {
	return &Timer{
		now: now, fire: fire,
		held: map[domain.ExecutionID]time.Time{}, wake: make(chan struct{}, 1),
	}
}

// Add takes executions to fire at their NotBefore; past ones fire at once.
// An execution that is held already for the same instant is not taken twice.
func (t *Timer) Add(executions ...domain.Execution) {
	if len(executions) == 0 {
		return
	}
	t.mu.Lock()
	before, had := t.pending.peek()
	for _, e := range executions {
		if at, ok := t.held[e.ID]; ok && !e.NotBefore.Before(at) {
			continue
		}
		t.held[e.ID] = e.NotBefore
		t.pending.push(e.NotBefore.UnixNano(), e)
	}
	after, has := t.pending.peek()
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
	return t.pending.len()
}

// Run fires until ctx ends. What is still held then is left to other nodes.
func (t *Timer) Run(ctx context.Context) {
	sleep := time.NewTimer(0)
	defer sleep.Stop()
	for {
		due, wait := t.due()
		if len(due) > 0 {
			t.fire(due)
			continue
		}
		sleep.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-sleep.C:
		}
	}
}

// maxSleep bounds the sleep, so that a database clock that was set forward is
// followed.
const maxSleep = time.Second

// due takes what has come due, or says how long to sleep.
func (t *Timer) due() (due []domain.Execution, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for {
		at, ok := t.pending.peek()
		if !ok {
			return due, maxSleep
		}
		if at > now.UnixNano() {
			return due, min(time.Duration(at-now.UnixNano()), maxSleep)
		}
		e := t.pending.pop()
		// A later entry of an execution that was added again for an earlier
		// instant has been fired with the earlier one.
		if held, ok := t.held[e.ID]; ok && held.Equal(e.NotBefore) {
			delete(t.held, e.ID)
			due = append(due, e)
		}
	}
}
