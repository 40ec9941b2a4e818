package dispatch

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// chooser picks an instance for a run, reserves room there, and knows why there is none.
// All that changes in it has a lock of its own, so that both workers of the due queues use
// it at once.
type chooser struct {
	// fixed after construction
	node     domain.NodeID
	store    Store
	now      func() time.Time
	random   func() uint64
	disabled func(domain.TenantID, domain.ExecutorID) bool
	log      *slog.Logger

	uses     uses
	kept     keptSlots
	deferred deferredSlots
	failures failureLog
}

// choose picks a target and reserves room there: of the pool, if there is one
// that has room. scratch is memory for the next call. A choice without a target
// says that the attempt is there already.
func (ch *chooser) choose(e domain.Execution, spec *domain.JobSpec, targets []Target, from *pool, scratch []candidate) (choice, *waiter, []candidate) {
	in := rankInput{routing: spec.Routing, random: ch.random()}
	in.last, in.recent = ch.uses.of(e.JobID, spec.Routing)
	if spec.Routing == domain.RouteConsistentHash {
		in.key = hashKey(&e, spec)
	}
	one := pinned(&e, spec)
	for from != nil {
		i, tied := from.pick(in, one)
		if i < 0 {
			break // or somebody has come
		}
		t, left := from.targets[i], from.passed.Passed()
		if t.Holds(e.ID, e.Fence+1) {
			return choice{}, nil, scratch
		}
		if !t.Reserve(e.ID, e.Fence+1, 1, len(spec.InputOf(&e))) {
			from.fill(i)
			continue
		}
		from.took(i)
		if tied {
			left = left.AsTied()
		}
		return ch.chosen(e, spec, t, 1, in.last, left), nil, scratch
	}
	all := ch.candidates(&e, spec, targets, scratch[:0])
	rank(all, targets, in)
	for t := ch.wish(&e, spec.Handler, targets); ; t = nil {
		wished := t != nil
		if t == nil {
			at := pick(all, one)
			if at < 0 {
				ch.keepSlots(&e, spec.Handler, all, targets, one, ch.now().Add(keptFor))
				w := waiter{execution: e, spec: spec, online: len(all), message: ch.whyWait(&e, spec, targets, all, one)}
				return choice{}, &w, all
			}
			t = targets[all[at].at]
		}
		if t.Holds(e.ID, e.Fence+1) {
			return choice{}, nil, all
		}
		weight := t.Weight(spec.Handler)
		if !t.Reserve(e.ID, e.Fence+1, weight, len(spec.InputOf(&e))) {
			full(all, t.InstanceID()) // somebody else was quicker
			continue
		}
		if ch.kept.drop(e.ID) { // others may have what was kept beyond what it takes
			ch.deferred.add(place{executor: e.Executor}, weight)
		}
		return ch.chosen(e, spec, t, weight, in.last, passed(all, t.InstanceID(), wished)), nil, all
	}
}

// chosen notes that the target has reserved room for the run.
func (ch *chooser) chosen(e domain.Execution, spec *domain.JobSpec, t Target, weight int, last domain.InstanceID, left domain.Passed) choice {
	ch.uses.took(e.JobID, spec.Routing, t.InstanceID())
	idempotent := t.Idempotent(spec.Handler)
	return choice{execution: e, target: t, weight: weight, routing: spec.Routing, last: last, offer: store.Offer{
		Tenant: e.TenantID, ID: e.ID, Node: ch.node, Instance: t.InstanceID(),
		Idempotent: idempotent, Granted: idempotent, Passed: left, Since: waitsSince(&e),
	}}
}

// waitsSince is from when this node, or a row, tells that the run waits.
func waitsSince(e *domain.Execution) time.Time {
	if len(e.Delays) == 0 {
		return time.Time{}
	}
	return e.Delays[0].At
}

// candidates are the targets that have the labels which the job requires.
func (ch *chooser) candidates(e *domain.Execution, spec *domain.JobSpec, targets []Target, into []candidate) []candidate {
	into = slices.Grow(into, len(targets))
	anyLabels, oneTier := spec.Require.Empty(), spec.Prefer.Empty() && len(e.Delays) == 0
	for at, t := range targets {
		if !anyLabels && !spec.Require.Matches(t.Traits().Labels) {
			continue
		}
		c := candidate{at: at, id: t.InstanceID(), free: t.Free()}
		if w := t.Weight(spec.Handler); w > 1 {
			c.free /= w
		}
		if c.free > 0 && ch.keptFrom(e, c.id) {
			c.free = 0
		}
		if !oneTier {
			c.tier = tierOf(e, spec, t)
		}
		into = append(into, c)
	}
	return into
}

func full(all []candidate, id domain.InstanceID) {
	for i := range all {
		if all[i].id == id {
			all[i].free = 0
		}
	}
}

// wish returns the instance that somebody asked for when the run was created, if
// it has room; nil otherwise. It counts for the first offer only.
func (ch *chooser) wish(e *domain.Execution, handler string, targets []Target) Target {
	if e.Instance == 0 || e.Fence > 0 {
		return nil
	}
	for _, t := range targets {
		if t.InstanceID() == e.Instance && t.Free() >= t.Weight(handler) && !ch.keptFrom(e, e.Instance) {
			return t
		}
	}
	return nil
}

// whyWait says in words why none of the candidates took a run.
func (ch *chooser) whyWait(e *domain.Execution, spec *domain.JobSpec, targets []Target, all []candidate, one bool) string {
	if len(targets) == 0 && ch.disabled(e.TenantID, e.Executor) {
		return "the executor is disabled"
	}
	if len(targets) == 0 {
		return "no instance that serves the handler is connected"
	}
	if len(all) == 0 {
		return "no connected instance that serves the handler has the labels " + spec.Require.Text
	}
	weight, kept, sendQueueFull := 1, false, false
	taken, of, refusing := 0, 0, 0
	for i := range all {
		t := targets[all[i].at]
		load := t.Load()
		if load.Refusing {
			refusing++
			continue
		}
		taken, of = taken+load.Taken, of+load.Of
		weight = max(weight, t.Weight(spec.Handler))
		sendQueueFull = sendQueueFull || t.SendQueueFull()
		kept = kept || t.Free() >= t.Weight(spec.Handler) && ch.keptFrom(e, all[i].id)
	}
	switch {
	case refusing == len(all):
		return "no instance that serves the handler can write its journal"
	case sendQueueFull:
		return "inputs of other runs are still on their way to the instances that serve the handler"
	case kept:
		return "the free slots are kept for a run before this one that takes more of them"
	case weight > 1:
		return "a run of the handler takes " + strconv.Itoa(weight) + " slots, and no instance that it may go to has so many free" + slotsTaken(taken, of)
	case one:
		return "the one instance that the routing strategy " + string(spec.Routing) + " takes is full" + slotsTaken(taken, of)
	case refusing > 0:
		return fmt.Sprintf("every instance that could take it is full%s, and %d cannot write their journals", slotsTaken(taken, of), refusing)
	case taken < of:
		return "every instance that serves the handler was full a moment ago" + slotsTaken(taken, of)
	case !spec.Require.Empty():
		return "every instance that serves the handler and has the labels " + spec.Require.Text + " is full" + slotsTaken(taken, of)
	default:
		return "every instance that serves the handler is full" + slotsTaken(taken, of)
	}
}

// slotsTaken says how many slots the instances have, and how many are taken.
func slotsTaken(taken, of int) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of %d slots are taken)", taken, of)
}
