package gormstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// maxQueueRead bounds how much of a queue an offer looks at. Beyond it a run may
// overtake others, but never a limit.
const maxQueueRead = 1000

// findLimits returns the limits that bound the executions, with their places
// under each. Where there is none, and that is known for a second, it costs
// nothing.
func (b *batch) findLimits(ids []domain.ExecutionID) (map[domain.LimitKey][]place, error) {
	known, err := b.t.s.limits.load(b.t.ctx, b.t.q)
	if err != nil || len(known) == 0 {
		return nil, err
	}
	found := map[domain.LimitKey][]place{}
	for _, id := range ids {
		r := b.flights[id].ref
		for _, k := range keysOn(known, r.tenant, r.executor) {
			found[k] = append(found[k], b.placeOf(id))
		}
	}
	return found, nil
}

// loadLimits locks limits, and reads who of these and of others waits under them.
func (b *batch) loadLimits(found map[domain.LimitKey][]place) (err error) {
	if len(found) == 0 {
		return nil
	}
	if b.limits, err = lockLimits(b.t, slices.Collect(maps.Keys(found)), false); err != nil {
		return err
	}
	for k, l := range b.limits {
		if err := l.loadMembers(b.t, found[k]); err != nil {
			return fmt.Errorf("find waiting executions: %w", err)
		}
		if err := l.loadQueue(b.t, min(l.room()+int64(len(found[k])), maxQueueRead)); err != nil {
			return fmt.Errorf("load queue: %w", err)
		}
	}
	return nil
}

// takeRoom counts an execution that is offered.
func (b *batch) takeRoom(e *domain.Execution) {
	if len(b.limits) == 0 {
		return
	}
	for _, l := range b.limitsOf(e) {
		l.take(e)
	}
}

// limitsOf returns the limits that bound an execution, its executor's first.
func (b *batch) limitsOf(e *domain.Execution) (out []*limit) {
	for _, k := range []domain.LimitKey{{Tenant: e.TenantID, Executor: e.Executor}, {Tenant: e.TenantID}} {
		if l := b.limits[k]; l != nil {
			out = append(out, l)
		}
	}
	return out
}

// full returns the first limit that has no room for an execution.
func (b *batch) full(e *domain.Execution) *limit {
	if len(b.limits) == 0 {
		return nil
	}
	for _, l := range b.limitsOf(e) {
		if !l.admits(e) {
			return l
		}
	}
	return nil
}

// leaveQueues gives up e's place under all limits but one: whoever waits for
// something else must not keep others from the room there is.
func (b *batch) leaveQueues(e *domain.Execution, but *limit) {
	if len(b.limits) == 0 {
		return
	}
	for _, l := range b.limitsOf(e) {
		if l != but {
			l.dequeue(e.ID)
		}
	}
}

// waitForRoom lets an execution wait under a limit. It also takes its place in
// the queue for its job's slot, so that no later run of the job overtakes it.
func (b *batch) waitForRoom(m *move, l *limit, r store.OfferResult) (store.OfferResult, error) {
	b.leaveQueues(&m.e, l)
	l.enqueue(&m.e)
	if s := b.slots[m.e.JobID]; s != nil && !m.e.HoldsSlot && m.spec.SlotLimit() > 0 {
		s.enqueue(&m.e)
	}
	r.Status = store.OfferBlocked
	return r, m.e.Wait(b.now, domain.ReasonWaitLimit, domain.LimitMessage(l.kind == kindTenant, l.capacity), b.now.Add(limitCheck))
}
