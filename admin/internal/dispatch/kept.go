package dispatch

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/carillon-sched/carillon/admin/internal/domain"
)

// keptSlots are the instances whose slots are kept for a run that takes more of them
// than are free. Without that, runs that take one slot each would have every slot
// the moment it is free, and the other one would wait for ever. Only runs behind
// it in precedence are held back, at one instance (docs/adr/0036).
type keptSlots struct {
	count atomic.Int64 // of by, so that nobody waits for mu where nothing is kept

	mu sync.Mutex
	by map[domain.InstanceID]reservation        // guarded by mu
	of map[domain.ExecutionID]domain.InstanceID // guarded by mu: the same by run
}

type reservation struct {
	execution *domain.Execution // never changed
	until     time.Time
}

// keptFor is how long slots are kept for a run that was last known to wait: it
// is looked at again every waitBusy, by this node or another, and nobody tells
// when it was cancelled or has started elsewhere.
const keptFor = 3 * waitBusy

// from reports whether the instance's slots are kept from e, for a run before it.
func (s *keptSlots) from(e *domain.Execution, id domain.InstanceID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.by[id]
	return ok && now.Before(one.until) && domain.ComparePrecedence(one.execution, e) < 0
}

// at returns the instance that keeps slots for the run; 0: none does.
func (s *keptSlots) at(id domain.ExecutionID) domain.InstanceID {
	if s.count.Load() == 0 {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[id]
}

// keep keeps the instance's slots for the run until then, instead of what was
// kept for it, and for another run there.
func (s *keptSlots) keep(e *domain.Execution, id domain.InstanceID, now, until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by, s.of = map[domain.InstanceID]reservation{}, map[domain.ExecutionID]domain.InstanceID{}
	}
	s.dropLocked(e.ID)
	for at, other := range s.by { // few
		if at == id || !now.Before(other.until) {
			s.dropLocked(other.execution.ID)
		}
	}
	s.by[id], s.of[e.ID] = reservation{e, until}, id
	s.count.Add(1)
}

// drop ends what is kept for a run; false: nothing was.
func (s *keptSlots) drop(id domain.ExecutionID) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropLocked(id)
}

func (s *keptSlots) dropLocked(id domain.ExecutionID) bool {
	instance, ok := s.of[id]
	if ok {
		delete(s.of, id)
		delete(s.by, instance)
		s.count.Add(-1)
	}
	return ok
}

func (ch *chooser) keptFrom(e *domain.Execution, id domain.InstanceID) bool {
	return ch.kept.count.Load() > 0 && ch.kept.from(e, id, ch.now())
}

// keepSlots keeps slots for a run of the handler that found no room among the
// candidates, if it takes more than one: at the instance where it has some
// already, or else where the fewest are lacking. With one, the best of all
// is the only one.
func (ch *chooser) keepSlots(e *domain.Execution, handler string, all []candidate, targets []Target, one bool, until time.Time) {
	now := ch.now()
	if !now.Before(until) {
		return
	}
	if one {
		at := best(all, false)
		all = all[max(at, 0):min(at+1, len(all))]
	}
	had, to, least := ch.kept.at(e.ID), domain.InstanceID(0), 0
	for i := range all {
		t := targets[all[i].at]
		weight := t.Weight(handler)
		if weight <= 1 || ch.keptFrom(e, all[i].id) {
			continue
		}
		lacking := weight - t.Free()
		if all[i].id == had {
			to = had
			break
		}
		if to == 0 || lacking < least {
			to, least = all[i].id, lacking
		}
	}
	if to != 0 {
		ch.kept.keep(e, to, now, until)
	}
}
