package completer

import (
	"context"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// hub wakes those who wait for an execution on this node.
type hub struct {
	mu      sync.Mutex
	waiters map[domain.ExecutionID][]chan struct{} // guarded by mu; closed by publish
}

func (h *hub) subscribe(id domain.ExecutionID) chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters == nil {
		h.waiters = map[domain.ExecutionID][]chan struct{}{}
	}
	ch := make(chan struct{})
	h.waiters[id] = append(h.waiters[id], ch)
	return ch
}

func (h *hub) unsubscribe(id domain.ExecutionID, ch chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.waiters[id]
	for i, c := range list {
		if c == ch {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(h.waiters, id)
	} else {
		h.waiters[id] = list
	}
}

func (h *hub) publish(executions []domain.Execution) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range executions {
		for _, ch := range h.waiters[e.ID] {
			close(ch)
		}
		delete(h.waiters, e.ID)
	}
}

// pollEvery is how often a waiter asks the database too: the result may have
// come to another node.
const pollEvery = 500 * time.Millisecond

// WaitFinished returns the execution once it is terminal. When ctx ends first
// it returns the execution as it is, with domain.CodeWaitTimedOut.
func (c *Completer) WaitFinished(ctx context.Context, tenant domain.TenantID, id domain.ExecutionID) (domain.Execution, error) {
	for {
		woken := c.hub.subscribe(id)
		// Ask after subscribing, so that no end is missed in between.
		view, err := c.opt.Store.FindExecution(context.WithoutCancel(ctx), tenant, id)
		if err != nil || view.State.Terminal() {
			c.hub.unsubscribe(id, woken)
			return view.Execution, err
		}
		poll := time.NewTimer(pollEvery)
		select {
		case <-ctx.Done():
			err = domain.Errorf(domain.CodeWaitTimedOut, "the run is still %s", view.State)
		case <-woken:
		case <-poll.C:
		}
		poll.Stop()
		c.hub.unsubscribe(id, woken)
		if err != nil {
			return view.Execution, err
		}
	}
}
