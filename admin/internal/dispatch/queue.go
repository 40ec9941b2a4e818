package dispatch

import (
	"log/slog"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/batch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
)

// Tenants share every queue here in equal parts; among one tenant's due runs
// precedence decides (docs/adr/0009).

func dueInTurn(e *domain.Execution) batch.Place {
	return batch.Place{Owner: int64(e.TenantID), Rank: e.Precedence().UnixMilli()}
}

func answersInTurn(a *Answer) batch.Place       { return batch.Place{Owner: int64(a.Tenant)} }
func backsInTurn(g *store.GiveBack) batch.Place { return batch.Place{Owner: int64(g.Tenant)} }

// queued are the executions in the due queues. A burst that takes longer than
// domain.PickupGrace is swept while it still waits here; the second copies would
// cost as much as the first.
type queued struct {
	mu  sync.Mutex
	ids map[domain.ExecutionID]struct{} // guarded by mu
	// tenants counts them.
	tenants map[domain.TenantID]int // guarded by mu
}

// enter returns those that were not there, and keeps them.
func (q *queued) enter(due []domain.Execution) []domain.Execution {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ids == nil {
		q.ids, q.tenants = map[domain.ExecutionID]struct{}{}, map[domain.TenantID]int{}
	}
	fresh := make([]domain.Execution, 0, len(due))
	for _, e := range due {
		if _, there := q.ids[e.ID]; !there {
			q.ids[e.ID] = struct{}{}
			q.tenants[e.TenantID]++
			fresh = append(fresh, e)
		}
	}
	return fresh
}

func (q *queued) leave(due []domain.Execution) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range due {
		delete(q.ids, due[i].ID)
		if q.tenants[due[i].TenantID]--; q.tenants[due[i].TenantID] == 0 {
			delete(q.tenants, due[i].TenantID)
		}
	}
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

// owed is room that failed offers gave back: telling those who wait for it at
// once would only send them into the same fault.
type owed struct {
	mu   sync.Mutex
	room map[domain.ExecutorID]int // guarded by mu
}

func (o *owed) add(executor domain.ExecutorID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room == nil {
		o.room = map[domain.ExecutorID]int{}
	}
	o.room[executor]++
}

func (o *owed) take() map[domain.ExecutorID]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := o.room
	o.room = nil
	return out
}
