package dispatch

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// waiter is an execution for which no instance could be found.
type waiter struct {
	execution domain.Execution
	spec      *domain.JobSpec
	online    int    // instances with a session here that serve the handler and have the labels
	message   string // why it waits, in words
}

// line is who waits for the same instances: those of an executor that serve a
// handler and have the labels that are required. Other instances may have room
// while these are full.
type line struct {
	tenant   domain.TenantID
	executor domain.ExecutorID
	handler  string
	require  string
	// pin is set where the strategy takes one instance only, with the labels
	// that it should have.
	pin    domain.Routing
	prefer string
	bound  domain.InstanceID // of a broadcast's shards; 0 = any instance
}

func (w waiter) line() line {
	l := line{tenant: w.execution.TenantID, executor: w.execution.Executor, handler: w.spec.Handler, require: w.spec.Require.Text, bound: w.execution.Bound}
	if pinned(&w.execution, w.spec) {
		l.pin, l.prefer = w.spec.Routing, w.spec.Prefer.Text
	}
	return l
}

// room is how many more runs of the line the targets can take, of which head is
// the first, when so many slots have been let go to others and may still look
// free. Of runs that take more than one, slots are kept for head until then: those
// behind it must not be quicker, whether it has room now or not.
func (d *Dispatcher) room(l line, head *domain.Execution, until time.Time, targets []Target, let int) (free int) {
	spec := domain.JobSpec{Routing: l.pin, Handler: l.handler}
	// The texts were parsed before: they come from settings that were read.
	spec.Require, _ = domain.ParseSelector(l.require)
	spec.Prefer, _ = domain.ParseSelector(l.prefer)
	targets = boundTo(l.bound, targets)
	who := domain.Execution{ID: head.ID, FireAt: head.FireAt, Priority: head.Priority} // by precedence alone
	all := d.candidates(&who, &spec, targets, nil)
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
	d.save(head, l.handler, all, targets, l.pin != "", until)
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

// waitingRoom keeps waiters by line, by precedence, each once.
type waitingRoom struct {
	mu      sync.Mutex
	lines   map[domain.ExecutorID]map[line][]*waiting // guarded by mu
	present map[domain.ExecutionID]time.Time          // guarded by mu: when it was last known to wait
}

// waiting is what is kept of a waiter.
type waiting struct {
	execution domain.Execution
	input     int // bytes of the input that its offer will have
}

func compare(a, b *waiting) int { return domain.ComparePrecedence(&a.execution, &b.execution) }

// maxWaiting bounds one line; the last ones beyond it wait in the database alone
// and are swept.
const maxWaiting = 10_000

func (r *waitingRoom) add(w waiter, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines == nil {
		r.lines = map[domain.ExecutorID]map[line][]*waiting{}
		r.present = map[domain.ExecutionID]time.Time{}
	}
	e, to := waiting{w.execution, len(w.spec.InputOf(&w.execution))}, w.line()
	lines := r.lines[to.executor]
	if _, ok := r.present[w.execution.ID]; ok {
		r.present[w.execution.ID] = now
		return
	}
	if last := len(lines[to]) - 1; last+1 >= maxWaiting {
		if compare(&e, lines[to][last]) > 0 {
			return
		}
		delete(r.present, lines[to][last].execution.ID)
		lines[to] = slices.Delete(lines[to], last, last+1)
	}
	if lines == nil {
		lines = map[line][]*waiting{}
		r.lines[to.executor] = lines
	}
	r.present[w.execution.ID] = now
	at := len(lines[to]) // most come in order
	if at > 0 && compare(&e, lines[to][at-1]) < 0 {
		at, _ = slices.BinarySearchFunc(lines[to], &e, compare)
	}
	lines[to] = slices.Insert(lines[to], at, &e)
}

// of returns the lines of an executor in which somebody waits, by the precedence
// of their first ones.
func (r *waitingRoom) of(executor domain.ExecutorID) []line {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines[executor]
	return slices.SortedFunc(maps.Keys(lines), func(a, b line) int {
		return compare(lines[a][0], lines[b][0])
	})
}

// first returns who comes first in a line, and when it was last known to wait;
// nil: nobody waits.
func (r *waitingRoom) first(of line) (*domain.Execution, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.lines[of.executor][of]
	if len(list) == 0 {
		return nil, time.Time{}
	}
	e := &list[0].execution
	return e, r.present[e.ID]
}

// take removes up to n waiters of a line, the first ones: those whose inputs have
// that many bytes together, and one more, which will find no room and thereby
// have its instance tell when there is some.
func (r *waitingRoom) take(from line, n, bytes int) []domain.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := r.lines[from.executor]
	n = min(n, len(lines[from]))
	if n <= 0 {
		return nil
	}
	out := make([]domain.Execution, 0, n)
	for _, w := range lines[from][:n] {
		out = append(out, w.execution)
		delete(r.present, w.execution.ID)
		if bytes -= w.input; bytes < 0 {
			break
		}
	}
	lines[from] = slices.Delete(lines[from], 0, len(out))
	if len(lines[from]) == 0 {
		delete(lines, from)
	}
	if len(lines) == 0 {
		delete(r.lines, from.executor)
	}
	return out
}

