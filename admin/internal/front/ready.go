package front

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/internal/spelling"
)

// silentTooLong is when a node that cannot write is not ready any more: it has lost its
// partitions long before, and the others have them.
const silentTooLong = 10 * time.Second

// arrivalsLimit bounds how long a node that has started waits for executors before it
// is ready: some of them may have ended, or cannot reach this node.
const arrivalsLimit = 5 * time.Second

// Readiness says whether a node is ready. Until the instances that were connected to the
// cluster when it began to serve have a session here, a run that it fires waits for one.
type Readiness struct {
	Store interface {
		Ping(ctx context.Context) error
		ListConnected(ctx context.Context) ([]domain.InstanceID, error)
	}
	Silent func() time.Duration         // for how long the node has not written
	Here   func(domain.InstanceID) bool // whether an instance has a session here
	NoFire bool                         // the node starts nothing, and waits for no instance

	until time.Time // fixed when the node serves

	mu      sync.Mutex
	known   bool                // guarded by mu: missing was read
	missing []domain.InstanceID // guarded by mu
}

// Begin begins the wait for instances.
func (r *Readiness) Begin() { r.until = time.Now().Add(arrivalsLimit) }

// Ready says why requests should go to another node; nil: they need not.
func (r *Readiness) Ready(ctx context.Context) error {
	if r.NoFire {
		return r.Store.Ping(ctx)
	}
	if silent := r.Silent(); silent > silentTooLong {
		return domain.Errorf(domain.CodeUnavailable, "the node has not been able to write to its database for %s", silent.Round(time.Second))
	}
	missing, err := r.wait(ctx, time.Now())
	if err != nil {
		return err
	}
	if missing > 0 {
		return domain.Errorf(domain.CodeUnavailable, "%s not connected to this node yet", spelling.Count(missing, "instance of an executor is", "instances of executors are"))
	}
	return r.Store.Ping(ctx)
}

// wait returns how many instances have no session here yet; 0 after the limit. The store is
// asked once.
func (r *Readiness) wait(ctx context.Context, now time.Time) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !now.Before(r.until) {
		r.missing = nil
		return 0, nil
	}
	if !r.known {
		missing, err := r.Store.ListConnected(ctx)
		if err != nil {
			return 0, err
		}
		r.known, r.missing = true, missing
	}
	r.missing = slices.DeleteFunc(r.missing, r.Here)
	return len(r.missing), nil
}
