package dispatch

import (
	"slices"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// choose picks a target and reserves room there. scratch is memory for the next
// call.
func (d *Dispatcher) choose(e domain.Execution, spec *domain.JobSpec, targets []Target, scratch []candidate) (choice, *waiter, []candidate) {
	all := candidates(&e, spec, targets, scratch[:0])
	in := rankInput{routing: spec.Routing, random: d.opt.Random()}
	in.last, in.recent = d.uses.of(e.JobID, spec.Routing)
	if spec.Routing == domain.RouteConsistentHash {
		in.key = hashKey(&e, spec)
	}
	rank(all, targets, in)
	one := pinned(&e, spec)
	for t := wish(&e, targets); ; t = nil {
		wished := t != nil
		if t == nil {
			at := pick(all, one)
			if at < 0 {
				w := waiter{execution: e, spec: spec, online: len(all), message: whyWait(len(targets), len(all), one, spec)}
				return choice{}, &w, all
			}
			t = targets[all[at].at]
		}
		if !t.Reserve(e.ID, e.Fence+1) {
			full(all, t.InstanceID()) // somebody else was quicker
			continue
		}
		d.uses.took(e.JobID, spec.Routing, t.InstanceID())
		idempotent := t.Idempotent(spec.Handler)
		return choice{execution: e, target: t, routing: spec.Routing, last: in.last, offer: store.Offer{
			Tenant: e.TenantID, ID: e.ID, Node: d.opt.Node, Instance: t.InstanceID(),
			Idempotent: idempotent, Granted: idempotent, Passed: passed(all, t.InstanceID(), wished),
		}}, nil, all
	}
}

// candidates are the targets that have the labels which the job requires.
func candidates(e *domain.Execution, spec *domain.JobSpec, targets []Target, into []candidate) []candidate {
	into = slices.Grow(into, len(targets))
	anyLabels, oneTier := spec.Require.Empty(), spec.Prefer.Empty() && len(e.Delays) == 0
	for at, t := range targets {
		if !anyLabels && !spec.Require.Matches(t.Traits().Labels) {
			continue
		}
		c := candidate{at: at, id: t.InstanceID(), free: t.Free()}
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
func wish(e *domain.Execution, targets []Target) Target {
	if e.Instance == 0 || e.Fence > 0 {
		return nil
	}
	for _, t := range targets {
		if t.InstanceID() == e.Instance && t.Free() > 0 {
			return t
		}
	}
	return nil
}

// whyWait says in words why none of the candidates took a run.
func whyWait(serve, candidates int, one bool, spec *domain.JobSpec) string {
	switch {
	case serve == 0:
		return "no instance that serves the handler is connected"
	case candidates == 0:
		return "no connected instance that serves the handler has the labels " + spec.Require.Text
	case one:
		return "the one instance that the routing strategy " + string(spec.Routing) + " takes is full"
	case !spec.Require.Empty():
		return "every instance that serves the handler and has the labels " + spec.Require.Text + " is full"
	default:
		return "every instance that serves the handler is full"
	}
}