// How long another node leaves a waiter alone.
const (
	waitBusy = 10 * time.Second // instances are here, but full
	// No instance is here: another node that has one takes the execution at
	// its next look at strays. If nobody has one, the pauses grow.
	waitOfflineMin = 250 * time.Millisecond
	waitOfflineMax = 3 * time.Second
)

// waitOffline is the pause of an execution that has waited so long.
func waitOffline(waited time.Duration) time.Duration {
	return min(max(waited, waitOfflineMin), waitOfflineMax)
}

// wait puts executions into the waiting room and tells the database.
func (d *Dispatcher) wait(ctx context.Context, waiters []waiter) {
	if len(waiters) == 0 {
		return
	}
	waits := make([]store.Wait, len(waiters))
	for i, w := range waiters {
		d.waiting.add(w, d.opt.Now())
		waits[i] = store.Wait{
			Tenant: w.execution.TenantID, ID: w.execution.ID, Reason: domain.ReasonWaitInstance,
			Message: w.message, For: waitBusy, Full: w.online > 0,
		}
		if w.online == 0 {
			if w.execution.Bound != 0 {
				waits[i].Message = "the instance that the shard is for is not connected"
			}
			waits[i].For = waitOffline(d.opt.Now().Sub(w.since()))
		}
	}
	covered, err := d.opt.Store.RecordWaits(ctx, waits)
	if err != nil {
		d.log.Warn("waits could not be recorded", "count", len(waits), "err", err)
	}
	if ended := d.stopCovered(covered); len(ended) > 0 {
		d.opt.Ended(ended)
	}
	d.recheck(waiters)
	for i := range waiters { // it may have left the queue of a limit
		d.freedOne(&waiters[i].execution)
	}
	d.tellOutages(ctx, waiters)
}

// recheck catches room that became free between the choice and the entry into
// the waiting room: nobody would tell about it again.
func (d *Dispatcher) recheck(waiters []waiter) {
	seen := map[line]bool{}
	for _, w := range waiters {
		if l := w.line(); !seen[l] {
			seen[l] = true
			d.release(l, maxWaiting, 0)
		}
	}
}

// Room tells that instances of an executor may have n more slots free.
func (d *Dispatcher) Room(executor domain.ExecutorID, n int) {
	let := 0
	for _, l := range d.waiting.of(executor) {
		let += d.release(l, n, let)
	}
}

// Moved tells that an instance takes no more: runs that waited for it alone have
// another one now.
func (d *Dispatcher) Moved(executor domain.ExecutorID) {
	for _, l := range d.waiting.of(executor) {
		if l.pin != "" {
			d.release(l, maxWaiting, 0)
		}
	}
}

