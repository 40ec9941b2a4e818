package gateway

import (
	"time"

	"github.com/carillon-sched/carillon/proto"
)

// An attempt takes as many slots as its handler weighs (docs/adr/0036), and a part
// of the line to its instance until its offer has been written.

// weigh keeps what the instance's handlers weigh. It is called before the session
// is known to anybody.
func (s *Session) weigh(handlers []*proto.Handler) {
	for _, h := range handlers {
		if h.Weight > 1 {
			if s.weights == nil {
				s.weights = map[string]int{}
			}
			s.weights[h.Name] = int(h.Weight)
		}
	}
}

// Weight returns how many of the instance's slots a run of the handler takes: at
// least 1, also of an SDK that tells none, and at most all, as the SDK counts it.
func (s *Session) Weight(handler string) int {
	w := s.weights[handler]
	if w <= 1 {
		return 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(1, min(w, s.occupancy.slots))
}

// maxLoading is how many bytes of offers may be on their way onto the line of an
// instance, or one offer that is larger (docs/adr/0042). An offer lives for 3 s:
// on a line of 10 Mbit/s these take 1.7.
const maxLoading = 2 << 20

// Reserve takes slots of the instance, as many as the attempt weighs, for one
// that is about to be offered with so many bytes of input; false when too few
// are free, or too much that was offered before has not been sent yet.
func (s *Session) Reserve(execution, fence int64, weight, input int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || !s.drainedAt.IsZero() || s.retiring || s.cause != nil || s.refusing || s.occupancy.Occupied()+weight > s.occupancy.slots {
		return false
	}
	if s.loading > 0 && s.loading+input > maxLoading {
		s.queueFull = true
		return false
	}
	if f, ok := s.forgetLocked(attemptKey{execution, fence}); ok {
		s.occupancy.Drop(f.beat, f.weight)
	}
	if s.inflight == nil { // most sessions are idle
		s.inflight = map[attemptKey]reservation{}
	}
	s.inflight[attemptKey{execution, fence}] = reservation{lease: s.leased, leaseAt: s.leasedAt, since: time.Now(), beat: s.occupancy.Take(weight), weight: weight, loading: input}
	s.loading += input
	return true
}

// Holds reports whether the attempt has slots of the instance.
func (s *Session) Holds(execution, fence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.inflight[attemptKey{execution, fence}]
	return ok
}

// loaded is told which offers have been written; it reports whether the
// instance takes offers again.
func (s *Session) loaded(part []bulk) (relieved bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range part {
		if b.offer == nil {
			continue
		}
		k := attemptKey{b.offer.ExecutionId, b.offer.Fence}
		if f, ok := s.inflight[k]; ok {
			relieved = s.unload(f.loading) || relieved
			f.loading = 0
			s.inflight[k] = f
		}
	}
	return relieved
}

// unload notes that bytes of offers are on the line, or never will be; it
// reports whether the instance takes offers again. mu is held.
func (s *Session) unload(bytes int) (relieved bool) {
	s.loading -= bytes
	if relieved = s.queueFull && s.loading <= maxLoading/2; relieved {
		s.queueFull = false
	}
	return relieved
}

// SendQueueFull reports whether the instance gets nothing because inputs of other
// runs are still on their way to it.
func (s *Session) SendQueueFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queueFull
}

// Spare returns how many more bytes of offers may be on their way to it.
func (s *Session) Spare() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, maxLoading-s.loading)
}

// Release gives reserved slots back.
func (s *Session) Release(execution, fence int64) { s.ended(attemptKey{execution, fence}) }

// ended forgets attempts of which the instance said, or is told, that they are
// over; it returns how many slots they had here.
func (s *Session) ended(keys ...attemptKey) (freed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if f, ok := s.forgetLocked(k); ok {
			s.occupancy.End(f.beat, f.weight)
			freed += f.weight
		}
	}
	return freed
}

// forget is ended for attempts that the instance does not report any more.
func (s *Session) forget(keys ...attemptKey) (freed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if f, ok := s.forgetLocked(k); ok {
			s.occupancy.Drop(f.beat, f.weight)
			freed += f.weight
		}
	}
	return freed
}

// rejectBusy is the code of an instance that has no room for an attempt.
const rejectBusy = "busy"

// full forgets an attempt that the instance has no room for.
func (s *Session) full(k attemptKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.forgetLocked(k)
	if ok {
		s.occupancy.Drop(f.beat, f.weight)
	}
	s.occupancy.Full(f.weight)
}

// forgetLocked forgets an attempt; its slots are the caller's to take back.
func (s *Session) forgetLocked(k attemptKey) (f reservation, ok bool) {
	if f, ok = s.inflight[k]; !ok {
		return f, false
	}
	delete(s.inflight, k)
	s.unload(f.loading)
	return f, true
}
