package gateway

import (
	"context"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// An instance drains when its process says so, or when somebody wants it to
// (docs/adr/0078). The second is of the database, and each node asks for it.

// drainEvery bounds how late a node hears that an instance is to take nothing new.
const drainEvery = 250 * time.Millisecond

func (g *Gateway) runDrains(ctx context.Context) {
	g.tasks.every(ctx, drainEvery, nil, "look for drained instances", func() error { return g.lookAtDrains(ctx) })
}

// DrainsChanged reads the drained instances for this node before it returns. Other nodes
// read them within drainEvery.
func (g *Gateway) DrainsChanged(ctx context.Context) {
	if err := g.lookAtDrains(ctx); err != nil && ctx.Err() == nil {
		g.log.Debug("drained instances could not be read", "err", err) // runDrains reads them again
	}
}

func (g *Gateway) lookAtDrains(ctx context.Context) error {
	g.drains.Lock()
	defer g.drains.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := g.opt.Fleet.ListDrained(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 && !g.drained {
		return nil
	}
	g.drained = len(list) > 0
	drained := make(map[domain.InstanceID]bool, len(list))
	for _, id := range list {
		drained[id] = true
	}
	for _, s := range g.registry.all() {
		if !s.drain(drained[s.Instance]) {
			continue
		}
		if drained[s.Instance] {
			g.log.Info("an instance takes nothing new: somebody drains it", "instance_id", s.Instance)
			g.opt.Sink.Draining(s)
		} else {
			g.log.Info("an instance takes runs again: nobody drains it any more", "instance_id", s.Instance)
			g.opt.Sink.Freed(s, max(s.Free(), 0))
		}
	}
	return nil
}

// drain notes whether somebody wants the instance to take nothing new; it reports
// whether that has changed.
func (s *Session) drain(wanted bool) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if changed = s.drainedAt.IsZero() == wanted; changed && wanted {
		s.drainedAt = time.Now()
	} else if changed {
		s.drainedAt = time.Time{}
	}
	return changed
}
