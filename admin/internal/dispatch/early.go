package dispatch

import (
	"context"
	"slices"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/timerheap"
)

// earlyOffers are the offers that were made before the time of their executions,
// until that time comes. An instance that has accepted one by then gets its grant
// with the others whose time it is (docs/adr/0045).
type earlyOffers struct {
	wake    chan struct{}
	table   *runtable.Table        // its lock guards what follows
	pending timerheap.Heap[*early] // the runs that are here
}

// early is the place of a run with an early offer.
type early struct {
	id       domain.ExecutionID
	tenant   domain.TenantID
	instance domain.InstanceID
	fence    int64
	answer   *Answer // nil: it has not come
	of       *earlyOffers
	item     *timerheap.Item[*early]
}

func newEarlyOffers(table *runtable.Table) earlyOffers {
	return earlyOffers{table: table, wake: make(chan struct{}, 1)}
}

// Stage implements runtable.Place, as the following methods do.
func (p *early) Stage() runtable.Stage { return runtable.Early }

func (p *early) Removed() { p.of.pending.Remove(p.item) }

// Yields: a copy from before the offer changes nothing.
func (p *early) Yields(to *domain.Execution) bool { return to.Fence >= p.fence }

// Attended: its row says until when it is.
func (p *early) Attended(time.Time) bool { return false }

// isFor reports whether an answer is to this offer: a session may name any id.
func (p *early) isFor(a *Answer) bool {
	return p.fence == a.Fence && p.tenant == a.Tenant && p.instance == a.From.InstanceID()
}

// offered notes an offer that is about to be sent.
func (o *earlyOffers) offered(e *domain.Execution) {
	o.table.Lock()
	before, _, had := o.pending.First()
	at := e.NotBefore.UnixNano()
	p := &early{id: e.ID, tenant: e.TenantID, instance: e.Instance, fence: e.Fence, of: o}
	if o.table.Move(e, p) {
		p.item = o.pending.Add(at, p)
	}
	o.table.Unlock()
	if !had || at < before {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// hold keeps answers whose time has not come, and returns the others. inTime is
// how many are not answers to early offers.
func (o *earlyOffers) hold(answers []Answer) (others []Answer, inTime int) {
	o.table.Lock()
	defer o.table.Unlock()
	others = answers[:0:0]
	for _, answer := range answers {
		p, is := o.table.At(answer.ID).(*early)
		is = is && p.isFor(&answer)
		if !is {
			inTime++
		}
		if is && answer.Accepted {
			p.answer = &answer
			continue
		}
		others = append(others, answer)
	}
	return others, inTime
}

// due takes the answers whose time has come, and says how long it is until the
// next ones.
func (o *earlyOffers) due(now int64) (answers []Answer, wait time.Duration) {
	o.table.Lock()
	defer o.table.Unlock()
	for {
		at, first, is := o.pending.First()
		switch {
		case !is:
			return answers, longestWait
		case at > now:
			return answers, min(time.Duration(at-now), longestWait)
		}
		o.table.Pass(first.id, first, nil)
		if first.answer != nil {
			answers = append(answers, *first.answer)
		}
	}
}

// longestWait bounds a sleep, so that a clock that was set forward is followed.
const longestWait = time.Second

// GrantDue is one round of what Run does with answers to early offers; it says how
// long to wait for the next one.
func (d *Dispatcher) GrantDue() (wait time.Duration) {
	answers, wait := d.early.due(d.opt.Now().UnixNano())
	d.answers.Add(answers...)
	if len(answers) > 0 {
		wait = max(wait, grantPace)
	}
	return wait
}

// grantPace is the time between two rounds of grants that came due, unless an
// offer for an earlier instant comes: what comes due alone is granted at once, and
// each in a thousand a second waits half of that (docs/adr/0045; what it is worth: docs/adr/0066).
const grantPace = 4 * time.Millisecond

// grantInTime grants what was offered early until ctx ends.
func (d *Dispatcher) grantInTime(ctx context.Context) {
	timerheap.Loop(ctx, d.early.wake, d.GrantDue)
}

// mayOfferEarly reports whether an execution whose time is still to come may be
// offered through one of the targets now: not where the offer is the grant, nor
// where half of each is taken, which a burst finds out sooner here than by a choice.
func mayOfferEarly(spec *domain.JobSpec, targets []Target) bool {
	return spec.MaybeAhead() && len(targets) > 0 && !targets[0].Idempotent(spec.Handler) &&
		slices.ContainsFunc(targets, func(t Target) bool { return t.Load().Slots < halfTaken })
}

// halfTaken of 1,000: what is taken ahead leaves the rest to what comes due sooner.
const halfTaken = 500

// hasJob reports whether a run of the job is among these.
func hasJob(list []domain.Execution, job domain.JobID) bool {
	return slices.ContainsFunc(list, func(e domain.Execution) bool { return e.JobID == job })
}

// leavesCapacity reports whether a choice that is made ahead leaves half of its
// instance to what comes due sooner. One whose offer would be its grant does not
// come ahead; mayOfferEarly has asked another instance.
func (c *choice) leavesCapacity() bool {
	return !c.offer.Granted && c.target.Load().Slots <= halfTaken
}

// undo gives back what choose took.
func (ch *chooser) undo(c *choice) {
	c.target.Release(c.execution.ID, c.execution.Fence+1)
	ch.uses.undo(c.execution.JobID, c.routing, c.offer.Instance, c.last)
}
