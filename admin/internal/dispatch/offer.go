package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// choice is one execution with the target it was given.
type choice struct {
	execution domain.Execution
	target    Target
	weight    int // slots
	offer     store.Offer
	routing   domain.Routing
	last      domain.InstanceID // of the job before this choice
}

// offer is the flush of the due queue.
func (d *Dispatcher) offer(ctx context.Context, batch []*domain.Execution) {
	defer d.due.begin(batch).end()
	select {
	case <-d.stop: // ctx cannot tell: the last batch gets one that has not ended
		return // other nodes take them
	default:
	}
	ctx = context.WithoutCancel(ctx)
	batch = d.alive(batch)    // in the order of the queue: the best of them get what room there is
	unused := map[place]int{} // room that somebody else may have
	due, specs := d.specsOf(ctx, batch, unused)
	d.choices.recall(ctx, due, specs)
	now := d.opt.Now()
	chosen := make([]choice, 0, len(due))
	var waits []waiter
	var parents, onTime []domain.Execution
	var scratch []candidate
	held := map[domain.JobID]*waiter{} // nobody overtakes an earlier run of a serial job
	here := lookup{fleet: d.opt.Fleet}
	full := map[line]*waiter{} // what found no room, where a run takes one slot: the next of its line has none either
	for i, e := range due {
		spec := specs[i]
		early := e.NotBefore.After(now)
		first := held[e.JobID]
		if first != nil && !e.IsPart() && !early {
			waits = append(waits, waiter{execution: e, spec: spec, online: first.online, message: first.message})
			continue
		}
		targets := here.targets(e.TenantID, e.Executor, spec.Handler)
		if early && (first != nil || !mayOfferEarly(spec, targets) || spec.SlotLimit() > 0 && hasJob(onTime, e.JobID)) {
			onTime = append(onTime, e)
			continue
		}
		if spec.Sharding.On() && len(d.choices.candidates(&e, spec, targets, scratch[:0])) > 0 {
			parents = append(parents, e) // it needs no room, but somebody to have shards for
			continue
		}
		if len(full) > 0 && !early && e.Instance == 0 {
			w := waiter{execution: e, spec: spec}
			if before := full[w.line()]; before != nil {
				w.online, w.message = before.online, before.message
				waits = append(waits, w)
				continue
			}
		}
		var c choice
		var wait *waiter
		c, wait, scratch = d.choices.choose(e, spec, boundTo(e.Bound, targets), d.choices.poolOf(&here, &e, spec, targets), scratch)
		if wait == nil && c.target == nil || wait != nil && isThere(&e, targets) {
			unused[place{e.Executor, e.Bound}] += weightOf(spec.Handler, targets)
			continue
		}
		if early && (wait != nil || !c.leavesCapacity()) {
			if wait == nil {
				d.choices.undo(&c)
				unused[place{e.Executor, c.offer.Instance}] += c.weight
			}
			onTime = append(onTime, e)
			continue
		}
		if wait == nil {
			chosen = append(chosen, c)
			continue
		}
		waits = append(waits, *wait)
		if spec.SlotLimit() > 0 {
			held[e.JobID] = wait
		}
		// One that goes before its time finds slots kept from it that are free for
		// those before it.
		if weightOf(spec.Handler, targets) == 1 && d.choices.kept.count.Load() == 0 {
			full[wait.line()] = wait
		}
	}
	d.opt.OnTime(onTime...)
	d.makeOffers(ctx, chosen)
	d.spread(ctx, parents)
	d.waits.wait(ctx, waits)
	d.waits.slotsFreedAt(unused)
}

// lookup asks the fleet once per handler for a batch: an instance that comes
// meanwhile tells of its room by itself.
type lookup struct {
	fleet Fleet
	found map[served][]Target
	pools map[pooled]*pool
}

type served struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	handler  string
}

func (l *lookup) targets(tenant domain.TenantID, executor domain.ExecutorID, handler string) []Target {
	key := served{tenant, executor, handler}
	found, known := l.found[key]
	if !known {
		if l.found == nil {
			l.found = map[served][]Target{}
		}
		found = l.fleet.Targets(tenant, executor, handler)
		l.found[key] = found
	}
	return found
}

// alive leaves out what nobody needs to offer any more, without asking the
// database: runs whose wait for an instance is over, which the sweep ends, and
// runs that another node looks after by now.
func (d *Dispatcher) alive(batch []*domain.Execution) []*domain.Execution {
	now, held := d.opt.Now(), d.held.holding()
	return slices.DeleteFunc(batch, func(e *domain.Execution) bool {
		return e.Expired(now) || now.Sub(e.WakeAt) > strangerGrace && !held(e.Partition)
	})
}

// strangerGrace is how long after its WakeAt a run of a partition that another
// node holds is left to that node. A dead node's runs are taken on before its
// partitions are.
const strangerGrace = 5 * time.Second

