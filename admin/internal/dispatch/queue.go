package dispatch

import (
	"log/slog"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/runtable"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tenants share every queue here in equal parts; among one tenant's due runs
// precedence decides (docs/adr/0009).

// While a backlog is late, fresh runs take turns with it. Runs of a job with a limit on its
// runs start in order. A run that was loaded late is not fresh.
func (d *Dispatcher) dueInTurn(e **domain.Execution) batch.Place {
	spec, at := d.opt.Store.KnownSpec((*e).JobID, (*e).Revision), freshness(*e)
	return batch.Place{
		Owner: int64((*e).TenantID), Rank: d.due.rank(*e),
		Newest: spec != nil && spec.SlotLimit() == 0 && d.opt.Now().Sub(at) <= lateAfter, FreshRank: -at.UnixMilli(),
	}
}

func answersInTurn(a *Answer) batch.Place           { return batch.Place{Owner: int64(a.Tenant)} }
func giveBacksInTurn(g *store.GiveBack) batch.Place { return batch.Place{Owner: int64(g.Tenant)} }

// queued is the place of a run in a due queue. A burst that takes longer than
// domain.PickupGrace is found by the sweep while it still waits here; the second
// copies would cost as much as the first, and rewriting their rows more
// (docs/adr/0035).
type queued struct {
	run    *domain.Execution
	rank   int64 // where it stands among its tenant's: lower ones go first
	worker int
	of     *dueRuns
}

// Stage implements runtable.Place, as the following methods do.
func (p *queued) Stage() runtable.Stage { return runtable.Queued }

func (p *queued) Removed() { p.of.release(p.run.JobID) }

// Yields: only a batch takes what is in a queue, until it is out of date.
func (p *queued) Yields(to *domain.Execution) bool { return to.Fence > p.run.Fence }

// Attended: it may still wait.
func (p *queued) Attended(now time.Time) bool {
	return p.run.ExpireAt.IsZero() || now.Before(p.run.ExpireAt)
}

// offering is the place of runs whose offers are being made: a batch that is under
// way.
type offering struct {
	runs []*domain.Execution
	of   *dueRuns
}

// Stage implements runtable.Place, as the following methods do.
func (*offering) Stage() runtable.Stage { return runtable.Offering }

func (*offering) Removed() {}

// Yields: its own batch sends a run on, and what comes of an offer may be quicker
// than the rest of the batch.
func (*offering) Yields(*domain.Execution) bool { return true }

func (*offering) Attended(time.Time) bool { return true }

// dueRuns are those in the due queues, and in batches.
type dueRuns struct {
	table *runtable.Table // its lock guards what follows
	// jobs are those of all of them, and load is how many each worker has.
	jobs map[domain.JobID]lane
	load [offerWorkers]int
}

func newDueRuns(table *runtable.Table) dueRuns {
	return dueRuns{table: table, jobs: map[domain.JobID]lane{}}
}

// rankOf is where a run stands among its tenant's: lower ones go first.
func rankOf(e *domain.Execution) int64 { return e.Precedence().UnixMilli() }

// rank is where a run stands that is in a queue.
func (q *dueRuns) rank(e *domain.Execution) int64 {
	q.table.Lock()
	defer q.table.Unlock()
	if p, is := q.table.At(e.ID).(*queued); is {
		return p.rank
	}
	return rankOf(e)
}

// lane is the worker that a job's runs wait for, while there are any.
type lane struct{ worker, runs int }

// offerFew is up to how many runs are left to one worker: two batches of them
// would cost more than one.
const offerFew = offerBatch / 4

// enter takes those to the queues that were not there, and returns them by worker.
// Runs of one job are offered in order, so they go to the worker that has some of
// it; apart from that, few go together to the one that has less to do, and many to
// both. turns has the ranks of those that take turns with a run before them: so
// they keep their turn on the way to an instance, which takes what comes first.
func (q *dueRuns) enter(due []*domain.Execution, turns map[domain.ExecutionID]int64) (parts [offerWorkers][]*domain.Execution) {
	q.table.Lock()
	defer q.table.Unlock()
	idlest, all := 0, len(due)
	for worker, runs := range q.load {
		all += runs
		if runs < q.load[idlest] {
			idlest = worker
		}
	}
	for _, e := range due {
		rank, turn := turns[e.ID]
		if !turn {
			rank = rankOf(e)
		}
		worker := e.Partition % offerWorkers
		if at, has := q.jobs[e.JobID]; has {
			worker = at.worker
		} else if all <= offerFew {
			worker = idlest
		}
		if q.table.Move(e, &queued{e, rank, worker, q}) {
			q.hold(e.JobID, worker)
			parts[worker] = append(parts[worker], e)
		}
	}
	return parts
}

// hold counts a run of a job whose runs go to a worker, until release. The lock is
// held.
func (q *dueRuns) hold(job domain.JobID, worker int) {
	q.jobs[job] = lane{worker, q.jobs[job].runs + 1}
	q.load[worker]++
}

func (q *dueRuns) release(job domain.JobID) {
	at := q.jobs[job]
	q.load[at.worker]--
	if at.runs--; at.runs == 0 {
		delete(q.jobs, job)
	} else {
		q.jobs[job] = at
	}
}

// begin takes runs out of the queues into a batch; they may enter again from then
// on.
func (q *dueRuns) begin(due []*domain.Execution) *offering {
	q.table.Lock()
	defer q.table.Unlock()
	batch := &offering{make([]*domain.Execution, 0, len(due)), q}
	for _, e := range due {
		p, is := q.table.At(e.ID).(*queued)
		if is && p.run == e && q.table.Pass(e.ID, p, batch) { // a flush that panicked is repeated
			q.hold(e.JobID, p.worker)
			batch.runs = append(batch.runs, e)
		}
	}
	return batch
}

// end is the end of a batch: what it has sent nowhere else leaves this node.
func (b *offering) end() {
	q := b.of
	q.table.Lock()
	defer q.table.Unlock()
	for _, e := range b.runs {
		q.table.Pass(e.ID, b, nil)
		q.release(e.JobID)
	}
}

// Unattended leaves out what waits here and may still wait, or is being offered,
// and returns the rest in its order.
func (d *Dispatcher) Unattended(ids []domain.ExecutionID) []domain.ExecutionID {
	return d.opt.Table.Unattended(ids, d.opt.Now())
}

// failureLog tells of a step that fails again and again only when that begins and
// when it is over.
type failureLog struct {
	step string // fixed

	mu        sync.Mutex
	postponed int // guarded by mu: executions since it began; 0 = all is well
}

func (f *failureLog) failed(log *slog.Logger, err error, executions int) {
	f.mu.Lock()
	first := f.postponed == 0
	f.postponed += executions
	f.mu.Unlock()
	if first {
		log.Warn("dispatch does not work", "step", f.step, "count", executions, "err", err)
	}
}

func (f *failureLog) recovered(log *slog.Logger) {
	f.mu.Lock()
	n := f.postponed
	f.postponed = 0
	f.mu.Unlock()
	if n > 0 {
		log.Info("dispatch works again", "step", f.step, "postponed", n)
	}
}

// deferredSlots are slots that failed offers gave back, or that were kept for longer
// than needed: who waits for them is told after the next offers that succeed, and
// not sent into the same fault at once.
type deferredSlots struct {
	mu    sync.Mutex
	slots map[place]int // guarded by mu
}

func (d *deferredSlots) add(at place, slots int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.slots == nil {
		d.slots = map[place]int{}
	}
	d.slots[at] += slots
}

func (d *deferredSlots) take() map[place]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.slots
	d.slots = nil
	return out
}
