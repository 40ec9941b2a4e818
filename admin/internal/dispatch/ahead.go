package dispatch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/timerheap"
)

// ahead are the offers that were made before the time of their executions, until
// that time comes. An instance that has accepted one by then gets its grant with
// the others whose time it is (docs/adr/0045).
type ahead struct {
	mu      sync.Mutex
	pending timerheap.Heap[domain.ExecutionID] // guarded by mu
	offers  map[domain.ExecutionID]early       // guarded by mu: what is pending
	wake    chan struct{}
}

type early struct {
	item     *timerheap.Item[domain.ExecutionID]
	tenant   domain.TenantID
	instance domain.InstanceID
	fence    int64
	answer   *Answer // nil: it has not come
}

// isFor reports whether an answer is to this offer: a session may name any id.
func (o *early) isFor(a *Answer) bool {
	return o.fence == a.Fence && o.tenant == a.Tenant && o.instance == a.From.InstanceID()
}

func newAhead() ahead {
	return ahead{offers: map[domain.ExecutionID]early{}, wake: make(chan struct{}, 1)}
}

// offered notes an offer that is about to be sent.
func (a *ahead) offered(e *domain.Execution) {
	a.mu.Lock()
	before, had := a.pending.Next()
	if old, is := a.offers[e.ID]; is {
		a.pending.Remove(old.item)
	}
	at := e.NotBefore.UnixNano()
	a.offers[e.ID] = early{item: a.pending.Add(at, e.ID), tenant: e.TenantID, instance: e.Instance, fence: e.Fence}
	a.mu.Unlock()
	if !had || at < before {
		select {
		case a.wake <- struct{}{}:
		default:
		}
	}
}

// hold keeps answers whose time has not come, and returns the others. inTime is
// how many are not answers to offers made ahead.
func (a *ahead) hold(answers []Answer) (others []Answer, inTime int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	others = answers[:0:0]
	for _, answer := range answers {
		o, is := a.offers[answer.ID]
		is = is && o.isFor(&answer)
		if !is {
			inTime++
		}
		if is && answer.Accepted {
			o.answer = &answer
			a.offers[answer.ID] = o
			continue
		}
		others = append(others, answer)
	}
	return others, inTime
}

// due takes the answers whose time has come, and says how long it is until the
// next ones.
func (a *ahead) due(now int64) (answers []Answer, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range a.pending.PopDue(now, nil) {
		if answer := a.offers[id].answer; answer != nil {
			answers = append(answers, *answer)
		}
		delete(a.offers, id)
	}
	at, is := a.pending.Next()
	if !is {
		return answers, longestWait
	}
	return answers, min(max(0, time.Duration(at-now)), longestWait)
}

// longestWait bounds a sleep, so that a clock that was set forward is followed.
const longestWait = time.Second

// GrantDue is one round of what Run does with answers to offers that were made
// ahead; it says how long to wait for the next one.
func (d *Dispatcher) GrantDue() (granted bool, wait time.Duration) {
	answers, wait := d.ahead.due(d.opt.Now().UnixNano())
	d.answers.Add(answers...)
	return len(answers) > 0, wait
}

// grantPace is the least time between two rounds of grants that came due: what
// comes due alone is granted at once, and each in a thousand a second waits half
// of that (docs/adr/0045).
const grantPace = 4 * time.Millisecond

// grantInTime grants what was offered ahead until ctx ends.
func (d *Dispatcher) grantInTime(ctx context.Context) {
	timerheap.Loop(ctx, d.ahead.wake, grantPace, d.GrantDue)
}

// maybeAhead reports whether an execution whose time is still to come may be
// offered through one of the targets now: not where the offer is the grant, nor
// where half of each is taken, which a burst finds out sooner here than by a choice.
func maybeAhead(spec *domain.JobSpec, targets []Target) bool {
	return spec.MaybeAhead() && len(targets) > 0 && !targets[0].Idempotent(spec.Handler) &&
		slices.ContainsFunc(targets, func(t Target) bool { return t.Load().Slots < halfTaken })
}

// halfTaken of 1,000: what is taken ahead leaves the rest to what comes due sooner.
const halfTaken = 500

// hasJob reports whether a run of the job is among these.
func hasJob(list []domain.Execution, job domain.JobID) bool {
	return slices.ContainsFunc(list, func(e domain.Execution) bool { return e.JobID == job })
}

// leavesRoom reports whether a choice that is made ahead leaves half of its
// instance to what comes due sooner. One whose offer would be its grant does not
// come ahead; maybeAhead has asked another instance.
func (c *choice) leavesRoom() bool {
	return !c.offer.Granted && c.target.Load().Slots <= halfTaken
}

// undo gives back what choose took.
func (d *Dispatcher) undo(c *choice) {
	c.target.Release(c.execution.ID, c.execution.Fence+1)
	d.uses.undo(c.execution.JobID, c.routing, c.offer.Instance, c.last)
}
