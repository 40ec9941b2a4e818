package bridge

import (
	"github.com/carillon-sched/carillon/admin/internal/dispatch"
	"github.com/carillon-sched/carillon/admin/internal/domain"
	"github.com/carillon-sched/carillon/admin/internal/gateway"
)

// Fleet is dispatch's view of the gateway.
type Fleet struct {
	Gateway *gateway.Gateway
	// Disabled reports whether an executor starts nothing.
	Disabled func(domain.TenantID, domain.ExecutorID) bool
	NoFire   bool // nothing starts
	Traced   bool // this node records traces
	Scripts  *Scripts
}

// Targets implements dispatch.Fleet, as the following methods do.
func (f Fleet) Targets(tenant domain.TenantID, executor domain.ExecutorID, handler string) []dispatch.Target {
	if f.NoFire || f.Disabled(tenant, executor) {
		return nil
	}
	sessions := f.Gateway.Sessions(tenant, executor, handler)
	out := make([]dispatch.Target, len(sessions))
	room := false
	for i, s := range sessions {
		out[i] = target{s, f.Traced, f.Scripts}
		room = room || s.Free() >= s.Slots.Weight(handler)
	}
	if !room {
		f.Gateway.Want(executor) // some of it may be parked at other nodes
	}
	return out
}

func (f Fleet) Room(tenant domain.TenantID, executor domain.ExecutorID) (free, slots int) {
	return f.Gateway.Room(tenant, executor)
}

func (f Fleet) TargetOf(instance domain.InstanceID) dispatch.Target {
	if s := f.Gateway.SessionOf(instance); s != nil {
		return target{s, f.Traced, f.Scripts}
	}
	return nil
}