// specsOf reads the settings of due executions, and postpones those whose
// settings cannot be read.
func (d *Dispatcher) specsOf(ctx context.Context, due []*domain.Execution, unused map[place]int) ([]domain.Execution, []*domain.JobSpec) {
	readable := true
	specs := make([]*domain.JobSpec, 0, len(due))
	kept := make([]domain.Execution, 0, len(due))
	for _, e := range due {
		spec, err := d.opt.Store.JobSpec(ctx, e.TenantID, e.JobID, e.Revision)
		if err != nil {
			if domain.Is(err, domain.CodeNotFound) {
				unused[place{e.Executor, e.Bound}]++
			} else {
				readable = false
				d.choices.deferred.add(place{e.Executor, e.Bound}, 1) // the next one would fare no better now
			}
			d.postpone(&d.specFailures, err, *e)
			continue
		}
		kept, specs = append(kept, *e), append(specs, spec.For(e.Part))
	}
	if readable {
		d.specFailures.recovered(d.log)
	}
	return kept, specs
}

// isThere tells a copy that comes again (the wait queues and the sweep may both
// hold one) from a new try: offered to the same instance it would be refused, and
// giving its room back would free the room of the attempt.
func isThere(e *domain.Execution, targets []Target) bool {
	return slices.ContainsFunc(targets, func(t Target) bool { return t.Holds(e.ID, e.Fence+1) })
}

// makeOffers commits the offers, then sends them.
func (d *Dispatcher) makeOffers(ctx context.Context, chosen []choice) {
	if len(chosen) == 0 {
		return
	}
	results, err := d.opt.Store.OfferExecutions(ctx, domain.Collect(chosen, func(c *choice) store.Offer { return c.offer }))
	if err != nil {
		again := make([]domain.Execution, len(chosen))
		for i, c := range chosen {
			c.target.Release(c.execution.ID, c.execution.Fence+1)
			d.choices.deferred.add(place{c.execution.Executor, c.offer.Instance}, c.weight)
			again[i] = c.execution
		}
		d.postpone(&d.offerFailures, err, again...)
		return
	}
	d.offerFailures.recovered(d.log)
	var out batch.Groups[Target, store.OfferResult]
	freed := d.choices.deferred.take()
	if freed == nil {
		freed = map[place]int{}
	}
	var ended, stayed []domain.Execution
	answers := 0
	for i, r := range results {
		ended = append(ended, d.cancels.stopCovered(r.Covered)...)
		c := chosen[i]
		reserved := c.execution.Fence + 1
		if r.Status != store.OfferMade {
			d.choices.undo(&c)
			freed[place{c.execution.Executor, c.offer.Instance}] += c.weight
			if r.Execution.Reason != domain.ReasonWaitLimit || len(d.opt.Store.LimitsOn(c.execution.TenantID, c.execution.Executor)) > 1 {
				stayed = append(stayed, c.execution) // it may have left the queue of a limit
			}
			switch {
			case r.Status == store.OfferDiscarded:
				ended = append(ended, r.Execution)
			case r.Status == store.OfferGone && !r.Execution.State.Terminal() && r.Execution.NotBefore.After(d.opt.Now()):
				// It has to wait for its time, or the database's clock was set back.
				d.opt.OnTime(r.Execution)
			}
			continue
		}
		if r.Execution.Fence != reserved { // what we held was an older copy
			c.target.Release(c.execution.ID, reserved)
			_ = c.target.Reserve(r.Execution.ID, r.Execution.Fence, c.weight, len(r.Spec.InputOf(&r.Execution))) // a full instance refuses by itself
		}
		if r.Execution.State == domain.Cancelling {
			continue // a later offer of the batch covered it: it gets the cancel, and no offer
		}
		out.Add(c.target, r)
		switch {
		case c.offer.Granted:
		case r.Execution.NotBefore.After(d.opt.Now()):
			d.early.offered(&results[i].Execution)
		default:
			answers++
		}
	}
	d.expected.sent(answers)
	for _, g := range out {
		g.Key.SendOffers(g.Items)
	}
	d.waits.slotsFreedAt(freed) // the other worker may have met a full house
	d.limits.freed(stayed)
	d.ended(ended)
}

// ended tells of runs that have ended.
func (d *Dispatcher) ended(list []domain.Execution) {
	if len(list) > 0 {
		d.opt.Ended(list)
	}
}

// retryPause spreads the next try after a database error.
func (d *Dispatcher) retryPause() time.Duration {
	return 300*time.Millisecond + time.Duration(d.opt.Random()%uint64(400*time.Millisecond))
}

func (d *Dispatcher) postpone(f *failureLog, err error, executions ...domain.Execution) {
	if domain.Is(err, domain.CodeNotFound) {
		return // gone with its job
	}
	f.failed(d.log, err, len(executions))
	for i := range executions {
		executions[i].NotBefore = d.opt.Now().Add(d.retryPause())
	}
	d.opt.Later(executions...)
}
