package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

const (
	// LimitCheck is how long a run that waits under a limit is left alone by
	// the sweep: whoever makes room wakes it, and AdmitWaiting is the net.
	LimitCheck = 5 * time.Minute
	// LimitSettles is how long after a change runs are looked for that were
	// offered without a place under the limit. It exceeds the time for which a
	// node trusts what it read of the limits (LimitsFor) and the longest transaction together.
	LimitSettles = 30 * time.Second
	// LimitsFor is how long a node trusts what it read of the limits; runs
	// that it starts meanwhile under a new one are adopted.
	LimitsFor = time.Second
	// AdmitBatch bounds how many runs one transaction wakes under one limit.
	AdmitBatch = 200
	// maxQueueRead bounds how many places of a queue an offer loads. Beyond it a run may
	// overtake others, but never a limit.
	maxQueueRead = 1000
)

// Limit is a limit on how many runs of an executor or a tenant are on instances,
// with its holders and the beginning of its queue.
type Limit struct {
	Key       domain.LimitKey
	Capacity  int64 // 0: it was taken away
	ChangedAt time.Time

	// Running counts holders on instances, and those that this batch adds.
	Running int64
	Holders map[domain.ExecutionID]bool
	// Queue is the beginning of the queue; Waiting are those of this
	// batch's executions that stand anywhere in it.
	Queue   []Place
	Waiting map[domain.ExecutionID]Place

	Hold         []domain.ExecutionID // holders that this batch has added
	Gone         []domain.ExecutionID // holders that are on no instance any more
	Enter, Leave []Place
}

// NewLimit is a limit under which nobody is yet.
func NewLimit(key domain.LimitKey) *Limit {
	return &Limit{Key: key, Holders: map[domain.ExecutionID]bool{}, Waiting: map[domain.ExecutionID]Place{}}
}

// Place is a place in the queue of a limit, ordered by precedence.
type Place struct {
	Precedence int64 // Unix ms
	ID         domain.ExecutionID
}

// ComparePlaces is the order of the queue.
func ComparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Precedence, b.Precedence), cmp.Compare(a.ID, b.ID))
}

// PlaceOf is an execution's place.
func PlaceOf(e *domain.Execution) Place { return Place{e.Precedence().UnixMilli(), e.ID} }

// Unsettled reports whether runs may have been offered past the limit, by nodes
// that did not know of it.
func (l *Limit) Unsettled(now time.Time) bool {
	return l.Capacity > 0 && now.Sub(l.ChangedAt) < LimitSettles
}

// Count notes a holder; there: it is on an instance.
func (l *Limit) Count(id domain.ExecutionID, there bool) {
	l.Holders[id] = true
	if there {
		l.Running++
	} else {
		l.Gone = append(l.Gone, id)
	}
}

// Adopt makes a holder of a run that is on an instance.
func (l *Limit) Adopt(id domain.ExecutionID) {
	if !l.Holders[id] {
		l.Holders[id] = true
		l.Hold = append(l.Hold, id)
		l.Running++
	}
}

// Free is how many more runs may be offered.
func (l *Limit) Free() int64 {
	if l.Capacity == 0 {
		return AdmitBatch
	}
	return max(l.Capacity-l.Running, 0)
}

// Reach is how many places of the queue matter to n runs that want to start.
func (l *Limit) Reach(n int) int64 { return min(l.Free()+int64(n), maxQueueRead) }

// admits reports whether e may be offered: there is room for it and for all
// that wait before it.
func (l *Limit) admits(e *domain.Execution) bool {
	if l.Capacity == 0 {
		return true
	}
	me, places := PlaceOf(e), l.Free()
	for _, p := range l.Queue {
		if places <= 0 || ComparePlaces(p, me) >= 0 {
			break
		}
		places--
	}
	return places > 0
}

// take gives e a place among the holders.
func (l *Limit) take(e *domain.Execution) {
	l.Running++
	if i := slices.Index(l.Gone, e.ID); i >= 0 {
		l.Gone = slices.Delete(l.Gone, i, i+1) // offered again
	} else if !l.Holders[e.ID] {
		l.Holders[e.ID] = true
		l.Hold = append(l.Hold, e.ID)
	}
	l.Dequeue(e.ID)
}

