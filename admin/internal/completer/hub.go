package completer

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// hub wakes those who wait for an execution on this node.
type hub struct {
	mu      sync.Mutex
	waiters map[domain.ExecutionID]*awaited // guarded by mu
}

// awaited is one execution that somebody waits for.
type awaited struct {
	tenant domain.TenantID
	wake   []chan struct{} // closed by publish
}

func (h *hub) subscribe(tenant domain.TenantID, id domain.ExecutionID) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters == nil {
		h.waiters = map[domain.ExecutionID]*awaited{}
	}
	w := h.waiters[id]
	if w == nil {
		w = &awaited{tenant: tenant}
		h.waiters[id] = w
	}
	ch := make(chan struct{})
	w.wake = append(w.wake, ch)
	return ch
}

func (h *hub) unsubscribe(id domain.ExecutionID, ch chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiters[id]
	if w == nil {
		return
	}
	w.wake = slices.DeleteFunc(w.wake, func(c chan struct{}) bool { return c == ch })
	if len(w.wake) == 0 {
		delete(h.waiters, id)
	}
}

func (h *hub) publish(executions []domain.Execution) {
	for i := range executions {
		h.wake(executions[i].ID)
	}
}

func (h *hub) wake(id domain.ExecutionID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w := h.waiters[id]; w != nil {
		for _, ch := range w.wake {
			close(ch)
		}
		delete(h.waiters, id)
	}
}

// list says what is waited for, by tenant, the oldest first.
func (h *hub) list() map[domain.TenantID][]domain.ExecutionID {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[domain.TenantID][]domain.ExecutionID{}
	for id, w := range h.waiters {
		out[w.tenant] = append(out[w.tenant], id)
	}
	for _, ids := range out {
		slices.Sort(ids)
	}
	return out
}

// pollEvery is how often the database is asked for all waiters together: a
// result may have come to another node.
const pollEvery = 500 * time.Millisecond

// pollBatch is how many executions one statement asks for.
const pollBatch = 500

// poll wakes waiters whose executions ended elsewhere.
func (c *Completer) poll(ctx context.Context) {
	awaited := c.hub.list()
	for _, tenant := range slices.Sorted(maps.Keys(awaited)) {
		for ids := range slices.Chunk(awaited[tenant], pollBatch) {
			ended, err := c.opt.Runs.EndedAmong(ctx, tenant, ids)
			if err != nil {
				return // the next round asks again
			}
			for _, id := range ended {
				c.hub.wake(id)
			}
		}
	}
}

// WaitFinished returns the execution once it is terminal. When ctx ends first
// it returns the execution as it is, with domain.CodeWaitTimedOut.
func (c *Completer) WaitFinished(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	for {
		woken := c.hub.subscribe(tenant, id)
		// Ask after subscribing, so that no end is missed in between.
		view, err := c.opt.Runs.FindExecution(context.WithoutCancel(ctx), tenant, id)
		if err != nil || view.State.Terminal() {
			c.hub.unsubscribe(id, woken)
			return view.Execution, err
		}
		select {
		case <-woken:
			continue
		case <-ctx.Done():
		}
		c.hub.unsubscribe(id, woken)
		return view.Execution, domain.Errorf(domain.CodeWaitTimedOut, "the run is still %s", view.State)
	}
}
