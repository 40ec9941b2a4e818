package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Answer is an instance's answer to an offer.
type Answer struct {
	Tenant   domain.TenantID
	From     Target
	ID       domain.ExecutionID
	Fence    int64
	Accepted bool
	Code     string // see proto Answer.reject_code
	Message  string
}

// Answers with these codes move nothing. rejectVoid is said of grants that start
// nothing and of offers under an old fence, rejectDuplicate of offers that were
// taken before: an attempt that was accepted and not started comes back as a
// result of its own, and an offer that was not taken expires.
const (
	rejectVoid      = "void"
	rejectDuplicate = "duplicate"
)

// rejectBusy is said of offers for which too few slots are free, rejectOld of
// one-step offers that came later than they may be started: neither is a failed send.
const (
	rejectBusy = "busy"
	rejectOld  = "old"
)

// expected are the answers to offers that were sent. Those to one batch of
// offers are granted in one batch too: it costs less than one for each instance
// that answers, and the first to answer waits hardly longer than the last.
type expected struct {
	mu    sync.Mutex
	count int       // guarded by mu
	until time.Time // guarded by mu: waiting for them is worth it
}

// answerWait is how long after offers were sent those who have answered wait for
// the others: enough for the way there and back inside a data centre, less than
// what the interval of early grants costs.
const answerWait = 3 * time.Millisecond

func (x *expected) sent(n int) {
	if n == 0 {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count += n
	x.until = time.Now().Add(answerWait)
}

func (x *expected) came(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count = max(0, x.count-n)
}

// soon is how long to wait for more, and whether all have come.
func (x *expected) soon() (time.Duration, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return time.Until(x.until), x.count == 0
}

// Answered takes answers. It never blocks.
func (d *Dispatcher) Answered(answers ...Answer) {
	answers, inTime := d.early.hold(answers)
	d.expected.came(inTime)
	accepted := make([]Answer, 0, len(answers))
	for _, a := range answers {
		if a.Accepted {
			accepted = append(accepted, a)
			continue
		}
		if a.Code == rejectVoid || a.Code == rejectDuplicate {
			continue
		}
		reason, wait := refusal(a.Code)
		d.giveBacks.Add(store.GiveBack{
			Tenant: a.Tenant, ID: a.ID, Fence: a.Fence, Instance: a.From.InstanceID(),
			Reason: reason, Message: a.Code + ": " + a.Message, Wait: wait, Refused: true, Busy: a.Code == rejectBusy || a.Code == rejectOld,
		})
	}
	d.answers.Add(accepted...)
}

// refusal says how long to wait before the next offer.
func refusal(code string) (domain.Reason, time.Duration) {
	switch code {
	case rejectBusy:
		return domain.ReasonOfferRefused, 200 * time.Millisecond
	case rejectOld:
		return domain.ReasonOfferRefused, 0
	case "unknown_handler":
		return domain.ReasonUnknownHandler, 2 * time.Second
	case "journal_unavailable":
		return domain.ReasonOfferRefused, time.Second
	default:
		return domain.ReasonOfferRefused, 100 * time.Millisecond
	}
}

// voidDrained takes offers back that were accepted by an instance which is drained
// since, and returns the other answers.
func (d *Dispatcher) voidDrained(answers []Answer) []Answer {
	var void batch.Groups[Target, Grant]
	kept := answers[:0:0]
	for _, a := range answers {
		if !a.From.Drained() {
			kept = append(kept, a)
			continue
		}
		void.Add(a.From, Grant{ID: a.ID, Fence: a.Fence})
		d.giveBacks.Add(store.GiveBack{
			Tenant: a.Tenant, ID: a.ID, Fence: a.Fence, Instance: a.From.InstanceID(),
			Reason: domain.ReasonOfferRefused, Message: "the instance was drained before the run started", Refused: true, Busy: true,
		})
	}
	for _, g := range void {
		g.Key.SendGrants(g.Items)
	}
	return kept
}

// grant is the flush of the answers: commit that they start, then tell them.
func (d *Dispatcher) grant(ctx context.Context, answers []Answer) {
	if answers = d.voidDrained(answers); len(answers) == 0 {
		return
	}
	requests := domain.Collect(answers, func(a *Answer) store.GrantRequest {
		return store.GrantRequest{Tenant: a.Tenant, ID: a.ID, Fence: a.Fence, Instance: a.From.InstanceID()}
	})
	results, err := d.opt.Store.GrantOffers(context.WithoutCancel(ctx), requests)
	if err != nil {
		// Whether it was committed is unknown. Say nothing: the executor voids
		// its acceptance after proto.AcceptTTL and reports that it never started.
		d.log.Warn("offers could not be granted", "count", len(answers), "err", err)
		return
	}
	var out batch.Groups[Target, Grant]
	freed := map[place]int{}
	for i, r := range results {
		a := answers[i]
		out.Add(a.From, Grant{ID: a.ID, Fence: a.Fence, Granted: r.Granted})
		if !r.Granted {
			freed[place{r.Execution.Executor, a.From.InstanceID()}]++
		}
	}
	for _, g := range out {
		g.Key.SendGrants(g.Items)
	}
	d.waits.slotsFreedAt(freed) // sending a refusal gave its room back
}

// giveBack is the flush of refused offers.
func (d *Dispatcher) giveBack(ctx context.Context, items []store.GiveBack) {
	results, err := d.opt.Store.GiveBackOffers(context.WithoutCancel(ctx), items)
	if err != nil {
		// They expire by themselves and are swept.
		d.log.Warn("refused offers could not be taken back", "count", len(items), "err", err)
		return
	}
	for i, r := range results {
		if r.Status == store.OfferGone {
			continue
		}
		if t := d.opt.Fleet.TargetOf(items[i].Instance); items[i].Unheard && t != nil {
			lost := r.Execution
			lost.Reason = domain.ReasonLeaseLost // nobody kills the run: only this attempt is over
			t.SendCancel(lost)                   // behind the offer: what has started there stops as soon as that is heard
		}
		d.opt.Later(r.Execution)
		d.limits.freed([]domain.Execution{r.Execution})
	}
}

// Unheard takes one-step offers back of which nobody has heard that they arrived,
// and that cannot start any more where they were sent: other instances get them
// at once, where they may be repeated.
func (d *Dispatcher) Unheard(tenant domain.TenantID, instance domain.InstanceID, offered map[domain.ExecutionID]int64) {
	for _, id := range slices.Sorted(maps.Keys(offered)) {
		d.giveBacks.Add(store.GiveBack{
			Tenant: tenant, ID: id, Fence: offered[id], Instance: instance, Unheard: true,
			Reason: domain.ReasonSessionLost, Message: "the instance did not answer, or its connection broke, before it was heard that the offer had arrived",
		})
	}
}

// Left takes back what had been offered to a session that ended. Attempts
// that are running already are not touched: their lease decides.
func (d *Dispatcher) Left(tenant domain.TenantID, instance domain.InstanceID, offered map[domain.ExecutionID]int64) {
	d.expected.came(len(offered)) // some of them have answered: what waits goes the sooner
	for _, id := range slices.Sorted(maps.Keys(offered)) {
		d.giveBacks.Add(store.GiveBack{
			Tenant: tenant, ID: id, Fence: offered[id], Instance: instance,
			Reason: domain.ReasonSessionLost, Message: "the connection to the instance broke before it answered",
		})
	}
}