// enqueue lets e wait; it does nothing when it waits already.
func (l *Limit) enqueue(e *domain.Execution) {
	if _, ok := l.Waiting[e.ID]; ok {
		return
	}
	p := PlaceOf(e)
	l.Waiting[e.ID] = p
	l.Enter = append(l.Enter, p)
	i, _ := slices.BinarySearchFunc(l.Queue, p, ComparePlaces)
	l.Queue = slices.Insert(l.Queue, i, p)
}

// Dequeue ends the waiting of an execution, when it does wait.
func (l *Limit) Dequeue(id domain.ExecutionID) {
	p, ok := l.Waiting[id]
	if !ok {
		return
	}
	delete(l.Waiting, id)
	if i := slices.Index(l.Enter, p); i >= 0 {
		l.Enter = slices.Delete(l.Enter, i, i+1)
	} else {
		l.Leave = append(l.Leave, p)
	}
	if i := slices.Index(l.Queue, p); i >= 0 {
		l.Queue = slices.Delete(l.Queue, i, i+1)
	}
}

// Limits are those of a batch by key.
type Limits map[domain.LimitKey]*Limit

// take counts an execution that is offered.
func (all Limits) take(e *domain.Execution) {
	for _, l := range all.of(e) {
		l.take(e)
	}
}

// of returns the limits that bound an execution, its executor's first.
func (all Limits) of(e *domain.Execution) (out []*Limit) {
	for _, k := range []domain.LimitKey{{Tenant: e.TenantID, Executor: e.Executor}, {Tenant: e.TenantID}} {
		if l := all[k]; l != nil {
			out = append(out, l)
		}
	}
	return out
}

// full returns the first limit that has no room for an execution.
func (all Limits) full(e *domain.Execution) *Limit {
	for _, l := range all.of(e) {
		if !l.admits(e) {
			return l
		}
	}
	return nil
}

// leave gives up e's place under all limits but one. A run that waits for one
// limit does not keep other runs from the room of the others.
func (all Limits) leave(e *domain.Execution, but *Limit) {
	for _, l := range all.of(e) {
		if l != but {
			l.Dequeue(e.ID)
		}
	}
}

// waitForLimit lets an execution wait under a limit. It also takes its place in
// the queue for its job's slot, so that no later run of the job overtakes it.
func (t turn) waitForLimit(l *Limit, r *store.OfferResult) error {
	s := t.slotToTake()
	if s != nil {
		if full, err := t.queueFull(s); err != nil || full {
			r.Status = store.OfferDiscarded
			return err
		}
		s.enqueue(t.e)
	}
	t.b.Limits.leave(t.e, l)
	l.enqueue(t.e)
	r.Status = store.OfferBlocked
	return t.e.Wait(t.b.Now, domain.ReasonWaitLimit, domain.LimitMessage(l.Key.Executor == 0, l.Capacity), t.b.Now.Add(LimitCheck))
}

// Admit wakes the runs at the head of a queue, which is no longer than there is
// room. One that was woken before keeps its place; one that waits for something
// else, or for nothing any more, loses it. absent are those that were not loaded.
func (b *Batch) Admit(l *Limit) (woken []*Move, absent []domain.ExecutionID, err error) {
	for _, p := range slices.Clone(l.Queue) {
		m := b.Moves[p.ID]
		if m == nil {
			absent = append(absent, p.ID)
			continue
		}
		b.Deciding = p.ID
		waits := m.E.State == domain.Due || m.E.State == domain.RetryWait
		switch {
		case waits && m.E.Reason == domain.ReasonWaitLimit:
			if err := m.E.Wake(b.Now, Patience(m.Spec)); err != nil {
				return nil, nil, err
			}
			woken = append(woken, m)
		case waits && m.E.Reason == "":
		default:
			l.Dequeue(p.ID)
		}
	}
	return woken, absent, nil
}
