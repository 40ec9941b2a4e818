package gateway

import (
	"maps"
	"slices"
	"sync"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// registry knows the sessions of this node. An instance has at most one: a
// newer session of the same process replaces the older one, whose socket may
// have died unnoticed.
type registry struct {
	mu         sync.RWMutex
	sessions   map[domain.SessionID]*Session
	instances  map[domain.InstanceID]*Session
	byExecutor map[domain.ExecutorID][]*Session // in order of registration
}

func newRegistry() registry {
	return registry{
		sessions:   map[domain.SessionID]*Session{},
		instances:  map[domain.InstanceID]*Session{},
		byExecutor: map[domain.ExecutorID][]*Session{},
	}
}

// add enters s and returns the session that it replaces, if any.
func (r *registry) add(s *Session) (replaced *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	replaced = r.instances[s.Instance]
	if replaced != nil {
		r.removeLocked(replaced)
	}
	r.sessions[s.ID] = s
	r.instances[s.Instance] = s
	// A copy, because readers hold the old slice.
	r.byExecutor[s.Executor] = append(slices.Clone(r.byExecutor[s.Executor]), s)
	return replaced
}

// remove takes s out; false when it was replaced or removed before.
func (r *registry) remove(s *Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions[s.ID] != s {
		return false
	}
	r.removeLocked(s)
	return true
}

func (r *registry) removeLocked(s *Session) {
	delete(r.sessions, s.ID)
	if r.instances[s.Instance] == s {
		delete(r.instances, s.Instance)
	}
	left := slices.DeleteFunc(slices.Clone(r.byExecutor[s.Executor]), func(o *Session) bool { return o == s })
	if len(left) == 0 {
		delete(r.byExecutor, s.Executor)
	} else {
		r.byExecutor[s.Executor] = left
	}
}

func (r *registry) serving(tenant domain.TenantID, executor domain.ExecutorID, handler string) []*Session {
	r.mu.RLock()
	all := r.byExecutor[executor]
	r.mu.RUnlock()
	out := make([]*Session, 0, len(all))
	for _, s := range all {
		if s.Tenant == tenant && s.serves(handler) && !s.isDraining() && !s.doubt.Load() {
			out = append(out, s)
		}
	}
	return out
}

func (r *registry) room(tenant domain.TenantID, executor domain.ExecutorID) (free, slots int) {
	r.mu.RLock()
	all := r.byExecutor[executor] // never changed in place
	r.mu.RUnlock()
	for _, s := range all {
		if s.Tenant == tenant && !s.doubt.Load() {
			s.mu.Lock()
			slots += s.Slots.occupancy.slots
			s.mu.Unlock()
			free += max(0, s.Free())
		}
	}
	return free, slots
}

func (r *registry) byInstance(id domain.InstanceID) *Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.instances[id]
}

func (r *registry) bySession(id domain.SessionID) *Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.sessions[id]
}

func (r *registry) all() []*Session {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.AppendSeq(make([]*Session, 0, len(r.sessions)), maps.Values(r.sessions))
}

func (r *registry) count() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.sessions)
}

func (r *registry) closeAll(cause error) {
	for _, s := range r.all() {
		s.close(cause)
	}
}
