package dispatch

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// waiter is an execution for which no instance could be found.
type waiter struct {
	execution domain.Execution
	handler   string
	online    int // instances with a session here that serve the handler
}

// waitingRoom keeps waiters by executor, in order of arrival, each once.
type waitingRoom struct {
	mu      sync.Mutex
	queues  map[domain.ExecutorID][]domain.Execution // guarded by mu
	present map[domain.ExecutionID]struct{}          // guarded by mu
}

// maxWaiting bounds one executor's room; what exceeds it waits in the
// database alone and is swept.
const maxWaiting = 10_000

func (r *waitingRoom) add(e domain.Execution) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queues == nil {
		r.queues = map[domain.ExecutorID][]domain.Execution{}
		r.present = map[domain.ExecutionID]struct{}{}
	}
	if _, ok := r.present[e.ID]; ok || len(r.queues[e.Executor]) >= maxWaiting {
		return
	}
	r.present[e.ID] = struct{}{}
	r.queues[e.Executor] = append(r.queues[e.Executor], e)
}

// take removes up to n waiters of an executor, oldest first.
func (r *waitingRoom) take(executor domain.ExecutorID, n int) []domain.Execution {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queues[executor]
	n = min(n, len(queue))
	if n <= 0 {
		return nil
	}
	out := queue[:n:n]
	if n == len(queue) {
		delete(r.queues, executor)
	} else {
		r.queues[executor] = queue[n:]
	}
	for _, e := range out {
		delete(r.present, e.ID)
	}
	return out
}

// How long another node leaves a waiter alone.
const (
	waitBusy    = 10 * time.Second // instances are here, but full
	waitOffline = 3 * time.Second  // no instance here; another node may have one
)

// wait puts executions into the waiting room and tells the database.
func (d *Dispatcher) wait(ctx context.Context, waiters []waiter) {
	if len(waiters) == 0 {
		return
	}
	waits := make([]store.Wait, len(waiters))
	for i, w := range waiters {
		d.waiting.add(w.execution)
		waits[i] = store.Wait{
			Tenant: w.execution.TenantID, ID: w.execution.ID, Reason: domain.ReasonWaitInstance,
			Message: "every instance that serves the handler is full", For: waitBusy,
		}
		if w.online == 0 {
			waits[i].Message, waits[i].For = "no instance that serves the handler is connected", waitOffline
		}
	}
	if err := d.opt.Store.RecordWaits(ctx, waits); err != nil {
		d.log.Warn("waits could not be recorded", "count", len(waits), "err", err)
	}
	d.recheck(waiters)
	d.tellOutages(ctx, waiters)
}

// recheck catches room that became free between the choice and the entry into
// the waiting room: nobody would tell about it again.
func (d *Dispatcher) recheck(waiters []waiter) {
	seen := map[domain.ExecutorID]bool{}
	for _, w := range waiters {
		e := w.execution
		if seen[e.Executor] {
			continue
		}
		seen[e.Executor] = true
		free := 0
		for _, t := range d.opt.Fleet.Targets(e.TenantID, e.Executor, w.handler) {
			free += max(t.Free(), 0)
		}
		if free > 0 {
			d.Room(e.Executor, free)
		}
	}
}

// Room tells that instances of an executor may have room for n more attempts.
func (d *Dispatcher) Room(executor domain.ExecutorID, n int) {
	d.Fire(d.waiting.take(executor, n))
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

// tellOutages writes an alert for each job that is due while no instance of
// its executor is online on any node.
func (d *Dispatcher) tellOutages(ctx context.Context, waiters []waiter) {
	now := d.opt.Now()
	var events []domain.AlertEvent
	for _, w := range waiters {
		e := w.execution
		if w.online > 0 || now.Sub(e.FireAt) < noExecutorAfter || !d.outages.first(e.JobID, now) {
			continue
		}
		online, err := d.opt.Store.CountOnline(ctx, e.TenantID, e.Executor)
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
	}
}
