package dispatch

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tenants share every queue here in equal parts; among one tenant's due runs
// precedence decides (docs/adr/0009).

// Where a backlog is late, new runs take turns with it, but for those of jobs with
// a limit on their runs, which start in order.
func (d *Dispatcher) dueInTurn(e **domain.Execution) batch.Place {
	spec := d.opt.Store.KnownSpec((*e).JobID, (*e).Revision)
	return batch.Place{
		Owner: int64((*e).TenantID), Rank: d.queued.rank(*e),
		Newest: spec != nil && spec.SlotLimit() == 0, FreshRank: -freshness(*e).UnixMilli(),
	}
}

func answersInTurn(a *Answer) batch.Place       { return batch.Place{Owner: int64(a.Tenant)} }
func backsInTurn(g *store.GiveBack) batch.Place { return batch.Place{Owner: int64(g.Tenant)} }

// queued are the executions in the due queues. A burst that takes longer than
// domain.PickupGrace is found by the sweep while it still waits here; the second
// copies would cost as much as the first, and rewriting their rows more
// (docs/adr/0035).
type queued struct {
	mu sync.Mutex
	// ids names for each when its wait for an instance ends, in Unix ms; 0: never.
	ids map[domain.ExecutionID]int64 // guarded by mu
	// tenants counts them.
	tenants map[domain.TenantID]int // guarded by mu
	// offering are in a batch that is under way; they name the last one.
	offering map[domain.ExecutionID]int // guarded by mu
	batches  int                        // guarded by mu: how many have begun
	// turns are the ranks of those whose turn came before their time.
	turns map[domain.ExecutionID]int64 // guarded by mu
	// jobs are those of all of them, and load is how many each worker has.
	jobs map[domain.JobID]lane // guarded by mu
	load [offerWorkers]int     // guarded by mu
}

// rankOf is where a run stands among its tenant's: lower ones go first.
func rankOf(e *domain.Execution) int64 { return e.Precedence().UnixMilli() }

// rank is rankOf, or that of the run that e takes turns with: so it keeps its
// turn on the way to an instance, which takes what comes first.
func (q *queued) rank(e *domain.Execution) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if rank, turn := q.turns[e.ID]; turn {
		return rank
	}
	return rankOf(e)
}

// promote notes the ranks of runs that are about to enter.
func (q *queued) promote(turns map[domain.ExecutionID]int64) {
	if len(turns) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns == nil {
		q.turns = map[domain.ExecutionID]int64{}
	}
	maps.Copy(q.turns, turns)
}

// lane is the worker that a job's runs wait for, while there are any.
type lane struct{ worker, runs int }

// offerFew is up to how many runs are left to one worker: two batches of them
// would cost more than one.
const offerFew = offerBatch / 4

// enter keeps those that were not there, and returns them by worker. Runs of one
// job are offered in order, so they go to the worker that has some of it; apart
// from that, few go together to the one that has less to do, and many to both.
func (q *queued) enter(due []*domain.Execution) (parts [offerWorkers][]*domain.Execution) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ids == nil {
		q.ids, q.tenants = map[domain.ExecutionID]int64{}, map[domain.TenantID]int{}
		q.offering, q.jobs = map[domain.ExecutionID]int{}, map[domain.JobID]lane{}
	}
	idlest, all := 0, len(due)
	for worker, runs := range q.load {
		all += runs
		if runs < q.load[idlest] {
			idlest = worker
		}
	}
	for _, e := range due {
		if _, there := q.ids[e.ID]; there {
			continue
		}
		at, has := q.jobs[e.JobID]
		switch {
		case has:
		case all <= offerFew:
			at.worker = idlest
		default:
			at.worker = e.Partition % offerWorkers
		}
		at.runs++
		q.jobs[e.JobID] = at
		q.load[at.worker]++
		q.ids[e.ID] = waitEnd(e)
		q.tenants[e.TenantID]++
		parts[at.worker] = append(parts[at.worker], e)
	}
	return parts
}

// leave takes out what is in a batch now; it may enter again from then on.
// offered is to be called when the batch is over.
func (q *queued) leave(due []*domain.Execution) (offered func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	type run struct {
		id  domain.ExecutionID
		job domain.JobID
	}
	batch := make([]run, 0, len(due))
	q.batches++
	number := q.batches
	for i := range due {
		if _, here := q.ids[due[i].ID]; !here {
			continue // a flush that panicked is repeated
		}
		batch = append(batch, run{due[i].ID, due[i].JobID})
		q.offering[due[i].ID] = number
		delete(q.ids, due[i].ID)
		delete(q.turns, due[i].ID)
		if q.tenants[due[i].TenantID]--; q.tenants[due[i].TenantID] == 0 {
			delete(q.tenants, due[i].TenantID)
		}
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, r := range batch {
			if q.offering[r.id] == number { // it may be in a later batch already
				delete(q.offering, r.id)
			}
			at := q.jobs[r.job]
			q.load[at.worker]--
			if at.runs--; at.runs == 0 {
				delete(q.jobs, r.job)
			} else {
				q.jobs[r.job] = at
			}
		}
	}
}

// without returns those of ids that neither wait here, until their wait for an
// instance ends, nor are in a batch.
func (q *queued) without(ids []domain.ExecutionID, now int64) []domain.ExecutionID {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(ids, func(id domain.ExecutionID) bool {
		if _, is := q.offering[id]; is {
			return true
		}
		end, there := q.ids[id]
		return there && (end == 0 || end > now)
	})
}

func waitEnd(e *domain.Execution) int64 {
	if e.ExpireAt.IsZero() {
		return 0
	}
	return e.ExpireAt.UnixMilli()
}

// Unattended leaves out what is in a due queue or the waiting room and may still
// wait, or is being offered, and returns the rest in its order.
func (d *Dispatcher) Unattended(ids []domain.ExecutionID) []domain.ExecutionID {
	now := d.opt.Now()
	return d.waiting.without(d.queued.without(ids, now.UnixMilli()), now)
}

// Waiting adds how many executions of each tenant are due here and not in a
// batch yet.
func (d *Dispatcher) Waiting(into map[domain.TenantID]int) {
	d.queued.mu.Lock()
	defer d.queued.mu.Unlock()
	for tenant, n := range d.queued.tenants {
		into[tenant] += n
	}
}

// trouble tells of a step that fails again and again only when that begins and
// when it is over.
type trouble struct {
	step string // fixed

	mu        sync.Mutex
	postponed int // guarded by mu: executions since it began; 0 = all is well
}

func (t *trouble) met(log *slog.Logger, err error, executions int) {
	t.mu.Lock()
	first := t.postponed == 0
	t.postponed += executions
	t.mu.Unlock()
	if first {
		log.Warn("dispatch does not work", "step", t.step, "count", executions, "err", err)
	}
}

func (t *trouble) over(log *slog.Logger) {
	t.mu.Lock()
	n := t.postponed
	t.postponed = 0
	t.mu.Unlock()
	if n > 0 {
		log.Info("dispatch works again", "step", t.step, "postponed", n)
	}
}

// owed are slots that failed offers gave back, or that were kept longer than needed: telling those who wait for it at
// once would only send them into the same fault.
type owed struct {
	mu   sync.Mutex
	room map[place]int // guarded by mu
}

func (o *owed) add(at place, slots int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room == nil {
		o.room = map[place]int{}
	}
	o.room[at] += slots
}

func (o *owed) take() map[place]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.room
	o.room = nil
	return out
}
