package gateway

import "time"

// How many slots of an instance are taken is known from two sides: what this
// node offered and has not heard the end of, and what the instance counts, on
// all nodes' behalf, in its heartbeats. The first is newer; but an attempt that
// was offered here may end elsewhere, and then the second knows better.

// occupied returns how many slots are taken. Attempts older than two heartbeats
// are in what was reported, or they are over. mu is held.
func (s *Session) occupied() int {
	return max(s.reported, min(len(s.inflight), s.reported+s.young[0]+s.young[1]))
}

// counted takes a heartbeat's count of running attempts. mu is held.
func (s *Session) counted(running int) {
	s.reported = running
	s.beats++
	s.young = [2]int{0, s.young[0]}
	if s.surplus++; len(s.inflight) <= s.reported {
		s.surplus = 0
	}
}

// Reserve takes one of the instance's slots for an attempt that is about to be
// offered; false when none is free.
func (s *Session) Reserve(execution, fence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining || s.retiring || s.cause != nil || s.refusing || s.occupied() >= s.slots {
		return false
	}
	s.forgetLocked(attemptKey{execution, fence})
	if s.inflight == nil { // most sessions are idle
		s.inflight = map[attemptKey]flight{}
	}
	s.inflight[attemptKey{execution, fence}] = flight{lease: s.leased, since: time.Now(), beat: s.beats}
	s.young[0]++
	return true
}

// Holds reports whether the attempt has one of the instance's slots.
func (s *Session) Holds(execution, fence int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.inflight[attemptKey{execution, fence}]
	return ok
}

// Release gives reserved slots back.
func (s *Session) Release(execution, fence int64) { s.ended(attemptKey{execution, fence}) }

// ended forgets attempts of which the instance said, or is told, that they are
// over; it returns how many of them had a slot here.
func (s *Session) ended(keys ...attemptKey) (freed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		f, ok := s.forgetLocked(k)
		if !ok {
			continue
		}
		freed++
		if f.beat < s.beats { // the last heartbeat may have counted it
			s.reported = max(0, s.reported-1)
		}
	}
	return freed
}

// forget is ended for attempts that the instance does not report any more.
func (s *Session) forget(keys ...attemptKey) (freed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		if _, ok := s.forgetLocked(k); ok {
			freed++
		}
	}
	return freed
}

func (s *Session) forgetLocked(k attemptKey) (f flight, ok bool) {
	if f, ok = s.inflight[k]; !ok {
		return f, false
	}
	delete(s.inflight, k)
	if age := s.beats - f.beat; age < int64(len(s.young)) {
		s.young[age]--
	}
	return f, true
}
