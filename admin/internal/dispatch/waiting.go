package dispatch

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// waiter is an execution for which no instance could be found.
type waiter struct {
	execution domain.Execution
	spec      *domain.JobSpec
	online    int    // instances with a session here that serve the handler and have the labels
	message   string // why it waits, in words
}

func (w waiter) line() line {
	l := line{tenant: w.execution.TenantID, executor: w.execution.Executor, handler: w.spec.Handler, require: w.spec.Require.Text, bound: w.execution.Bound}
	if pinned(&w.execution, w.spec) {
		l.pin, l.prefer = w.spec.Routing, w.spec.Prefer.Text
	}
	return l
}

// waitRoom has the runs that wait for an instance, and lets them go when one has room. Its
// methods are called from anywhere: queues are guarded by the table's lock, seen and
// failures by locks of their own.
type waitRoom struct {
	// fixed after construction
	store   Store
	fleet   Fleet
	now     func() time.Time
	log     *slog.Logger
	held    *holdings
	choices *chooser
	cancels *canceller
	limits  *limiter
	enqueue func(due []*domain.Execution, turns map[domain.ExecutionID]int64)
	ended   func([]domain.Execution)

	queues   waitQueues
	seen     seen
	failures failureLog
}

// capacityFor is how many more runs of the line the targets can take, of which head is
// the first, when so many slots have been let go to others and may still look
// free. Of runs that take more than one, slots are kept for head until then: those
// behind it must not be quicker, whether it has room now or not.
func (ch *chooser) capacityFor(l line, head *domain.Execution, until time.Time, targets []Target, let int) (free int) {
	spec := domain.JobSpec{Routing: l.pin, Handler: l.handler}
	// The texts were parsed before: they come from settings that were read.
	spec.Require, _ = domain.ParseSelector(l.require)
	spec.Prefer, _ = domain.ParseSelector(l.prefer)
	targets = boundTo(l.bound, targets)
	who := domain.Execution{ID: head.ID, FireAt: head.FireAt, Priority: head.Priority} // by precedence alone
	all := ch.candidates(&who, &spec, targets, nil)
	for i := range all {
		if t := targets[all[i].at]; let > 0 && t.Weight(l.handler) > 1 {
			all[i].free = min(all[i].free, (t.Free()-let)/t.Weight(l.handler))
		}
	}
	if l.pin != "" {
		rank(all, targets, rankInput{routing: l.pin})
		if at := pick(all, true); at >= 0 {
			free = all[at].free
		}
	} else {
		for i := range all {
			free += max(all[i].free, 0)
		}
	}
	ch.keepSlots(head, l.handler, all, targets, l.pin != "", until)
	return free
}

// weightOf is how many slots a run of the handler takes, at least.
func weightOf(handler string, targets []Target) int {
	least := 0
	for _, t := range targets {
		if w := t.Weight(handler); least == 0 || w < least {
			least = w
		}
	}
	return max(least, 1)
}

// How long the sweep leaves a part alone that waits.
const (
	waitBusy = 10 * time.Second // instances are here, but full
	// No instance is here. If nobody has one, the pauses grow.
	waitOfflineMin = 250 * time.Millisecond
	waitOfflineMax = 3 * time.Second
)

// waitOffline is the pause of an execution that has waited so long.
func waitOffline(waited time.Duration) time.Duration {
	return min(max(waited, waitOfflineMin), waitOfflineMax)
}

// wait lets executions wait for an instance.
func (wr *waitRoom) wait(ctx context.Context, waiters []waiter) {
	if len(waiters) == 0 {
		return
	}
	now, held := wr.now(), wr.held.holding()
	var record []*waiting
	for _, w := range waiters {
		e := &w.execution
		if e.Expired(now) {
			continue // the sweep ends it
		}
		if len(e.Delays) == 0 { // should it wait for too long to be written down, its offer tells
			e.Delays = []domain.Delay{{At: now, LastAt: now, Count: 1, Reason: domain.ReasonWaitInstance, Message: w.message}}
		}
		run := &waiting{
			execution: w.execution, spec: w.spec, line: w.line(), online: w.online, message: w.message, known: now,
			swept:     e.IsPart() || e.Bound != 0,
			elsewhere: e.Bound != 0 && w.online == 0,
			foreign:   !held(e.Partition),
			recorded:  e.Reason == domain.ReasonWaitInstance && e.WakeAt.After(now),
		}
		if w.online == 0 && !run.elsewhere && !run.foreign {
			if _, slots := wr.fleet.Room(e.TenantID, e.Executor); slots == 0 {
				run.elsewhere = wr.elsewhere(ctx, e.TenantID, e.Executor, now)
			}
		}
		// A job with a limit on its runs keeps their order in the database. A row that says
		// nothing of the wait means that no node looked for an instance (Unattended).
		ordered := w.spec.SlotLimit() > 0 && !e.HoldsSlot
		short := e.Expired(now.Add(recordAfter + 2*LookEvery))
		record = append(record, wr.queues.add(run, run.swept || run.elsewhere || run.foreign || ordered || short)...)
	}
	_ = wr.record(ctx, record) // it has been logged; they wait here all the same
	wr.recheck(waiters)
	for i := range waiters { // it may have left the queue of a limit
		wr.limits.freedOne(&waiters[i].execution)
	}
}

