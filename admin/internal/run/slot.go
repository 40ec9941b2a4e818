package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// Slot is what a job's runs take turns in: how many hold it, and the part of its
// queue that matters.
type Slot struct {
	Job    domain.JobID
	Tenant domain.TenantID

	// FromCache: it was not loaded. Nobody waits, and there is a place for
	// one run, or one run's place to give back: Holders is the difference.
	// Limit is how many may hold it then.
	FromCache bool
	Limit     int

	Holders, Waiters       int64
	HoldersWas, WaitersWas int64 // as they were loaded
	// Queue is the beginning of the queue, oldest first.
	Queue []Waiter
	// Waiting are the executions of the batch that stand anywhere in the queue.
	Waiting map[domain.ExecutionID]bool

	// Enter and Leave are the places that this batch has taken and given up.
	Enter, Leave []Waiter
	// freed: a place may have become free, so the queue has to be looked at.
	freed bool
}

// Waiter is a place in the queue; it is ordered by fire time.
type Waiter struct {
	FireAt int64 // Unix ms
	ID     domain.ExecutionID
}

// LoadedSlot is a slot with nobody known in its queue yet.
func LoadedSlot(job domain.JobID, tenant domain.TenantID, holders, waiters int64) *Slot {
	return &Slot{Job: job, Tenant: tenant, Holders: holders, Waiters: waiters, HoldersWas: holders, WaitersWas: waiters, Waiting: map[domain.ExecutionID]bool{}}
}

// InQueue notes that an execution waits; first: among those that matter.
func (s *Slot) InQueue(w Waiter, first bool) {
	s.Waiting[w.ID] = true
	if i, there := slices.BinarySearchFunc(s.Queue, w, CompareWaiters); first && !there {
		s.Queue = slices.Insert(s.Queue, i, w)
	}
}

// WaiterOf is an execution's place.
func WaiterOf(e *domain.Execution) Waiter { return Waiter{millis(e.FireAt), e.ID} }

// CompareWaiters is the order of the queue.
func CompareWaiters(a, b Waiter) int {
	return cmp.Or(cmp.Compare(a.FireAt, b.FireAt), cmp.Compare(a.ID, b.ID))
}

func (w Waiter) before(other Waiter) bool { return CompareWaiters(w, other) < 0 }

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Admits reports whether e may take a place: there is a free one for it and
// for all that have waited for an earlier fire time.
func (s *Slot) Admits(e *domain.Execution, limit int) bool {
	if s.FromCache {
		return true
	}
	me := WaiterOf(e)
	places := int64(limit) - s.Holders
	for _, w := range s.Queue {
		if places <= 0 || !w.before(me) {
			break
		}
		places--
	}
	return places > 0
}

func (s *Slot) take(e *domain.Execution) {
	e.HoldsSlot = true
	s.Holders++
	s.dequeue(e)
}

func (s *Slot) release() {
	s.freed = true
	if s.FromCache {
		s.Holders--
		return
	}
	s.Holders = max(s.Holders-1, 0)
}

// enqueue lets e wait; it does nothing when it waits already.
func (s *Slot) enqueue(e *domain.Execution) {
	if s.Waiting[e.ID] {
		return
	}
	w := WaiterOf(e)
	s.Waiting[e.ID] = true
	s.Waiters++
	s.Enter = append(s.Enter, w)
	i, _ := slices.BinarySearchFunc(s.Queue, w, CompareWaiters)
	s.Queue = slices.Insert(s.Queue, i, w)
}

// dequeue ends e's waiting, when it does wait. The place before the others
// becomes free, so they are looked at.
func (s *Slot) dequeue(e *domain.Execution) { s.drop(WaiterOf(e)) }

func (s *Slot) drop(w Waiter) {
	if !s.Waiting[w.ID] {
		return
	}
	delete(s.Waiting, w.ID)
	s.Waiters = max(s.Waiters-1, 0)
	if i := slices.Index(s.Enter, w); i >= 0 {
		s.Enter = slices.Delete(s.Enter, i, i+1)
	} else {
		s.Leave = append(s.Leave, w)
	}
	if i := slices.Index(s.Queue, w); i >= 0 {
		s.Queue = slices.Delete(s.Queue, i, i+1)
	}
	s.freed = true
}