// rooms is Room for several executors, in the order of their ids.
func (d *Dispatcher) rooms(freed map[domain.ExecutorID]int) {
	for _, executor := range slices.Sorted(maps.Keys(freed)) {
		d.Room(executor, freed[executor])
	}
}

// release fires waiters of a line that n slots are enough for, one at least, as
// many as its instances have room for beside what was let go to others. It returns
// how many slots they take.
func (d *Dispatcher) release(l line, n, let int) (slots int) {
	targets := d.opt.Fleet.Targets(l.tenant, l.executor, l.handler)
	weight := weightOf(l.handler, targets)
	head, seen := d.waiting.first(l)
	for weight > 1 && head != nil && !d.opt.Now().Before(seen.Add(savedFor)) {
		d.waiting.take(l, 1, 0) // it runs elsewhere or has ended; who still waits is swept
		head, seen = d.waiting.first(l)
	}
	if head == nil {
		return 0
	}
	free := d.room(l, head, seen.Add(savedFor), targets, let)
	due := d.waiting.take(l, min((n+weight-1)/weight, free), spare(targets))
	d.fire(due)
	return len(due) * weight
}

// spare is how many bytes of inputs can be sent to the targets now.
func spare(targets []Target) (bytes int) {
	for _, t := range targets {
		bytes += t.Spare()
	}
	return bytes
}

// noExecutorAfter is how long a due execution waits before its owner is told
// that no instance is online: a restarting application is no news.
const noExecutorAfter = 10 * time.Second

// outageRepeat is how often the owner of a job is told while an outage lasts.
const outageRepeat = time.Hour

// outages keeps this node from asking the database for every waiter.
type outages struct {
	mu   sync.Mutex
	told map[domain.JobID]time.Time // guarded by mu
}

func (o *outages) first(job domain.JobID, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil || len(o.told) > 100_000 {
		o.told = map[domain.JobID]time.Time{}
	}
	if last, ok := o.told[job]; ok && now.Sub(last) < time.Minute {
		return false
	}
	o.told[job] = now
	return true
}

// forget lets the next waiter of the job ask again.
func (o *outages) forget(job domain.JobID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.told, job)
}

// since returns when the wait for an instance began: later than the fire time
// for runs planned late, for retries, and for those that had to wait for their
// job's slot first. The moves keep it as the end of that wait.
func (w waiter) since() time.Time {
	if w.execution.ExpireAt.IsZero() {
		return w.execution.NotBefore
	}
	patience := w.spec.DispatchTimeout
	if patience <= 0 {
		patience = domain.DefaultDispatchTimeout
	}
	return w.execution.ExpireAt.Add(-patience)
}

// tellOutages writes an alert for each job that is due while no instance of
// its executor is online on any node.
func (d *Dispatcher) tellOutages(ctx context.Context, waiters []waiter) {
	now := d.opt.Now()
	var events []domain.AlertEvent
	for _, w := range waiters {
		e := w.execution
		if w.online > 0 || now.Sub(w.since()) < noExecutorAfter || !d.outages.first(e.JobID, now) {
			continue
		}
		online, err := d.opt.Store.CountOnline(ctx, e.TenantID, e.Executor)
		if err != nil {
			d.outages.forget(e.JobID)
		}
		if err != nil || online > 0 {
			continue
		}
		window := now.Truncate(outageRepeat).Unix()
		events = append(events, domain.AlertEvent{
			ID: d.opt.NewID(), TenantID: e.TenantID, Kind: domain.AlertNoExecutor,
			JobID: e.JobID, Revision: e.Revision, ExecutionID: e.ID, CreatedAt: now,
			DedupeKey: "no_executor/" + e.JobID.String() + "/" + strconv.FormatInt(window, 10),
		})
	}
	if len(events) == 0 {
		return
	}
	if err := d.opt.Store.RecordAlerts(ctx, events); err != nil {
		d.log.Warn("outage alerts could not be written", "count", len(events), "err", err)
		for _, event := range events {
			d.outages.forget(event.JobID)
		}
	}
}
