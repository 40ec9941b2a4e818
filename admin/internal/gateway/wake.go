package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/store"
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

// waker asks the instances that are parked at other nodes to come, and passes on what
// other nodes ask for.
type waker struct {
	// fixed after construction
	fleet    store.Instances
	registry *registry
	nodes    func() *proto.NodeList
	tasks    *tasks

	requests wakeRequests
}

// Want asks for the parked instances of an executor. It does not wait.
func (g *Gateway) Want(executor domain.ExecutorID) { g.waker.want(executor) }

func (wk *waker) want(executor domain.ExecutorID) {
	if len(wk.nodes().GetNodes()) < 2 {
		return // whoever is parked is parked here
	}
	wk.requests.mu.Lock()
	_, known := wk.requests.until[executor]
	wk.requests.until[executor] = time.Now().Add(wakeFor)
	wk.requests.mu.Unlock()
	if !known {
		select {
		case wk.requests.now <- struct{}{}:
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

func (wk *waker) run(ctx context.Context) {
	wk.tasks.every(ctx, wakeEvery, wk.requests.now, "ask for parked instances", func() error {
		for list := range slices.Chunk(wk.requests.open(time.Now()), 500) {
			if err := wk.fleet.WakeInstances(ctx, list); err != nil {
				return err
			}
		}
		return nil
	})
}

// wakeParked tells those of the instances that somebody wants to connect to all nodes.
func (wk *waker) wakeParked(ctx context.Context, parked []domain.InstanceID) error {
	wanted, err := wk.fleet.ListWanted(ctx, parked)
	for _, id := range wanted {
		if s := wk.registry.byInstance(id); s != nil {
			s.sendControl(&proto.ControlToExecutor{Body: &proto.ControlToExecutor_Wake{Wake: &proto.Wake{}}})
		}
	}
	return err
}