// elsewhere reports whether other nodes have instances of an executor. It
// asks the database once a second for an executor.
func (wr *waitRoom) elsewhere(ctx context.Context, tenant domain.TenantID, executor domain.ExecutorID, now time.Time) bool {
	wr.seen.mu.Lock()
	at, known := wr.seen.at[executor]
	wr.seen.mu.Unlock()
	if known && now.Sub(at.when) < time.Second {
		return at.online
	}
	n, err := wr.store.CountOnline(ctx, tenant, executor)
	wr.seen.mu.Lock()
	defer wr.seen.mu.Unlock()
	if wr.seen.at == nil || len(wr.seen.at) >= maxSeen {
		wr.seen.at = map[domain.ExecutorID]sighting{}
	}
	wr.seen.at[executor] = sighting{now, err == nil && n > 0}
	return err == nil && n > 0
}

// seen is what this node knows of executors beside its sessions.
type seen struct {
	mu sync.Mutex
	// at is what the database said of executors that have no instance here; at
	// most maxSeen.
	at map[domain.ExecutorID]sighting // guarded by mu
}

type sighting struct {
	when   time.Time
	online bool
}

const maxSeen = 10_000

// recheck catches room that became free between the choice and the entry into
// the wait queues: nobody would tell about it again.
func (wr *waitRoom) recheck(waiters []waiter) {
	seen := map[line]bool{}
	for _, w := range waiters {
		if l := w.line(); !seen[l] {
			seen[l] = true
			wr.release(l, maxWaiting, 0)
		}
	}
}

// slotsFreed tells that an instance of an executor may have n more slots free; 0: one
// of them has.
func (wr *waitRoom) slotsFreed(executor domain.ExecutorID, instance domain.InstanceID, n int) {
	let := 0
	for _, l := range wr.queues.of(executor, instance, wr.now()) {
		if let += wr.release(l, n, let); let >= n {
			return
		}
	}
}

// moved tells that an instance takes no more: runs that waited for it alone have
// another one now.
func (wr *waitRoom) moved(executor domain.ExecutorID) {
	for _, l := range wr.queues.of(executor, 0, wr.now()) {
		if l.pin != "" {
			wr.release(l, maxWaiting, 0)
		}
	}
}

// place is an instance of an executor; 0: any.
type place struct {
	executor domain.ExecutorID
	instance domain.InstanceID
}

// slotsFreedAt is slotsFreed for several places, in the order of their ids.
func (wr *waitRoom) slotsFreedAt(freed map[place]int) {
	order := slices.SortedFunc(maps.Keys(freed), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.executor, b.executor), cmp.Compare(a.instance, b.instance))
	})
	for _, at := range order {
		wr.slotsFreed(at.executor, at.instance, freed[at])
	}
}

// release fires waiters of a line that n slots are enough for, one at least, as
// many as its instances have room for beside what was let go to others. It returns
// how many slots they take.
func (wr *waitRoom) release(l line, n, let int) (slots int) {
	targets := wr.fleet.Targets(l.tenant, l.executor, l.handler)
	weight := weightOf(l.handler, targets)
	head, seen := wr.queues.first(l)
	for weight > 1 && head != nil && !wr.now().Before(seen.Add(keptFor)) {
		wr.queues.drop(head.ID) // it runs elsewhere or has ended; who still waits is swept
		head, seen = wr.queues.first(l)
	}
	if head == nil {
		return 0
	}
	free := wr.choices.capacityFor(l, head, seen.Add(keptFor), targets, let)
	due, turns := wr.queues.take(l, min((n+weight-1)/weight, free), spare(targets), wr.now())
	wr.enqueue(pointers(due), turns)
	return len(due) * weight
}

// spare is how many bytes of inputs can be sent to the targets now.
func spare(targets []Target) (bytes int) {
	for _, t := range targets {
		bytes += t.Spare()
	}
	return bytes
}

// since returns when the wait for an instance began: later than the fire time
// for runs planned late, for retries, and for those that had to wait for their
// job's slot first. The moves keep it as the end of that wait.
func (w *waiting) since() time.Time {
	if w.execution.ExpireAt.IsZero() {
		return w.execution.NotBefore
	}
	patience := w.spec.DispatchTimeout
	if patience <= 0 {
		patience = domain.DefaultDispatchTimeout
	}
	return w.execution.ExpireAt.Add(-patience)
}
