package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/proto"
)

// An instance that has had nothing to do for a while may keep one session, to
// any node (docs/adr/0020). Nodes cannot dial executors, so a node that has a
// run and nobody for it writes down that it wants the executor's parked
// instances; the node that hears their heartbeats reads it and tells them.

const (
	// wakeEvery is how often they are written down while they last.
	wakeEvery = time.Second
	// wakeFor is how long one lasts unless it is renewed: a run that waits
	// for an instance is tried again more often than that.
	wakeFor = 12 * time.Second
)

// wakeRequests are the executors that this node has runs for and no instance with
// room.
type wakeRequests struct {
	now chan struct{} // capacity 1: write at once; nobody closes it

	mu    sync.Mutex
	until map[domain.ExecutorID]time.Time // guarded by mu
}

func newWakeRequests() wakeRequests {
	return wakeRequests{now: make(chan struct{}, 1), until: map[domain.ExecutorID]time.Time{}}
}

// Want asks for the parked instances of an executor. It does not wait.
func (g *Gateway) Want(executor domain.ExecutorID) {
	if len(g.nodeList().GetNodes()) < 2 {
		return // whoever is parked is parked here
	}
	g.wakes.mu.Lock()
	_, known := g.wakes.until[executor]
	g.wakes.until[executor] = time.Now().Add(wakeFor)
	g.wakes.mu.Unlock()
	if !known {
		select {
		case g.wakes.now <- struct{}{}:
		default:
		}
	}
}

// open returns those that last.
func (w *wakeRequests) open(now time.Time) []domain.ExecutorID {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]domain.ExecutorID, 0, len(w.until))
	for id, until := range w.until {
		if now.After(until) {
			delete(w.until, id)
			continue
		}
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

func (g *Gateway) runWakes(ctx context.Context) {
	g.every(ctx, wakeEvery, g.wakes.now, "ask for parked instances", func() error {
		for list := range slices.Chunk(g.wakes.open(time.Now()), 500) {
			if err := g.opt.Fleet.WakeInstances(ctx, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// wakeParked tells those of the instances that somebody wants to connect to all nodes.
func (g *Gateway) wakeParked(ctx context.Context, parked []domain.InstanceID) error {
	wanted, err := g.opt.Fleet.ListWanted(ctx, parked)
	for _, id := range wanted {
		if s := g.registry.byInstance(id); s != nil {
			s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Wake{Wake: &proto.Wake{}}})
		}
	}
	return err
}
